"""Samplers within samplers: torch's `BatchSampler` around an order, and those of Accelerate around batch samplers."""

from typing import Any

from fastload.batching.planned import PlannedBatchSampler

__all__ = ["dealer_of", "innermost"]


def innermost(index_sampler: Any) -> Any:
    """Returns the sampler that decides on the order: the one in a batch sampler, and in samplers around it."""
    sampler = index_sampler
    for _ in range(4):
        if isinstance(sampler, PlannedBatchSampler):
            break
        inner = getattr(sampler, "batch_sampler", None)
        inner = getattr(sampler, "sampler", None) if inner is None else inner
        if inner is None:
            break
        sampler = inner
    return sampler


def dealer_of(index_sampler: Any) -> Any | None:
    """Returns the batch sampler by which Accelerate deals batches to its processes, if there is one."""
    sampler = index_sampler
    while sampler is not None and not hasattr(sampler, "process_index"):
        sampler = getattr(sampler, "batch_sampler", None)
    return sampler
