"""Random numbers that belong to samples, and not to the workers that make them.

Under AUTO the number of workers is nobody's choice, so samples must not depend on it. Owns the keys: of a
sample (base_seed, epoch, index, draw), where draw is its position in the epoch if the sampler may repeat an
index, and else 0; of a batch (base_seed, epoch, its number). The seeds of a worker's three generators are
drawn with them from the generator of the native lane (Philox4x32-10). Refuses generators that the
dataset holds itself, which nobody can find. Invariant: what a sample draws from the generators of torch,
numpy and random is the same in every worker, in both lanes, and whatever was made before.
"""

import _random
import random
from typing import Any, NamedTuple

import numpy as np
import torch

from fastload import _lib, sampler

__all__ = ["Key", "Keys", "Seeds", "count_of", "seed_numpy", "seed_process", "seed_python"]

_BITS = 2**64 - 1


Seeds = tuple[int, int, int]
"""Seeds of one worker's generators: torch's, numpy's legacy one, and that of `random`."""


class Key(NamedTuple):
    """What the samples of one batch are keyed by; goes to the worker with their indices.

    Attributes:
        base_seed: The iterator's.
        epoch: How often it was reset.
        batch: The number of the batch in the epoch.
        first: The position of its first sample in the epoch; None if no index comes twice.
    """

    base_seed: int
    epoch: int
    batch: int
    first: int | None

    def of_sample(self, index: Any, place: int) -> Seeds:
        """Returns the seeds of a sample, which is at a place in the batch.

        An index that is no integer counts as 0: only samplers that nobody knows have such, and of those
        the position tells.
        """
        number = index & _BITS if isinstance(index, int) else 0
        draw = 0 if self.first is None else self.first + place
        return _lib.sample_seeds(self.base_seed, self.epoch, number, draw)

    def of_batch(self) -> Seeds:
        """Returns the seeds for what is done once for the batch: collation, or `__getitems__`."""
        return _lib.batch_seeds(self.base_seed, self.epoch, self.batch)


class Keys:
    """The keys of an iterator's batches, in the order in which they are asked for.

    Args:
        base_seed: The iterator's.
        batched: Whether it asks for lists of indices.
    """

    def __init__(self, base_seed: int, *, batched: bool) -> None:
        self._base_seed = base_seed
        self._batched = batched
        self._epoch = -1
        self._batch = 0
        self._first: int | None = None

    def begin(self, index_sampler: Any) -> bool:
        """Begins an epoch.

        Returns:
            Whether nobody can tell when indices are taken from the sampler.
        """
        order = sampler.recognise(index_sampler, batched=self._batched)
        repeats = sampler.may_repeat(index_sampler, order)
        self._epoch += 1
        self._batch = 0
        self._first = 0 if repeats else None
        return order.is_private if order is not None else not repeats

    def next(self, indices: Any) -> Key:
        """Returns the key of the batch that is asked for next."""
        key = Key(self._base_seed, self._epoch, self._batch, self._first)
        self._batch += 1
        if self._first is not None:
            self._first += count_of(indices, batched=self._batched)
        return key


def count_of(indices: Any, *, batched: bool) -> int:
    """Returns how many samples are asked for; 1 for a batch that does not tell, as a generator."""
    try:
        return len(indices) if batched else 1
    except Exception:  # whatever a user's class raises: making the batch will tell
        return 1


def seed_process(seeds: Seeds) -> None:
    """Seeds the global generators of a worker process."""
    for_torch, for_numpy, for_python = seeds
    torch.default_generator.manual_seed(for_torch)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(for_torch)
    seed_numpy(np.random.mtrand._rand, for_numpy)
    seed_python(random._inst, for_python)


def seed_python(generator: random.Random, seed: int) -> None:
    """Seeds a generator of `random` as its own `seed` does, which asks longer what it was given."""
    _random.Random.seed(generator, seed)
    generator.gauss_next = None  # type: ignore[attr-defined]


def seed_numpy(generator: np.random.RandomState, seed: int) -> None:
    """Seeds a legacy generator of numpy, also one over other bits, which numpy does not seed again."""
    try:
        generator.seed(seed)
    except TypeError:
        bits: Any = generator._bit_generator
        bits.state = type(bits)(seed).state
