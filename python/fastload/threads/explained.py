"""The lines of `explain()` on what worker threads share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from fastload.machine.auto import Auto
from fastload.registry import name
from fastload.threads.copies import Found, copied

__all__ = ["explained"]

_MANY = 8


def explained(loader: Any) -> Iterator[tuple[str, str]]:
    """Yields lines on what worker threads of a loader share, as topic and words."""
    copies = copied(loader.dataset, loader.collate_fn, loader.worker_init_fn).copies
    for path, thing in copies.handles:
        one = isinstance(loader.num_workers, Auto)
        rest = "so one worker thread uses it" if one else "which the worker threads share"
        yield path, f"{name(type(thing))}, a position or a native handle, {rest}"
    for found in copies.shared[:_MANY]:
        yield found.path, f"{_said(found)}, shared by the worker threads and watched for changes"
    if more := len(copies.shared[_MANY:]):
        yield "dataset", f"{more} more arrays, tensors or long lists are shared in the same way"


def _said(found: Found) -> str:
    thing = found.thing
    if isinstance(thing, torch.Tensor | np.ndarray):
        return f"{name(type(thing))} of shape {tuple(thing.shape)}"
    return f"{name(type(thing))} of {len(thing)} entries"
