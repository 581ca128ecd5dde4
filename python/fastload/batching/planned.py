"""The base class of batch samplers that plan an epoch before it begins."""

import operator
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import torch
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler

from fastload import _lib
from fastload.batching.filler import Filler
from fastload.batching.lengths import LONGEST, lengths_of
from fastload.batching.world import Part, World
from fastload.checks import at_least, check_choice, positive
from fastload.sizes import length_of

__all__ = ["PlannedBatchSampler", "Remainder", "check_fits", "draw_seed"]

Remainder = Literal["drop", "repeat", "mask"]


class EpochSampler(DistributedSampler[int]):
    """The indices of a batch sampler's batches, one by one.

    A `DistributedSampler` by type, by which Lightning, Ray and Composer recognise that batches are divided
    among ranks already.

    Args:
        batches: The batch sampler; both have the same epoch.
    """

    def __init__(self, batches: "PlannedBatchSampler") -> None:
        self._batches = batches

    dataset = property(lambda self: self._batches._lengths)
    num_replicas = property(lambda self: self._batches._world.part().world)
    rank = property(lambda self: self._batches._world.part().ranks[0])
    epoch = property(lambda self: self._batches.epoch)
    shuffle = property(lambda self: self._batches.shuffle)
    seed = property(lambda self: self._batches.seed)
    drop_last = property(lambda self: self._batches._drop_last)
    num_samples = property(lambda self: len(self))
    total_size = property(lambda self: len(self.dataset))

    def set_epoch(self, epoch: int) -> None:
        """Chooses the coming epoch."""
        self._batches.set_epoch(epoch)

    def __iter__(self) -> Iterator[int]:
        for batch in self._batches:
            yield from batch

    def __len__(self) -> int:
        """Returns the number of samples of the coming epoch on this rank."""
        part = self._batches._world.part()
        epoch = self._batches._epoch(part)
        steps = range(len(epoch))
        return sum(len(epoch.batch(step, rank)[0]) for step in steps for rank in part.ranks)


class PlannedBatchSampler(BatchSampler):
    """Batches of indices that are planned natively, an epoch at a time.

    A plan depends on the seed, the epoch and the lengths: it is the same on all ranks, which take one batch
    each at every step. Each iteration begins a new epoch: 0, 1, 2 and so on, or the one set by `set_epoch` and
    those that follow it.

    Args are those of `BucketBatchSampler`.
    """

    batch_size: int | None  # type: ignore[assignment]

    def __init__(
        self,
        lengths: Any,
        *,
        shuffle: bool,
        seed: int | None,
        generator: torch.Generator | None,
        drop_last: bool,
        num_replicas: int | None,
        rank: int | None,
        remainder: Remainder,
        sampler: DistributedSampler[Any] | SequentialSampler | None,
    ) -> None:
        if generator is not None:
            if seed is not None:
                msg = "seed and generator exclude each other: the generator draws the seed"
                raise ValueError(msg)
            seed = draw_seed(generator)
        if not isinstance(drop_last, bool):
            msg = f"drop_last should be a boolean value, but got drop_last={drop_last}"
            raise ValueError(msg)
        check_choice("remainder", remainder, ("drop", "repeat", "mask"))
        self._lengths = lengths_of(lengths)
        self.shuffle = bool(shuffle) and not isinstance(sampler, SequentialSampler)
        self.seed = operator.index(seed or 0)
        # private: Lightning takes any class with `batch_size` and `drop_last` for torch's BatchSampler
        self._drop_last = drop_last
        self.remainder = remainder
        self._world = _world(sampler, num_replicas, rank)
        self._coming = 0
        self._planned: tuple[tuple[int, int], _lib.Epoch] | None = None

    @abstractmethod
    def _plan(self, **common: Any) -> _lib.Epoch:
        """Plans an epoch; `common` has the arguments that all plans of `_lib` take."""

    @property
    def sampler(self) -> EpochSampler:  # type: ignore[override]
        """The indices of the batches, one by one; frameworks look for its `set_epoch`."""
        return EpochSampler(self)

    @property
    def epoch(self) -> int:
        """The coming epoch."""
        return self._coming

    def set_epoch(self, epoch: int) -> None:
        """Chooses the coming epoch; later ones count on from it.

        Raises:
            ValueError: A negative number.
        """
        self._coming = at_least("epoch", epoch, 0)

    def __iter__(self) -> Iterator[list[int]]:
        """Yields this rank's batches of the coming epoch, which begins when the first one is taken."""
        return self.rest(None, 0)

    def rest(self, coming: int | None, skip: int) -> Iterator[list[int]]:
        """Yields this rank's batches of an epoch without the first ones; it begins when the first one is taken.

        Args:
            coming: The epoch; None for the coming one.
            skip: Number of batches to skip.
        """
        if coming is not None:
            self._coming = coming
        part = self._world.part()
        epoch = self._epoch(part)
        self._coming += 1
        for number in range(skip, len(epoch) * len(part.ranks)):
            step, rank = divmod(number, len(part.ranks))
            batch, fills = epoch.batch(step, part.ranks[rank])
            yield [Filler(index) for index in batch] if fills else batch

    def __len__(self) -> int:
        """Returns the number of batches of the coming epoch on this rank."""
        return self.count_of(self._coming)

    def count_of(self, epoch: int) -> int:
        """Returns the number of batches of an epoch on this rank."""
        part = self._world.part()
        return len(self._epoch(part, epoch)) * len(part.ranks)

    def plan_stats(self) -> dict[str, float]:
        """Returns figures of the coming epoch over all ranks.

        - `steps`: batches of each rank; `batches`: of all ranks.
        - `samples`: in a batch; `dropped`: in none; `repeated`: in a second one; `fillers`: copies for ranks
          without a sample left; `truncated`: too long, and counted as `max_length` tokens; the collate function
          must cut them.
        - `waste`: share of all tokens that are padding or belong to fillers, 0 to 1.
        - `tokens_p50`, `tokens_p99`, `tokens_max`: median, 99th percentile and maximum of the tokens per batch,
          padding included; `samples_max`: samples of the largest batch.
        """
        stats = self._epoch(self._world.part()).stats()
        return stats | {"truncated": self._truncated()}

    @cached_property
    def _lengths_crc(self) -> int:
        """The checksum of the lengths, which decide on the plans."""
        return zlib.crc32(self._lengths.to_bytes())

    def _truncated(self) -> int:
        return 0

    def _epoch(self, part: Part, number: int | None = None) -> _lib.Epoch:
        """Returns the plan of an epoch, by default the coming one."""
        number = self._coming if number is None else number
        key = number, part.world
        if self._planned is None or self._planned[0] != key:
            mask = (1 << 64) - 1
            shuffle = (self.seed & mask, number & mask) if self.shuffle else None
            plan = self._plan(
                drop_last=self._drop_last,
                shuffle=shuffle,
                world=part.world,
                remainder=self.remainder,
            )
            self._planned = key, plan
        return self._planned[1]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes without plans, which are made again."""
        return {**self.__dict__, "_planned": None}


def _world(sampler: Any, num_replicas: int | None, rank: int | None) -> World:
    """Returns the ranks of a batch sampler: its own, unless a framework passed a sampler.

    Raises:
        TypeError: A sampler of another class.
    """
    if isinstance(sampler, EpochSampler):
        return sampler._batches._world
    if isinstance(sampler, DistributedSampler):
        return World(sampler.num_replicas, sampler.rank)
    if sampler is None or isinstance(sampler, SequentialSampler):
        return World(num_replicas, rank)
    msg = (
        f"sampler should be a DistributedSampler, a SequentialSampler or None, but got {sampler!r}: "
        "the order is planned from the lengths"
    )
    raise TypeError(msg)


def draw_seed(generator: torch.Generator | None = None) -> int:
    """Draws a seed as torch's loaders and samplers do, by default from the global generator."""
    device = None if generator is None else generator.device
    return int(
        torch.empty((), dtype=torch.int64, device=device).random_(generator=generator).item()
    )


def check_fits(batch_sampler: PlannedBatchSampler, dataset: Any) -> None:
    """Refuses a batch sampler that was planned for another dataset.

    Raises:
        ValueError: It has lengths of more or fewer samples than the dataset.
    """
    count = length_of(dataset)
    if count is not None and count != len(batch_sampler._lengths):
        msg = (
            f"{type(batch_sampler).__name__} knows the lengths of {len(batch_sampler._lengths)} "
            f"samples, but the dataset has {count}: make it with the lengths of this dataset"
        )
        raise ValueError(msg)


def sorted_together(window: int | None, batch: int) -> int:
    """Returns the size of a window of samples for batches of about `batch`."""
    if window is None:
        return min(max(2048, 50 * batch), LONGEST)
    return positive("window", window)
