"""Lengths of what may not have one: datasets, samplers, loaders, batches."""

import contextlib
from collections.abc import Mapping
from typing import Any

__all__ = ["length_of", "rows_of"]

_DEPTH = 8  # containers around the tensors of a batch


def length_of(sized: Any) -> int | None:
    """Returns the length of a dataset, a sampler or a loader; None if it has none."""
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


def rows_of(batch: Any) -> int:
    """Returns the length of the first tensor, array or list of values in a batch; 0 if there is none."""
    with contextlib.suppress(Exception):  # a class of the user's
        for _ in range(_DEPTH):
            shape = getattr(batch, "shape", None)
            if shape is not None:
                return int(shape[0]) if len(shape) else 0
            if isinstance(batch, Mapping):
                batch = next(iter(batch.values()), None)
            elif isinstance(batch, tuple | list) and batch:
                if batch[0] is None or isinstance(batch[0], str | bytes | int | float):
                    return len(batch)
                batch = batch[0]
            else:
                return 0
    return 0
