"""Elements of arrays: casts and arithmetic, made of all samples at once.

Owns which operations are known to give each element the same bits for one sample and for many: conversions, and
operators that are one correctly rounded operation. The library itself makes them.
"""

import operator
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.arrays import check_array
from fastload.lowering.reading.values import Each, Ragged, Rows, Step, described
from fastload.memory import layout
from fastload.registry import name, refuse

__all__ = [
    "OPERATORS",
    "calculated",
    "cast",
    "check_scalars",
    "elementwise",
    "number",
    "to_numpy",
    "to_torch",
]


_FROM_NUMPY = torch.from_numpy  # as it was imported
_HALF = (torch.float16, torch.bfloat16, np.dtype(np.float16))


def to_torch(rows: Rows) -> Rows:
    """Returns arrays as tensors of the same elements."""
    return rows if rows.is_torch else _converted(replace(rows, is_python=False), "torch", _tensor)


def to_numpy(rows: Rows) -> Rows:
    """Returns tensors as arrays that share their memory."""
    return _converted(rows, "numpy", torch.Tensor.numpy)


def _converted(rows: Rows, key: str, call: Callable[[Any], Any]) -> Rows:
    if rows.steps:
        return rows.stepped(Step(key, call))
    try:
        return replace(rows, view=call(rows.view), probe=call(rows.probe))
    except (TypeError, ValueError) as error:
        return refuse(f"torch does not take the array: {error}")


def _tensor(array: Any) -> Any:
    if array.flags.writeable:
        return _FROM_NUMPY(array)
    with warnings.catch_warnings():  # it is never written to
        warnings.simplefilter("ignore")
        return _FROM_NUMPY(array)


def number(rows: Rows) -> Rows:
    """Returns the Python numbers of samples of one element, as `item()` does."""
    if rows.ndim:
        if rows.shape != (1,) * rows.ndim:
            refuse("item() of an array of several elements")
        rows = rows.reshaped("item", lambda array: array.reshape(-1))
    rows = to_numpy(rows) if rows.is_torch else rows
    kind, size = rows.dtype.kind, rows.dtype.itemsize
    if kind not in "biuf" or (kind == "u" and size == 8):
        refuse(f"item() of {rows.dtype} is not known")
    wide = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}[kind]
    return replace(cast(rows, wide), is_python=True)


def cast(rows: Rows, dtype: Any) -> Rows:
    """Returns the rows with elements of another dtype, one of torch for tensors, else NumPy's."""
    if rows.is_torch and not isinstance(dtype, torch.dtype):
        refuse(f"a cast to {dtype!r} is not known")
    if not rows.is_torch:
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            refuse(f"a cast to {dtype!r} is not known")
        if dtype.kind not in "biuf" or not dtype.isnative:
            refuse(f"a cast to {dtype} is not known")
    was = rows.dtype
    if was == dtype:
        return rows
    if _kind(was) == "c":
        refuse("a cast of complex numbers is not known")

    def call(array: Any) -> Any:
        if _kind(was) == "f" and _kind(dtype) in "iu":
            _check_range(array, dtype)
        return array.to(dtype) if isinstance(array, torch.Tensor) else array.astype(dtype)

    return rows.stepped(Step(("cast", str(dtype)), call))


def elementwise(ragged: Ragged, call: Callable[[Rows], Rows]) -> Ragged:
    """Returns arrays of different lengths with each element changed by itself."""
    whole = ragged.values[:, None]
    made = call(Rows(whole, whole[:0], ragged.values, is_ours=True))
    return Ragged(made.run(made.view)[:, 0], ragged.lengths)


def _kind(dtype: Any) -> str:
    if not isinstance(dtype, torch.dtype):
        return str(dtype.kind)
    if dtype is torch.bool:
        return "b"
    return "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"


def _check_range(array: Any, dtype: Any) -> None:
    """Refuses numbers whose conversion to an integer differs among CPUs."""
    if not len(array):
        return
    least, most = float(array.min()), float(array.max())
    limits: Any = torch.iinfo(dtype) if isinstance(dtype, torch.dtype) else np.iinfo(dtype)
    if not (limits.min - 1 < least and most < limits.max):
        msg = f"numbers from {least} to {most} do not fit {dtype}"
        raise ValueError(msg)


def check_scalars(rows: Rows, dtype: torch.dtype) -> None:
    """Refuses NumPy scalars that do not fit torch's integers: `torch.tensor` raises for them, and wraps arrays."""
    if _kind(dtype) != "i" or np.can_cast(rows.dtype, layout.dtype_name(dtype)):
        return
    limits, array = torch.iinfo(dtype), rows.run(rows.view)
    if len(array) and not limits.min <= array.min().item() <= array.max().item() <= limits.max:
        refuse(f"a number does not fit {dtype}")


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ROUNDED_ONCE = OPERATORS.keys() - {"//", "%"}
"""Operators whose result for an element is one correctly rounded operation on it."""
_SMALL = 1 << 16
_NUMBERS = (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8)
"""NumPy's scalars that operators take as they do numbers, but for their dtype."""


def calculated(symbol: str, left: Any, right: Any) -> Rows:
    """Returns rows of which each element was calculated with what is the same for all samples."""
    rows, other = (left, right) if isinstance(left, Rows) else (right, left)
    if not isinstance(rows, Rows) or isinstance(other, Each) or symbol not in _ROUNDED_ONCE:
        refuse(f"{described(left)} {symbol} {described(right)} is not known")
    dtype = rows.dtype
    if dtype in _HALF or _kind(dtype) == "c" or (_kind(dtype) == "b" and symbol not in "==!="):
        refuse(f"arithmetic on {dtype} is not known to be exact")
    if not rows.is_torch and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        refuse("arithmetic of NumPy before version 2 depends on values")
    is_left = rows is left
    is_number = type(other) in (int, float)
    key: Any = (type(other).__name__, repr(other))
    if type(other) in _NUMBERS and (is_left or not rows.is_torch):
        is_number = True
        key = (str(other.dtype), other.tobytes())
    elif not is_number:
        key = _constant_key(rows, other)
    call = OPERATORS[symbol]
    made = rows.stepped(
        Step(
            (symbol, is_left, key),
            (lambda array: call(array, other)) if is_left else (lambda array: call(other, array)),
            is_pointwise=is_number,
            constant=other,
        )
    )
    if made.shape != rows.shape or made.is_torch != rows.is_torch:
        refuse("arithmetic that changes the shape of a sample is not known")
    return made


def _constant_key(rows: Rows, other: Any) -> Any:
    """Returns the key of a constant array; refuses one that batches would be broadcast to otherwise."""
    is_same = type(other) is torch.Tensor if rows.is_torch else type(other) is np.ndarray
    if not is_same or other.ndim > rows.ndim or rows.ndim == 0 or other.nbytes > _SMALL:
        refuse(f"arithmetic with {name(type(other))} is not known to be exact")
    check_array(other)
    if _kind(other.dtype) in "bc" or other.dtype in _HALF:
        refuse(f"arithmetic with {other.dtype} is not known to be exact")
    flat = np.ascontiguousarray(np.asarray(other))
    return str(other.dtype), tuple(other.shape), flat.tobytes()
