"""Index orders of torch's own samplers, as whole arrays in place of Python integers.

Exactly torch's classes are recognised, with the `__iter__` that torch gave them; a subclass
may mean anything and is iterated as it is. Invariant: a recognised order makes the draws that
the sampler itself would make, from the same generators, when the same index is asked for.
"""

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from fastload.batching import PlannedBatchSampler
from fastload.batching.planned import draw_seed
from fastload.draws import permutation

Chunk = torch.Tensor | range

# torch draws with replacement in runs of 32; a generator of its own may be drawn from further
# ahead, because no other code can see it.
_RUN = 32
_RUNS_AHEAD = 1024

# Indices that become Python integers at once.
_LISTED = 1 << 16


class Start(NamedTuple):
    """The start of an order that is resumed.

    Attributes:
        skip: Indices that were given out before: by this rank, or by all ranks of a `DistributedSampler`.
        seed: The seed that a `RandomSampler` without a generator drew; None to draw it.
        epoch: The epoch of a `DistributedSampler`, whatever `set_epoch` says; None for its own.
    """

    skip: int = 0
    seed: int | None = None
    epoch: int | None = None


_WHOLE = Start()


class Order(NamedTuple):
    """An index order to be cut into batches.

    Attributes:
        sampler: The sampler that the indices come from.
        batch_size: Indices per batch; None for one index per task and no batches.
        drop_last: True if a last batch that is too short is dropped.
    """

    sampler: Any
    batch_size: int | None
    drop_last: bool

    @property
    def repeats(self) -> bool:
        """True if an index may repeat within an epoch."""
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
        """The exclusive upper bound of its indices."""
        is_distributed = isinstance(self.sampler, DistributedSampler)
        return len(self.sampler.dataset if is_distributed else self.sampler.data_source)

    @property
    def is_private(self) -> bool:
        """True if draws after the first have no visible effect: no generator is shared."""
        return not isinstance(self.sampler, RandomSampler) or self.sampler.generator is None

    @property
    def is_quicker(self) -> bool:
        """True if `tasks` has the first indices sooner than the sampler, which lists all or yields one after another."""
        if isinstance(self.sampler, DistributedSampler):
            return self.below > permutation.PIECE
        return type(self.sampler) is RandomSampler and _is_permutation(self.sampler)

    def chunks(self, start: Start = _WHOLE) -> Iterator[Chunk]:
        """Yields the order as int64 arrays and ranges; draws when advanced, never before."""
        for chunk in _CHUNKS[type(self.sampler)](self.sampler, start):
            if len(chunk):
                yield chunk

    def tasks(self, start: Start) -> Iterator[Any]:
        """Yields the sampler's items for a loader: lists of Python integers, or the integers where it does not batch."""
        size = self.batch_size
        left: list[int] = []
        for indices in chain.from_iterable(map(_listed, self.chunks(start))):
            if size is None:
                yield from indices
                continue
            left += indices
            whole = len(left) - len(left) % size
            for at in range(0, whole, size):
                yield left[at : at + size]
            del left[:whole]
        if left and not self.drop_last:
            yield left


def recognise(index_sampler: Any, *, batched: bool) -> Order | None:
    """Returns the order of torch's own samplers, or None for any other.

    Args:
        index_sampler: The sampler that a loader iterates: its `batch_sampler`, or its `sampler` when it
            does not batch.
        batched: True if it is the former.
    """
    return native(resumable(index_sampler, batched=batched))


def native(order: Order | None) -> Order | None:
    """Returns the result of `recognise` for a sampler, from that of `resumable`."""
    return order if order is not None and type(order.sampler) in _NATIVE else None


def resumable(index_sampler: Any, *, batched: bool) -> Order | None:
    """Returns the order of torch's own samplers that can begin at any index; None for any other."""
    if not batched:
        return Order(index_sampler, None, drop_last=False) if _is_known(index_sampler) else None
    if not picks_batches(index_sampler):
        return None
    sampler: Any = index_sampler.sampler
    if not _is_known(sampler) or index_sampler.batch_size <= 0:
        return None
    return Order(sampler, index_sampler.batch_size, bool(index_sampler.drop_last))


def may_repeat(index_sampler: Any, order: Order | None) -> bool:
    """Returns true if an index may repeat within an epoch of a loader's sampler, recognised as `order`."""
    if order is not None:
        return order.repeats
    return getattr(type(index_sampler), "__iter__", None) is not PlannedBatchSampler.__iter__


def is_private(index_sampler: Any, order: Order | None) -> bool:
    """Returns true if taking indices early from a loader's sampler, recognised as `order`, has no visible effect."""
    return order.is_private if order is not None else not may_repeat(index_sampler, None)


def picks_batches(sampler: Any) -> bool:
    """Returns true if a sampler is torch's own `BatchSampler`, which yields lists of indices."""
    return type(sampler) is BatchSampler and _TORCH_ITER.get(BatchSampler) is BatchSampler.__iter__


def _is_known(sampler: Any) -> bool:
    kind = type(sampler)
    return kind in _CHUNKS and _TORCH_ITER.get(kind) is kind.__iter__


def _listed(chunk: Chunk) -> Iterator[list[int]]:
    """Yields the indices of a chunk as lists of Python's."""
    if isinstance(chunk, torch.Tensor):
        for part in torch.split(chunk, _LISTED) if chunk.numel() > _LISTED else (chunk,):
            yield part.tolist()
        return
    for at in range(0, len(chunk), _LISTED):
        yield list(chunk[at : at + _LISTED])


def _after(skip: int, chunks: Iterator[Any]) -> Iterator[Any]:
    """Yields chunks without the first `skip` indices."""
    for chunk in chunks:
        yield chunk[skip:] if skip else chunk
        skip -= min(skip, len(chunk))


def _sequential(sampler: SequentialSampler, start: Start) -> Iterator[Chunk]:
    yield range(len(sampler.data_source))[start.skip :]


def _random(sampler: RandomSampler, start: Start) -> Iterator[Chunk]:
    n = len(sampler.data_source)
    generator, ahead = sampler.generator, 1
    if generator is None:
        seed = draw_seed() if start.seed is None else start.seed
        if _is_permutation(sampler):
            yield from permutation.pieces(n, seed, start.skip)
            return
        generator, ahead = torch.Generator(), _RUNS_AHEAD
        generator.manual_seed(seed)
    if sampler.replacement:
        drawn = _with_replacement(sampler, n, generator, ahead, start.skip)
    else:
        drawn = _permutations(sampler, n, generator)
    yield from _after(start.skip, drawn)


def _is_permutation(sampler: RandomSampler) -> bool:
    """Returns true if a sampler draws one permutation, by a generator that nobody else sees."""
    is_whole = sampler.num_samples == len(sampler.data_source) > 0
    return is_whole and sampler.generator is None and not sampler.replacement


def _permutations(
    sampler: RandomSampler, n: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    for _ in range(sampler.num_samples // n):
        yield permutation.whole(n, generator)
    # torch draws this also when nothing of it is used, which a generator that is shared can tell.
    if sampler.num_samples % n or generator is sampler.generator:
        yield permutation.whole(n, generator)[: sampler.num_samples % n]


def _with_replacement(
    sampler: RandomSampler, n: int, generator: torch.Generator, ahead: int, skip: int
) -> Iterator[torch.Tensor]:
    left, skipped = sampler.num_samples, skip - skip % _RUN
    while left >= _RUN:
        # the run has drawn what is skipped; the size of the pieces does not change it
        most = min(skipped, _RUNS_AHEAD * _RUN) or ahead * _RUN
        count = min(most, left - left % _RUN)
        yield torch.randint(n, (count,), dtype=torch.int64, generator=generator).cpu()
        left -= count
        skipped = max(0, skipped - count)
    yield torch.randint(n, (left,), dtype=torch.int64, generator=generator).cpu()


def _distributed(sampler: DistributedSampler[Any], start: Start) -> Iterator[Chunk]:
    n, ranks = len(sampler.dataset), sampler.num_replicas  # type: ignore[arg-type]
    own = range(start.skip + sampler.rank, distributed_total(sampler, n, start.skip), ranks)
    if n == 0 or (not start.skip and len(own) != sampler.num_samples):
        # the dataset has changed its length: the sampler's own answer, or its own error
        yield torch.tensor(list(sampler), dtype=torch.int64, device="cpu")
        return
    if not sampler.shuffle:
        for at in range(0, len(own), permutation.PIECE):
            piece = own[at : at + permutation.PIECE]
            yield torch.arange(piece.start, piece.stop, ranks, device="cpu") % n
        return
    epoch = sampler.epoch if start.epoch is None else start.epoch
    seed = (sampler.seed + epoch) % 2**64
    place = start.skip
    for drawn in permutation.pieces(n, seed, place, ranks):
        yield drawn[(own.start - place) % ranks : max(0, own.stop - place) : ranks].contiguous()
        place += len(drawn)
    if again := own[max(0, -(-(n - own.start) // ranks)) :]:  # positions behind the end
        yield _drawn_at(torch.tensor(again, dtype=torch.int64, device="cpu") % n, n, seed)


def _drawn_at(places: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    """Returns the indices at some positions of a permutation, of which no more than needed is drawn."""
    pieces = permutation.pieces(n, seed)
    drawn = next(pieces)
    while len(drawn) <= places.max():
        drawn = torch.cat([drawn, next(pieces)])
    return drawn[places]


def distributed_total(sampler: DistributedSampler[Any], n: int, skip: int) -> int:
    """Returns how many samples all ranks load in an epoch whose first `skip` others may have loaded.

    Args:
        sampler: The sampler of one rank.
        n: Samples of the dataset.
        skip: The position where these ranks begin in the order of the epoch.
    """
    ranks, left = sampler.num_replicas, max(0, n - skip)
    steps = left // ranks if sampler.drop_last else math.ceil(left / ranks)
    return skip + steps * ranks


def _subset(sampler: SubsetRandomSampler, start: Start) -> Iterator[Any]:
    order = torch.randperm(len(sampler.indices), generator=sampler.generator)
    yield [sampler.indices[place] for place in order[start.skip :].tolist()]


def _weighted(sampler: WeightedRandomSampler, start: Start) -> Iterator[Chunk]:
    count, replacement = sampler.num_samples, sampler.replacement
    order = torch.multinomial(sampler.weights, count, replacement, generator=sampler.generator)
    yield order[start.skip :]


_NATIVE: dict[Any, Callable[[Any, Start], Iterator[Chunk]]] = {
    DistributedSampler: _distributed,
    RandomSampler: _random,
    SequentialSampler: _sequential,
}
_CHUNKS: dict[Any, Callable[[Any, Start], Iterator[Any]]] = {
    **_NATIVE,
    SubsetRandomSampler: _subset,
    WeightedRandomSampler: _weighted,
}
# What others have replaced before this import is missing here, and never recognised.
_TORCH_ITER = {
    kind: kind.__iter__
    for kind in (BatchSampler, *_CHUNKS)
    if kind.__iter__.__module__ == kind.__module__
}
