"""How the tuner of a loader begins: what it may set, and within what."""

from collections.abc import Mapping
from typing import Any

from fastload import _lib
from fastload.auto import Auto
from fastload.cpu import cpu_budget
from fastload.tune.online import Online

__all__ = ["online"]


def online(loader: Any, settings: Mapping[str, Any]) -> Online | None:
    """Returns the tuner of a loader, the same for all its iterators; None where it is not tuned.

    Args:
        loader: The loader; `num_workers` and `prefetch_factor` that somebody chose are obeyed.
        settings: What a stream is opened with, as far as nobody tuned it.
    """
    if not loader.tune:
        return None
    if loader._tuner is None:
        workers, depth = settings["threads"], settings["depth"]
        chosen = not isinstance(loader.num_workers, Auto)
        tuner = _lib.Tuner(
            cores=float(cpu_budget()),
            most_workers=workers,
            most_depth=depth,
            budget_bytes=settings["budget_bytes"],
            whole_batches=False,
            workers_are_fixed=chosen,
            depth_is_fixed=chosen or loader._depth_is_chosen,
        )
        loader._tuner = Online(tuner, workers, depth)
    return loader._tuner  # type: ignore[no-any-return]
