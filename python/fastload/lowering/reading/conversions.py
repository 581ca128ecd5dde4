"""Steps on elements that native code makes while it copies them."""

import math
import warnings
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.values import Rows, tried
from fastload.memory import layout

__all__ = ["SAME", "native_steps"]

SAME = ("torch", "numpy")
"""The keys of steps that leave each element as it is."""
_ARITHMETIC = frozenset("+-*/")
_FLOATS = {"float32": np.float32, "float64": np.float64}
_EXACT = 1 << 53
"""The largest integer up to which float64 holds every integer."""


def native_steps(rows: Rows) -> list[tuple[Any, ...]] | None:
    """Returns the steps as `_lib.Rows` takes them; None if one is not native."""
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
        if operation in _ARITHMETIC and dtype in _FLOATS:
            is_left, is_torch = step.key[1], isinstance(array, torch.Tensor)
            constants = _constants(step.constant, dtype, array.shape[1:])
            if constants is None or not (is_torch or _numpy_only_warns()):
                return None
            if is_torch and operation == "/" and not (is_left or torch.is_tensor(step.constant)):
                return None  # torch multiplies the number by the reciprocal, which is rounded twice
            steps.append((operation, is_left, *constants))
        elif operation != "cast":
            return None
        was = dtype
    return steps


def _numpy_only_warns() -> bool:
    """Returns true if division by zero and the like, of which native code says nothing, is no error of NumPy."""
    # The first filter that fits decides.
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return False
            if message is None and module is None and not line:
                break
    return set(np.geterr().values()) <= {"warn", "ignore"}


def _constants(constant: Any, dtype: str, shape: tuple[int, ...]) -> tuple[bytes, int] | None:
    """Returns a constant for samples of a shape: its float64 values, and how many neighbours have the same."""
    if type(constant) is int and abs(constant) > _EXACT:
        return None
    with np.errstate(over="ignore"):
        values = np.asarray(constant).astype(_FLOATS[dtype])
    own = (1,) * (len(shape) - values.ndim) + values.shape
    varies = [axis for axis, size in enumerate(own) if size > 1]
    first, end = (varies[0], varies[-1] + 1) if varies else (0, 0)
    inner = math.prod(shape[end:])
    if own[first:end] != tuple(shape[first:end]) or not inner or np.isnan(values).any():
        return None
    return values.astype(float).tobytes(), inner
