"""Random numbers keyed by sample, not by the worker that makes it.

Under AUTO the loader chooses the number of workers, so samples must not depend on it. Owns the keys: of a
sample (base_seed, epoch, index, draw), where draw is its position in the epoch if the sampler may repeat an
index, and else 0; of a batch (base_seed, epoch, its number). The seeds of a worker's three generators are
drawn with them from the generator of the native lane (Philox4x32-10). Does not cover generators that the
dataset holds itself: such a dataset stays in one process. Invariant: what a sample draws from the generators of
torch, numpy and random is the same in every worker, in both lanes, and whatever was made before.
"""

import functools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from fastload import _lib
from fastload.draws import sampler
from fastload.draws.generators import Generators

__all__ = [
    "Key",
    "Keys",
    "begin_batch",
    "begin_sample",
    "borrowed",
    "count_of",
    "current",
    "follow",
    "saved",
]


class Key(NamedTuple):
    """The key of one batch's samples; sent to the worker with their indices.

    Attributes:
        base_seed: The iterator's.
        epoch: Number of times that it was reset.
        batch: The number of the batch in the epoch.
        first: The position of its first sample in the epoch; None if no index comes twice.
    """

    base_seed: int
    epoch: int
    batch: int
    first: int | None

    def begin_sample(self, generators: Generators, index: Any, place: int) -> None:
        """Keys generators for a sample, which is at a place in the batch."""
        draw = 0 if self.first is None else self.first + place
        generators.native.key_sample(self.base_seed, self.epoch, index, draw)

    def begin_batch(self, generators: Generators) -> None:
        """Keys generators for the work done once for the batch: collation, or `__getitems__`."""
        generators.native.key_batch(self.base_seed, self.epoch, self.batch)


class Keys:
    """The keys of an iterator's batches, in the order of their requests; `batched` if it asks for lists of indices."""

    def __init__(self, base_seed: int, *, batched: bool) -> None:
        self._base_seed = base_seed
        self._batched = batched
        self._epoch: int | None = None
        self._batch = 0
        self._first: int | None = None
        self._cursor: Any = None

    def begin(self, index_sampler: Any, cursor: Any) -> bool:
        """Begins an epoch.

        Args:
            index_sampler: The sampler that is iterated.
            cursor: The position where the epoch begins.

        Returns:
            True if taking indices early from the sampler has no visible effect.
        """
        order = sampler.native(cursor.draws.order)
        repeats = sampler.may_repeat(index_sampler, order)
        # the number of the first epoch is the cursor's, which a loaded state may have set
        self._epoch = cursor.epoch if self._epoch is None else self._epoch + 1
        cursor.epoch = self._epoch
        self._batch = cursor.first
        self._first = 0 if repeats else None
        self._cursor = cursor
        return sampler.is_private(index_sampler, order)

    def next(self, indices: Any) -> Key:
        """Returns the key of the next batch requested."""
        assert self._epoch is not None
        if self._first is not None and self._batch == self._cursor.first:
            self._first = self._cursor.place  # known once the first indices are taken
        while (samples := self._cursor.left_out.get(self._batch)) is not None:
            self._batch += 1
            self._first = None if self._first is None else self._first + samples
        key = Key(self._base_seed, self._epoch, self._batch, self._first)
        self._batch += 1
        if self._first is not None:
            self._first += count_of(indices, batched=self._batched)
        return key


def count_of(indices: Any, *, batched: bool) -> int:
    """Returns the number of samples requested; 1 if it is unknown, as of a generator."""
    try:
        return len(indices) if batched else 1
    except Exception:  # whatever a user's class raises: making the batch will tell
        return 1


def follow(indices: Any, key: Key | None, drawn_from: frozenset[str] | None = None) -> Any:
    """Returns the indices of a batch, which key the global generators for its samples as they are taken.

    When there are no more, for the collation.

    Args:
        indices: The indices.
        key: The key of their samples, if they are keyed.
        drawn_from: The generators that need a key; None for all.

    Returns:
        A `_lib.Followed`; what cannot be iterated as it is, of which making the batch will tell.
    """
    try:
        iter(indices)
    except Exception:  # whatever a user's class raises
        return indices
    if key is None:
        return _lib.Followed(indices)
    # how generators of accelerators are found, and seeded
    devices = None if borrowed._depth else (vars(torch.cuda), _seed_cuda)
    return _lib.Followed(indices, current().only(drawn_from), key, devices)


def begin_sample(key: Key, index: Any) -> None:
    """Keys the global generators for a sample outside of a batch."""
    key.begin_sample(current(), index, 0)
    _seed_accelerators()


def begin_batch(key: Key) -> None:
    """Keys the global generators for the work done once for a batch."""
    key.begin_batch(current())
    _seed_accelerators()


class borrowed:  # noqa: N801 (a context manager)
    """Restores the training process's generators after making samples in it.

    Those of accelerators are left alone. Other threads that draw meanwhile draw what is keyed.
    """

    _depth = 0

    def __enter__(self) -> None:
        borrowed._depth += 1
        self._generators = current()
        self._saved = self._generators.save()

    def __exit__(self, *_: object) -> None:
        borrowed._depth -= 1
        if not self._generators.is_current:  # a sample has set others
            np.random.set_bit_generator(self._generators.bits)  # type: ignore[attr-defined]
        self._generators.restore(self._saved)


_kept: Generators | None = None


def current() -> Generators:
    """Returns the global generators of this process."""
    global _kept
    if _kept is None or not _kept.is_current:
        _kept = Generators(torch.default_generator, np.random.mtrand._rand, random._inst)
    return _kept


def saved() -> Callable[[], None]:
    """Saves the states of the global generators; returns the function that restores them."""
    generators = current()
    return functools.partial(generators.restore, generators.save())


def _seed_cuda(seed: int) -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def _seed_accelerators() -> None:
    if not borrowed._depth:
        _seed_cuda(torch.initial_seed())
