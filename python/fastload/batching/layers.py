"""Samplers within samplers: torch's `BatchSampler` around an order, and those of Accelerate around batch samplers."""

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DistributedSampler

from fastload.batching.planned import PlannedBatchSampler

__all__ = ["attribute", "dealer_of", "innermost", "layers", "ranks_of"]


def attribute(thing: Any, name: str) -> Any:
    """Returns an attribute that torch does not ask for; None if it is missing, or a `__getattr__` raises anything."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def innermost(index_sampler: Any) -> Any:
    """Returns the sampler that decides on the order: the one in a batch sampler, and in samplers around it."""
    *_, sampler = layers(index_sampler)
    return sampler


def layers(index_sampler: Any) -> Iterator[Any]:
    """Yields a sampler and those within it, from the outside."""
    sampler = index_sampler
    yield sampler
    for _ in range(4):
        if isinstance(sampler, PlannedBatchSampler):
            return
        inner = attribute(sampler, "batch_sampler")
        inner = attribute(sampler, "sampler") if inner is None else inner
        if inner is None:
            return
        sampler = inner
        yield sampler


def dealer_of(index_sampler: Any) -> Any | None:
    """Returns the batch sampler by which Accelerate deals batches to its processes, if there is one."""
    sampler = index_sampler
    while sampler is not None and attribute(sampler, "process_index") is None:
        sampler = attribute(sampler, "batch_sampler")
    return sampler


def ranks_of(index_sampler: Any) -> tuple[int, int] | None:
    """Returns for how many ranks a sampler is, and which of them this process is; None if it does not know ranks."""
    if (dealer := dealer_of(index_sampler)) is not None:
        return int(dealer.num_processes), int(dealer.process_index)
    sampler = innermost(index_sampler)
    if isinstance(sampler, DistributedSampler):
        return int(sampler.num_replicas), int(sampler.rank)
    if isinstance(sampler, PlannedBatchSampler):
        part = sampler._world.part()
        return part.world, part.ranks.start
    return None
