"""Index orders of torch's own samplers, as whole arrays in place of Python integers.

Exactly torch's classes are recognised, with the `__iter__` that torch gave them; a subclass
may mean anything and is iterated as it is. Invariant: a recognised order makes the draws that
the sampler itself would make, from the same generators, when the same index is asked for.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

from fastload.batching import PlannedBatchSampler
from fastload.draws import permutation
from fastload.machine.intra_op import one_thread

Chunk = torch.Tensor | range

# torch draws with replacement in runs of 32; a generator of its own may be drawn from further
# ahead, because nobody else can see it.
_RUN = 32
_RUNS_AHEAD = 1024

_KINDS: tuple[Any, ...] = (BatchSampler, DistributedSampler, RandomSampler, SequentialSampler)
# What others have replaced before this import is missing here, and never recognised.
_TORCH_ITER = {
    kind: kind.__iter__ for kind in _KINDS if kind.__iter__.__module__ == kind.__module__
}


class Order(NamedTuple):
    """An index order to be cut into batches.

    Attributes:
        sampler: Where the indices come from.
        batch_size: Indices per batch; None for one index per task and no batches.
        drop_last: Whether a last batch that is too short is dropped.
    """

    sampler: Any
    batch_size: int | None
    drop_last: bool

    @property
    def repeats(self) -> bool:
        """Whether an index may come several times in an epoch."""
        if isinstance(self.sampler, RandomSampler):
            return self.sampler.replacement or self.sampler.num_samples > len(
                self.sampler.data_source
            )
        if isinstance(self.sampler, DistributedSampler):
            return self.sampler.num_samples * self.sampler.num_replicas > 2 * len(
                self.sampler.dataset  # type: ignore[arg-type]
            )
        return False

    @property
    def below(self) -> int:
        """The number that its indices are below."""
        is_distributed = isinstance(self.sampler, DistributedSampler)
        return len(self.sampler.dataset if is_distributed else self.sampler.data_source)

    @property
    def is_private(self) -> bool:
        """Whether nobody can tell when it is drawn, once it has begun: no generator is shared."""
        return not isinstance(self.sampler, RandomSampler) or self.sampler.generator is None

    def chunks(self) -> Iterator[Chunk]:
        """Yields the order as int64 arrays and ranges; draws when advanced, never before."""
        return (chunk for chunk in _CHUNKS[type(self.sampler)](self.sampler) if len(chunk))


def recognise(index_sampler: Any, *, batched: bool) -> Order | None:
    """Returns the order of torch's own samplers, or None for any other.

    Args:
        index_sampler: What a loader iterates: its `batch_sampler`, or its `sampler` when it
            does not batch.
        batched: Whether it is the former.
    """
    if not batched:
        return Order(index_sampler, None, drop_last=False) if _known(index_sampler) else None
    if not picks_batches(index_sampler):
        return None
    sampler: Any = index_sampler.sampler
    if not _known(sampler) or index_sampler.batch_size <= 0:
        return None
    return Order(sampler, index_sampler.batch_size, bool(index_sampler.drop_last))


def may_repeat(index_sampler: Any, order: Order | None) -> bool:
    """Returns whether an index may come several times in an epoch.

    Args:
        index_sampler: What a loader iterates.
        order: What `recognise` made of it.
    """
    if order is not None:
        return order.repeats
    return getattr(type(index_sampler), "__iter__", None) is not PlannedBatchSampler.__iter__


def picks_batches(sampler: Any) -> bool:
    """Returns whether a sampler is torch's own `BatchSampler`, which yields lists of indices."""
    return type(sampler) is BatchSampler and _untouched(BatchSampler)


def _known(sampler: Any) -> bool:
    return type(sampler) in _CHUNKS and _untouched(type(sampler))


def _untouched(kind: Any) -> bool:
    return kind.__iter__ is _TORCH_ITER.get(kind)


def _sequential(sampler: SequentialSampler) -> Iterator[Chunk]:
    yield range(len(sampler.data_source))


def _random(sampler: RandomSampler) -> Iterator[Chunk]:
    n = len(sampler.data_source)
    generator, ahead = sampler.generator, 1
    if generator is None:
        seed = int(torch.empty((), dtype=torch.int64).random_().item())
        if sampler.num_samples == n > 0 and not sampler.replacement:
            yield from permutation.pieces(n, seed)
            return
        generator, ahead = torch.Generator(), _RUNS_AHEAD
        generator.manual_seed(seed)
    if sampler.replacement:
        yield from _with_replacement(sampler, n, generator, ahead * _RUN)
        return
    for _ in range(sampler.num_samples // n):
        yield permutation.whole(n, generator)
    # torch draws this also when nothing of it is used, which a generator that is shared can tell.
    if sampler.num_samples % n or generator is sampler.generator:
        yield permutation.whole(n, generator)[: sampler.num_samples % n]


def _with_replacement(
    sampler: RandomSampler, n: int, generator: torch.Generator, most: int
) -> Iterator[torch.Tensor]:
    left = sampler.num_samples
    while left >= _RUN:
        count = min(most, left - left % _RUN)
        yield torch.randint(n, (count,), dtype=torch.int64, generator=generator)
        left -= count
    yield torch.randint(n, (left,), dtype=torch.int64, generator=generator)


def _distributed(sampler: DistributedSampler[Any]) -> Iterator[Chunk]:
    n = len(sampler.dataset)  # type: ignore[arg-type]
    own = _share(sampler, n)
    if len(own) == sampler.num_samples and n > 0:
        yield own
    else:  # the dataset has changed its length: the sampler's own answer, or its own error
        yield torch.tensor(list(sampler), dtype=torch.int64)


@one_thread()
def _share(sampler: DistributedSampler[Any], n: int) -> torch.Tensor:
    if sampler.shuffle:
        generator = torch.Generator()
        generator.manual_seed(sampler.seed + sampler.epoch)
        indices = torch.randperm(n, generator=generator)
    else:
        indices = torch.arange(n)
    total = sampler.total_size
    if not sampler.drop_last and total > n > 0:
        indices = indices.repeat(math.ceil(total / n))
    return indices[:total][sampler.rank : total : sampler.num_replicas].contiguous()


_CHUNKS: dict[Any, Callable[[Any], Iterator[Chunk]]] = {
    DistributedSampler: _distributed,
    RandomSampler: _random,
    SequentialSampler: _sequential,
}
