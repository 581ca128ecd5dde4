"""How the tuner of a loader begins: what it may set, and within what."""

from typing import Any

from torch.utils.data import IterableDataset

from fastload import _lib
from fastload.auto import Auto
from fastload.cpu import cpu_budget
from fastload.tune.online import Online

__all__ = ["most_workers", "online"]

_MOST_PER_CORE = 16
"""Workers for each processor, where they wait rather than compute."""


def online(
    loader: Any,
    *,
    workers: int,
    depth: int,
    budget_bytes: int,
    kind: str = "threads",
    whole_batches: bool = False,
) -> Online | None:
    """Returns the tuner of a loader, the same for all its iterators; None where it is not tuned.

    Args:
        loader: The loader itself, which keeps the tuner; `num_workers` and `prefetch_factor` that
            somebody chose are obeyed.
        workers: How many there are at first.
        depth: How many batches are in flight at first.
        budget_bytes: What those may take.
        kind: What the workers are, for words.
        whole_batches: Whether a batch is made by one worker alone, in Python.
    """
    if not loader.tune or isinstance(loader.dataset, IterableDataset):
        return None
    if loader._tuner is None:
        chosen = not isinstance(loader.num_workers, Auto)
        most = most_workers(workers) if whole_batches else workers
        tuner = _lib.Tuner(
            cores=float(cpu_budget()),
            most_workers=most,
            most_depth=max(depth, 2 * most) if whole_batches else depth,
            budget_bytes=budget_bytes,
            whole_batches=whole_batches,
            workers_are_fixed=chosen,
            depth_is_fixed=chosen or loader._depth_is_chosen,
        )
        loader._tuner = Online(tuner, workers, depth, kind)
    return loader._tuner  # type: ignore[no-any-return]


def most_workers(workers: int) -> int:
    """Returns how many Python workers there may be at most, where `workers` is what AUTO begins with."""
    return max(workers, _MOST_PER_CORE * cpu_budget())
