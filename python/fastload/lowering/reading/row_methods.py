"""Methods of arrays and tensors that are known.

Owns the table. Each is made on an array with one more dimension in front; those whose result for one sample could
differ from that are not in it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.arrays import of_rows
from fastload.lowering.reading.elements import calculated, cast, to_numpy
from fastload.lowering.reading.values import Rows, Step, described
from fastload.registry import refuse

__all__ = ["METHODS", "transposed"]


def _same(rows: Rows) -> Rows:
    return rows


def _only_torch(rows: Rows, doing: str) -> None:
    if not rows.is_torch:
        refuse(f"{doing} of {described(rows)} is not known")


def _only_numpy(rows: Rows, doing: str) -> None:
    if rows.is_torch or rows.ndim == 0:
        refuse(f"{doing} of {described(rows)} is not known")


def _number(rows: Rows) -> Rows:
    """Returns the Python numbers of samples without dimensions, as `item()` does."""
    if rows.ndim:
        if rows.shape != (1,) * rows.ndim:
            refuse("item() of an array of several elements")
        rows = rows.reshaped("item", lambda array: array.reshape(-1))
    if rows.is_torch:
        rows = rows.stepped(Step("numpy", torch.Tensor.numpy)) if rows.steps else _viewed(rows)
    kind, size = rows.probe.dtype.kind, rows.probe.dtype.itemsize
    if kind not in "biuf" or (kind == "u" and size == 8):
        refuse(f"item() of {rows.probe.dtype} is not known")
    wide = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}[kind]
    return replace(cast(rows, wide), is_python=True)


def _viewed(rows: Rows) -> Rows:
    return replace(rows, view=rows.view.numpy(), probe=rows.probe.numpy())


def _to(rows: Rows, dtype: Any) -> Rows:
    _only_torch(rows, "to()")
    return cast(rows, dtype)


def _astype(rows: Rows, dtype: Any, *, copy: bool = True) -> Rows:  # noqa: ARG001 (the same numbers)
    if rows.is_torch:
        refuse("astype() of a tensor")
    return cast(rows, dtype)


def _unsqueeze(rows: Rows, dim: int) -> Rows:
    _only_torch(rows, "unsqueeze()")
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


def _reshape(rows: Rows, *shape: Any) -> Rows:
    shape = tuple(shape[0]) if len(shape) == 1 and type(shape[0]) in (tuple, list) else shape
    if (not rows.is_torch and rows.ndim == 0) or not all(type(each) is int for each in shape):
        refuse("reshape() of a scalar, or to another shape than ints, is not known")
    whole = np.empty(rows.shape, np.bool_).reshape(shape).shape if rows.shape else shape
    if not rows.shape and any(each not in (1, -1) for each in shape):
        refuse("a sample has another number of elements")
    whole = tuple(1 if not rows.shape else each for each in whole)
    if not rows.is_torch and not whole:
        refuse("an array without dimensions is not known")
    return (
        rows.stepped(
            Step(
                ("reshape", whole),
                lambda array: array.reshape(len(array), *whole),
                is_pointwise=False,
            )
        )
        if not _is_viewable(rows, whole)
        else rows.reshaped(("reshape", whole), lambda array: array.reshape(len(array), *whole))
    )


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
    if not rows.is_torch or any(isinstance(each, torch.dtype) for each in shape):
        refuse("view() of an array, or as another dtype, is not known")
    if rows.steps and any(not step.is_pointwise for step in rows.steps):
        refuse("view() after other operations is not known")
    made = _reshape(rows, *shape)
    if len(made.steps) != len(rows.steps):
        refuse("view() of elements that are not side by side")
    return made


def _flatten(rows: Rows) -> Rows:
    return _reshape(rows, -1)


def transposed(rows: Rows) -> Rows:
    """Returns the `T` of each sample."""
    if rows.is_torch and rows.ndim != 2:
        refuse("T of a tensor that has not two dimensions")
    return _permute(rows, *range(rows.ndim)[::-1])


def _numpy(rows: Rows) -> Rows:
    _only_torch(rows, "numpy()")
    return to_numpy(rows)


def _int(value: Any) -> int:
    if type(value) is not int:
        refuse(f"a dimension {value!r} is not known")
    return value


def _caster(dtype: torch.dtype) -> Callable[[Rows], Rows]:
    return lambda rows: _to(rows, dtype)


def _torch_only(method: Callable[[Rows], Rows]) -> Callable[[Rows], Rows]:
    def call(rows: Rows) -> Rows:
        _only_torch(rows, "a method of tensors")
        return method(rows)

    return call


def _copied(rows: Rows) -> Rows:
    _only_numpy(rows, "copy()")
    return rows


def _calculator(symbol: str) -> Callable[[Rows, Any], Rows]:
    def call(rows: Rows, other: Any) -> Rows:
        _only_torch(rows, "a method of tensors")
        return calculated(symbol, rows, other)

    return call


METHODS: dict[str, Callable[..., Any]] = {
    "float": _caster(torch.float32),
    "double": _caster(torch.float64),
    "half": _caster(torch.float16),
    "bfloat16": _caster(torch.bfloat16),
    "long": _caster(torch.int64),
    "int": _caster(torch.int32),
    "short": _caster(torch.int16),
    "byte": _caster(torch.uint8),
    "bool": _caster(torch.bool),
    "to": _to,
    "type": _to,
    "astype": _astype,
    "clone": _torch_only(_same),
    "contiguous": _torch_only(_same),
    "detach": _torch_only(_same),
    "cpu": _torch_only(_same),
    "copy": _copied,
    "numpy": _numpy,
    "item": _number,
    "add": _calculator("+"),
    "sub": _calculator("-"),
    "mul": _calculator("*"),
    "div": _calculator("/"),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "permute": _permute,
    "transpose": _transpose,
    "reshape": _reshape,
    "view": _view,
    "flatten": _flatten,
    "ravel": _flatten,
}
"""The methods of samples that are known, as functions of the rows and the arguments."""
