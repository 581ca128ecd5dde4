"""Functions that make arrays and tensors.

Owns what each makes of numbers, lists and arrays, with the dtype that the library chooses for one sample.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.arithmetic import lifted
from fastload.lowering.reading.arrays import of_rows
from fastload.lowering.reading.elements import (
    cast,
    check_scalars,
    elementwise,
    number,
    to_torch,
)
from fastload.lowering.reading.row_methods import method_of
from fastload.lowering.reading.values import Each, Objects, Ragged, Rows, described, objects_of
from fastload.registry import refuse

__all__ = ["FUNCTIONS"]


def _tensor(reader: Any, data: Any, dtype: Any = None) -> Any:
    _check_modes()
    if dtype is not None and not isinstance(dtype, torch.dtype):
        refuse(f"a tensor of dtype {dtype!r} is not known")
    if isinstance(data, Rows) and not data.is_python:
        if data.is_scalar and dtype is not None:
            check_scalars(data, dtype)
        made = to_torch(data)
        return made if dtype is None else cast(made, dtype)
    if isinstance(data, Ragged):
        return elementwise(data, lambda rows: _tensor(reader, rows, dtype))
    return _array(reader, data, dtype, is_torch=True)


def _array(reader: Any, value: Any, dtype: Any, *, is_torch: bool) -> Any:
    """Returns the array of Python numbers, or of lists of them."""
    if isinstance(value, list | tuple) and any(isinstance(each, Each) for each in value):
        several = [_item(each) for each in value] if is_torch and dtype is not None else value
        value = lifted(lambda *each: list(each), list(several), lambda *_: True, "a list")
    if not isinstance(value, Each):
        refuse(f"an array of {described(value)} is not known")
    objects = objects_of(value, "an array")
    if objects.kinds in ({torch.Tensor}, {np.ndarray}):
        made = reader.stored.stacked(objects.values)
        if isinstance(made, Ragged):
            refuse("arrays of different lengths are not made tensors of")
        made = to_torch(made) if is_torch else made
        return made if dtype is None else cast(made, dtype)
    made = reader.stored.array(objects, dtype, is_torch=is_torch)
    if not is_torch and isinstance(made, Rows) and made.ndim == 0:
        refuse("an array without dimensions is not known")
    return made


def _item(value: Any) -> Any:
    """Returns the Python numbers of NumPy's scalars; other values as they are."""
    is_scalar = isinstance(value, Rows) and value.is_scalar and not value.is_python
    return number(value) if is_scalar else value


def _check_modes() -> None:
    """Refuses to make tensors while a torch mode changes how they are made."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        refuse(
            "a torch function mode (such as a default device) is active, which changes how tensors are made"
        )


def _from_numpy(_: Any, value: Any) -> Any:
    if not isinstance(value, Rows) or value.is_torch or value.is_scalar:
        refuse(f"torch.from_numpy() of {described(value)} is not known")
    return to_torch(value)


def _np_array(reader: Any, value: Any, dtype: Any = None) -> Any:
    if isinstance(value, Rows) and not value.is_python:
        if value.is_torch or value.is_scalar:
            refuse(f"an array of {described(value)} is not known")
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, Ragged):
        refuse("an array of such a value is not known")
    return _array(reader, value, dtype, is_torch=False)


def _method(name: str, *, is_torch: bool) -> Callable[..., Any]:
    """Returns the function that does as a method of arrays, or of tensors, does."""

    def call(_: Any, value: Any, *arguments: Any) -> Any:
        is_array = isinstance(value, Rows) and not value.is_scalar and value.is_torch == is_torch
        method = method_of(value, name) if is_array else None
        if method is None:
            refuse(f"{name}() of {described(value)} is not known")
        return method(value, *arguments)

    return call


def _expanded(_: Any, value: Any, axis: Any) -> Any:
    if not isinstance(value, Rows) or value.is_torch or value.is_scalar or type(axis) is not int:
        refuse(f"np.expand_dims() of {described(value)} is not known")
    at = range(value.ndim + 1)[axis]
    return of_rows(value, (*[slice(None)] * at, None))


def _np_scalar(kind: Any) -> Callable[..., Any]:
    def make(_: Any, value: Any) -> Any:
        if not isinstance(value, Rows) or value.is_torch or value.is_python:
            refuse(f"{kind.__name__} of {described(value)} is not known")
        return cast(value, kind)

    return make


def _legacy(dtype: torch.dtype | None) -> Callable[..., Any]:
    def make(reader: Any, value: Any) -> Any:
        _check_modes()
        made_of = torch.get_default_dtype() if dtype is None else dtype
        is_sequence = isinstance(value, Objects) and value.kinds <= {list, tuple}
        if isinstance(value, list | tuple) or is_sequence:
            return _array(reader, value, made_of, is_torch=True)
        if isinstance(value, Rows) and value.ndim and not value.is_torch:
            return cast(to_torch(value), made_of)
        return refuse(f"a tensor of {described(value)} made so is not known", "use torch.tensor")

    return make


_OF_TORCH = "unsqueeze squeeze permute transpose reshape flatten clone"
_OF_NUMPY = "transpose reshape ravel"
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    torch.tensor: _tensor,
    torch.as_tensor: _tensor,
    torch.from_numpy: _from_numpy,
    torch.LongTensor: _legacy(torch.int64),
    torch.FloatTensor: _legacy(torch.float32),
    torch.Tensor: _legacy(None),
    **{getattr(torch, each): _method(each, is_torch=True) for each in _OF_TORCH.split()},
    np.expand_dims: _expanded,
    **{getattr(np, each): _method(each, is_torch=False) for each in _OF_NUMPY.split()},
    np.ascontiguousarray: _np_array,
    np.array: _np_array,
    np.asarray: _np_array,
    **{each: _np_scalar(each) for each in (np.float32, np.float64, np.int64, np.int32)},
}
"""The functions that are known, by the very object."""
