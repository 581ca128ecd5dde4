"""Methods of arrays and tensors that are known.

Owns the tables. Each is made on an array with one more dimension in front; those whose result for one sample could
differ from that are not in it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.arrays import of_rows
from fastload.lowering.reading.elements import calculated, cast, number, to_numpy
from fastload.lowering.reading.values import Rows, Step
from fastload.registry import refuse

__all__ = ["method_of", "transposed"]


def method_of(rows: Rows, what: str) -> Callable[..., Rows] | None:
    """Returns a method of samples as a function of the rows and the arguments; None if it is not known."""
    return (_OF_TENSORS if rows.is_torch else _OF_ARRAYS).get(what)


def _same(rows: Rows) -> Rows:
    return rows


def _astype(rows: Rows, dtype: Any, *, copy: bool = True) -> Rows:  # noqa: ARG001 (the same numbers)
    return cast(rows, dtype)


def _copied(rows: Rows) -> Rows:
    if rows.is_scalar:
        refuse("copy() of a NumPy scalar is not known")
    return rows


def _tolist(rows: Rows) -> Rows:
    if rows.ndim:
        refuse("tolist of an array is not known")
    return number(rows)


def _numpy(rows: Rows) -> Rows:
    if rows.ndim == 0:
        refuse("an array without dimensions is not known")
    return to_numpy(rows)


def _unsqueeze(rows: Rows, dim: int) -> Rows:
    at = _int(dim) + (dim >= 0)
    return rows.reshaped(("unsqueeze", at), lambda array: array.unsqueeze(at))


def _squeeze(rows: Rows, dim: int | None = None) -> Rows:
    shape = rows.shape
    dims = range(len(shape)) if dim is None else [range(len(shape))[_int(dim)]]
    drop = [at for at in dims if shape[at] == 1]
    if not rows.is_torch and len(drop) == len(shape):
        refuse("an array without dimensions is not known")
    key = tuple(slice(None) if at not in drop else 0 for at in range(len(shape)))
    return of_rows(rows, key) if drop else rows


def _squeeze_array(rows: Rows, axis: int | None = None) -> Rows:
    if axis is not None and rows.shape[_int(axis)] != 1:
        refuse("squeeze() of an axis that is longer than 1")
    return _squeeze(rows, axis)


def _permute(rows: Rows, *dims: Any) -> Rows:
    dims = dims[0] if len(dims) == 1 and type(dims[0]) in (tuple, list) else dims
    order = [range(rows.ndim)[_int(dim)] for dim in dims]
    if sorted(order) != list(range(rows.ndim)):
        refuse("a permutation of other dimensions")
    whole = (0, *(at + 1 for at in order))
    return rows.reshaped(
        ("permute", whole),
        lambda array: array.permute(whole) if rows.is_torch else array.transpose(whole),
    )


def _transpose(rows: Rows, *dims: Any) -> Rows:
    if not rows.is_torch:
        return _permute(rows, *(dims or range(rows.ndim)[::-1]))
    one, other = (range(rows.ndim)[_int(dim)] for dim in dims)
    order = list(range(rows.ndim))
    order[one], order[other] = other, one
    return _permute(rows, *order)


def transposed(rows: Rows) -> Rows:
    """Returns the `T` of each sample."""
    if rows.is_torch and rows.ndim != 2:
        refuse("T of a tensor that has not two dimensions")
    return _permute(rows, *range(rows.ndim)[::-1])


def _reshape(rows: Rows, *shape: Any) -> Rows:
    shape = tuple(shape[0]) if len(shape) == 1 and type(shape[0]) in (tuple, list) else shape
    if rows.is_scalar or not all(type(each) is int for each in shape):
        refuse("reshape() of a scalar, or to another shape than ints, is not known")
    whole = np.empty(rows.shape, np.bool_).reshape(shape).shape
    if not rows.is_torch and not whole:
        refuse("an array without dimensions is not known")

    def call(array: Any) -> Any:
        return array.reshape(len(array), *whole)

    if _is_viewable(rows, whole):
        return rows.reshaped(("reshape", whole), call)
    return rows.stepped(Step(("reshape", whole), call, is_pointwise=False))


def _is_viewable(rows: Rows, shape: tuple[int, ...]) -> bool:
    """Returns true if the rows have a shape without being copied."""
    view = rows.view
    try:
        if isinstance(view, torch.Tensor):
            view.view(len(view), *shape)
            return True
        return bool(np.may_share_memory(view.reshape(len(view), *shape), view))
    except (RuntimeError, ValueError):
        return False


def _view(rows: Rows, *shape: Any) -> Rows:
    if any(not step.is_pointwise for step in rows.steps):
        refuse("view() after other operations is not known")
    made = _reshape(rows, *shape)
    if len(made.steps) != len(rows.steps):
        refuse("view() of elements that are not side by side")
    return made


def _flatten(rows: Rows) -> Rows:
    return _reshape(rows, -1)


def _int(value: Any) -> int:
    if type(value) is not int:
        refuse(f"a dimension {value!r} is not known")
    return value


def _caster(dtype: torch.dtype) -> Callable[[Rows], Rows]:
    return lambda rows: cast(rows, dtype)


def _calculator(symbol: str) -> Callable[[Rows, Any], Rows]:
    return lambda rows, other: calculated(symbol, rows, other)


_OF_BOTH: dict[str, Callable[..., Rows]] = {
    "flatten": _flatten,
    "item": number,
    "ravel": _flatten,
    "reshape": _reshape,
    "tolist": _tolist,
    "transpose": _transpose,
}
_OF_ARRAYS: dict[str, Callable[..., Rows]] = {
    **_OF_BOTH,
    "astype": _astype,
    "copy": _copied,
    "squeeze": _squeeze_array,
}
_OF_TENSORS: dict[str, Callable[..., Rows]] = {
    **_OF_BOTH,
    "float": _caster(torch.float32),
    "double": _caster(torch.float64),
    "half": _caster(torch.float16),
    "bfloat16": _caster(torch.bfloat16),
    "long": _caster(torch.int64),
    "int": _caster(torch.int32),
    "short": _caster(torch.int16),
    "byte": _caster(torch.uint8),
    "bool": _caster(torch.bool),
    "to": cast,
    "type": cast,
    **dict.fromkeys(("clone", "contiguous", "cpu", "detach"), _same),
    "numpy": _numpy,
    "squeeze": _squeeze,
    "add": _calculator("+"),
    "sub": _calculator("-"),
    "mul": _calculator("*"),
    "div": _calculator("/"),
    "unsqueeze": _unsqueeze,
    "permute": _permute,
    "view": _view,
}
