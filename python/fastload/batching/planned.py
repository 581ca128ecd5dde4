"""What the batch samplers have in common: epochs that are planned before they begin."""

import abc
import operator
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler

from fastload import _lib
from fastload.batching.filler import Filler
from fastload.batching.lengths import LONGEST, lengths_of
from fastload.batching.world import Part, World

__all__ = ["PlannedBatchSampler", "Remainder", "check_fits"]

Remainder = Literal["drop", "repeat", "mask"]


class EpochSampler(DistributedSampler[int]):
    """The samples of a batch sampler's batches, one by one.

    A `DistributedSampler` by its type: the sign, for Lightning, Ray and Composer, that a loader's batches
    are those of one rank already.

    Args:
        batches: The batch sampler; its epoch is this one's, too.
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
        """Returns how many samples the coming epoch has on this rank."""
        return self._batches._samples()


class PlannedBatchSampler(BatchSampler, abc.ABC):
    """Batches of indices that are planned natively, an epoch at a time.

    A plan depends on the seed, the epoch and the lengths: it is the same on all ranks, which take
    one batch each at every step. A new epoch begins with each iteration: 0, 1, 2 and so on, or what
    `set_epoch` chose and those that follow it.

    Args:
        lengths: How long each sample is.
        shuffle: Whether the order is drawn anew each epoch.
        seed: What orders are drawn from, with the epoch; the same number on all ranks.
        generator: Draws the seed, once, when the sampler is made; seed it alike on all ranks.
        drop_last: Whether a last step whose batches are not full is dropped.
        num_replicas: Number of ranks; torch.distributed's unless given.
        rank: This process's rank; torch.distributed's unless given.
        remainder: What happens where fewer samples are left than there are ranks.
        sampler: What a framework has chosen that makes batch samplers anew: a `DistributedSampler`, for its
            ranks, or a `SequentialSampler`, for no shuffling.
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
            drawn = torch.empty((), dtype=torch.int64).random_(generator=generator)
            seed = int(drawn.item())
        if not isinstance(drop_last, bool):
            msg = f"drop_last should be a boolean value, but got drop_last={drop_last}"
            raise ValueError(msg)
        one_of("remainder", remainder, ("drop", "repeat", "mask"))
        self._lengths = lengths_of(lengths)
        self.shuffle = bool(shuffle) and not isinstance(sampler, SequentialSampler)
        self.seed = operator.index(seed or 0)
        # private: Lightning takes what has `batch_size` and `drop_last` for torch's BatchSampler
        self._drop_last = drop_last
        self.remainder = remainder
        self._world = _world(sampler, num_replicas, rank)
        self._coming = 0
        self._planned: tuple[tuple[int, int], _lib.Epoch] | None = None

    @abc.abstractmethod
    def _plan(self, world: int, shuffle: tuple[int, int] | None) -> _lib.Epoch:
        """Plans an epoch for so many ranks; `shuffle` is seed and epoch."""

    @property
    def sampler(self) -> EpochSampler:  # type: ignore[override]
        """The samples of the batches, one by one; frameworks look for its `set_epoch`."""
        return EpochSampler(self)

    @property
    def epoch(self) -> int:
        """The coming epoch."""
        return self._coming

    def set_epoch(self, epoch: int) -> None:
        """Chooses the coming epoch; the one after it follows by itself.

        Raises:
            ValueError: A negative number.
        """
        epoch = operator.index(epoch)
        if epoch < 0:
            msg = f"an epoch is 0 or more, found {epoch}"
            raise ValueError(msg)
        self._coming = epoch

    def __iter__(self) -> Iterator[list[int]]:
        """Yields this rank's batches of the coming epoch, which begins with the first of them."""
        return self.rest(None, 0)

    def rest(self, coming: int | None, skip: int) -> Iterator[list[int]]:
        """Yields this rank's batches of an epoch but the first ones; it begins with the first that is yielded.

        Args:
            coming: The epoch; None for the coming one.
            skip: How many batches are left out.
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
        """Returns how many batches the coming epoch has on this rank."""
        part = self._world.part()
        return len(self._epoch(part)) * len(part.ranks)

    def plan_stats(self) -> dict[str, float]:
        """Returns what the coming epoch comes to, over all ranks.

        - `steps`: batches of each rank; `batches`: of all ranks.
        - `samples`: in a batch; `dropped`: in none; `repeated`: in a second; `fillers`: filling the
          batch of a rank that has no sample left; `truncated`: longer than a batch may be, and
          planned as if cut to `max_length`, which is for the collate function to do.
        - `waste`: part of all tokens that are padding, or of samples that do not count: 0 to 1.
        - `tokens_p50`, `tokens_p99`, `tokens_max`: tokens of a batch, with padding, that half of the
          batches, 99 of 100, and all do not exceed; `samples_max`: most samples of a batch.
        """
        stats = self._epoch(self._world.part()).stats()
        return stats | {"truncated": self._truncated()}

    def _truncated(self) -> int:
        return 0

    def _samples(self) -> int:
        part = self._world.part()
        epoch = self._epoch(part)
        steps = range(len(epoch))
        return sum(len(epoch.batch(step, rank)[0]) for step in steps for rank in part.ranks)

    def _epoch(self, part: Part) -> _lib.Epoch:
        """Returns the plan of the coming epoch."""
        key = self._coming, part.world
        if self._planned is None or self._planned[0] != key:
            mask = (1 << 64) - 1
            shuffle = (self.seed & mask, self._coming & mask) if self.shuffle else None
            self._planned = key, self._plan(part.world, shuffle)
        return self._planned[1]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes; plans are made again."""
        return {**self.__dict__, "_planned": None}


def _world(sampler: Any, num_replicas: int | None, rank: int | None) -> World:
    """Returns the ranks of a batch sampler: its own, unless a framework has chosen a sampler.

    Raises:
        TypeError: A sampler that does not say what it means here.
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


def check_fits(batch_sampler: PlannedBatchSampler, dataset: Any) -> None:
    """Refuses a batch sampler that was planned for another dataset.

    Raises:
        ValueError: It knows the lengths of more samples, or fewer, than there are.
    """
    try:
        count = len(dataset)
    except TypeError:  # nobody knows
        return
    if count != len(batch_sampler._lengths):
        msg = (
            f"{type(batch_sampler).__name__} knows the lengths of {len(batch_sampler._lengths)} "
            f"samples, and the dataset has {count}: make it of the lengths of this dataset"
        )
        raise ValueError(msg)


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a word that is none of those known."""
    if value not in known:
        words = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
        msg = f"{name} is {words}, found {value!r}"
        raise ValueError(msg)


def positive(name: str, value: int | None, most: int = (1 << 63) - 1) -> int:
    """Returns a number that is at least 1; None is as many as there can be."""
    if value is None:
        return most
    number = operator.index(value) if hasattr(value, "__index__") else 0
    if number < 1 or isinstance(value, bool):
        msg = f"{name} is a positive whole number, found {value!r}"
        raise ValueError(msg)
    return min(number, most)


def sorted_together(window: int | None, batch: int) -> int:
    """Returns how many samples are sorted together where batches have about `batch`."""
    if window is None:
        return min(max(2048, 50 * batch), LONGEST)
    return positive("window", window)
