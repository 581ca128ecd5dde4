"""Steps on elements that native code makes while it copies them."""

import math
from typing import Any

import numpy as np

from fastload.lowering.reading.values import Rows, tried
from fastload.memory import layout

__all__ = ["SAME", "native_steps"]

SAME = ("torch", "numpy")
"""The keys of steps that leave each element as it is."""
_FLOATS = {"float32": np.float32, "float64": np.float64}
_EXACT = 1 << 53
"""The integers up to here are floats of 64 bits."""


def native_steps(rows: Rows) -> list[tuple[Any, ...]] | None:
    """Returns the steps as `_lib.Rows` takes them; None if one is not native."""
    if not set(np.geterr().values()) <= {"warn", "ignore"}:
        return None  # NumPy raises where native code has no error
    steps: list[tuple[Any, ...]] = []
    array = rows.view[:0]
    was = layout.dtype_name(array.dtype)
    for step in rows.steps:
        array = tried(step.call, array)
        if step.key in SAME:
            continue
        operation, dtype = step.key[0], layout.dtype_name(array.dtype)
        if dtype != was:
            steps.append(("cast", dtype))
        if operation in "+-*/" and dtype in _FLOATS:
            constants = _constants(step.constant, dtype, array.shape[1:])
            if constants is None:
                return None
            steps.append((operation, step.key[1], *constants))
        elif operation != "cast":
            return None
        was = dtype
    return steps


def _constants(constant: Any, dtype: str, shape: tuple[int, ...]) -> tuple[bytes, int] | None:
    """Returns a constant for samples of a shape, as its float64 values and how many neighbours have the same."""
    if type(constant) is int and abs(constant) > _EXACT:
        return None
    with np.errstate(over="ignore"):
        values = np.asarray(constant).astype(_FLOATS[dtype])
    own = (1,) * (len(shape) - values.ndim) + values.shape
    varies = [axis for axis, size in enumerate(own) if size > 1]
    first, end = (varies[0], varies[-1] + 1) if varies else (0, 0)
    inner = math.prod(shape[end:])
    if own[first:end] != tuple(shape[first:end]) or not inner:
        return None
    return values.astype(float).tobytes(), inner
