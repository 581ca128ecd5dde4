"""Random permutations of indices: torch's, by one thread."""

import functools
from collections.abc import Iterator

import torch

from fastload import _lib
from fastload.machine.threads import one_thread

__all__ = ["PIECE", "pieces", "whole"]

PIECE = 4096
"""Indices of a piece."""
_LOOKED_AT = 2000
"""Several of the generator's blocks of 624."""


@one_thread()
def whole(n: int, generator: torch.Generator) -> torch.Tensor:
    """Returns the permutation that `torch.randperm` draws from a generator, on the CPU."""
    return torch.randperm(n, generator=generator).cpu()


def pieces(n: int, seed: int, skip: int = 0, ranks: int = 1) -> Iterator[torch.Tensor]:
    """Yields what `torch.randperm` draws from a generator of this seed, each piece when it is asked for.

    Batches of the first piece are made while the others are still to be drawn.

    Args:
        n: The length of the permutation.
        seed: The seed of the generator.
        skip: Indices that are left out, the first ones.
        ranks: Of so many indices one is used.
    """
    if n > _lib.Permutation.MOST or not _is_torchs():
        yield whole(n, torch.Generator().manual_seed(seed))[skip:]
        return
    permutation = _lib.Permutation(n, seed, skip, ranks)
    for _ in range(skip, n, PIECE):
        yield permutation.draw(PIECE)


@functools.cache
def _is_torchs() -> bool:
    """Returns true if this version of torch draws as our permutation does."""
    generator = torch.Generator().manual_seed(1)
    theirs = torch.randperm(_LOOKED_AT, generator=generator, device="cpu")
    return torch.equal(_lib.Permutation(_LOOKED_AT, 1).draw(_LOOKED_AT), theirs)
