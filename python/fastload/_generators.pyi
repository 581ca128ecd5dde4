"""The part of `_lib` that keys generators of Python code. There is no such module."""

from collections.abc import Callable, Iterator
from typing import Any, Self, final

import torch

@final
class Generators:
    """Torch's, numpy's legacy and Python's generator, whose states are drawn from a key.

    Args:
        torch: `set_state`, the arguments that it is called with, a state to be written to, and its address.
        numpy: The owner of the words of an MT19937, their address, behind which is how many are taken, and that
            of `has_gauss` of the `RandomState` over it.
        python: A `random.Random`, and the address of how many words are taken, behind which they are.
        others: Called with three seeds, for the generators that are not given.
    """

    def __new__(
        cls,
        *,
        torch: tuple[Callable[[torch.Tensor], Any], tuple[torch.Tensor], int] | None = None,
        numpy: tuple[Any, int, int] | None = None,
        python: tuple[Any, int] | None = None,
        others: Callable[[int, int, int], None] | None = None,
    ) -> Self: ...
    def key_sample(self, seed: int, epoch: int, index: Any, draw: int) -> None:
        """Keys the generators for a sample.

        Args:
            seed: The iterator's `base_seed`, below 2^64 like the rest.
            epoch: Number of times that the iterator was reset.
            index: The sample's; what is no integer counts as 0.
            draw: Tells apart repetitions of an index within an epoch.
        """

    def key_batch(self, seed: int, epoch: int, batch: int) -> None:
        """Keys the generators for what Python does once for a batch, by its number in the epoch."""

    def save(self) -> bytes:
        """Returns the states of numpy's and Python's."""

    def restore(self, saved: bytes, /) -> None:
        """Writes the states that `save` returned."""

@final
class Followed:
    """The indices of a batch, which key the generators for each as it is taken, and then for the batch.

    Args:
        indices: The indices.
        generators: The generators.
        key: The iterator's seed, the epoch, the number of the batch, and the place of its first sample.
        devices: Names of a module, and what is called with torch's seed if its `_initialized` is true.
    """

    def __new__(
        cls,
        indices: Any,
        generators: Generators | None = None,
        key: tuple[int, int, int, int | None] | None = None,
        devices: tuple[dict[str, Any], Callable[[int], None]] | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def repeat(self) -> None:
        """Keys the generators again for the index taken last."""
    @property
    def current(self) -> tuple[Any] | None:
        """The index whose sample is being made; None before the first and behind the last."""
