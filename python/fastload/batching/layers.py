"""Samplers within samplers: torch's `BatchSampler` around an order, and those of Accelerate around batch samplers."""

from collections.abc import Iterator
from typing import Any

from fastload.batching.planned import PlannedBatchSampler

__all__ = ["attribute", "dealer_of", "innermost", "layers"]


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
