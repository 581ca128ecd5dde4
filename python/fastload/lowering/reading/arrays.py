"""Operations on rows of arrays: what NumPy and torch make of one sample, made of all at once.

Owns which operations are known. Each is made by the library itself on an array with one more dimension in front;
those whose result for one sample could differ from that are not in the tables.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.values import (
    Each,
    Index,
    Objects,
    Rows,
    Step,
    check_count,
    described,
    over,
)
from fastload.lowering.registry import NotNative, name

__all__ = ["METHODS", "calculated", "cast", "is_array", "of_rows", "taken", "to_numpy", "to_torch"]

_EXACT = (np.ndarray, np.memmap, torch.Tensor)
_HALF = (torch.float16, torch.bfloat16, np.dtype(np.float16))


def is_array(value: Any) -> bool:
    """Returns whether a value is an array or a tensor of the very class."""
    return type(value) in _EXACT


def check_array(array: Any) -> None:
    """Refuses arrays whose rows are not plain numbers in memory.

    Raises:
        NotNative: Why.
    """
    if type(array) is torch.Tensor:
        if array.requires_grad:
            raise NotNative("a tensor requires gradients", "detach() it")
        if array.device.type != "cpu" or array.layout is not torch.strided or array.is_quantized:
            raise NotNative("a tensor is not dense in the CPU's memory", "make it so")
        if any(getattr(array, "names", ())) or array.is_nested or array.is_conj() or array.is_neg():
            raise NotNative(
                "a tensor is named or nested, or conjugated or negated lazily", "make it plain"
            )
    elif array.dtype.kind not in "biufc":
        raise NotNative(f"an array has elements of {array.dtype}", "make it an array of numbers")
    elif not array.dtype.isnative:
        raise NotNative("an array has foreign byte order", "convert it to this machine's")


def taken(array: Any, key: Any) -> Each:
    """Returns what an array gives for an index that differs between samples.

    Args:
        array: The user's, the same for all samples.
        key: An `Each`, a slice or a tuple with an `Each` in it.

    Raises:
        NotNative: It is not known, or leaves the array.
    """
    check_array(array)
    if type(key) is tuple:
        return _taken_at(array, key)
    if array.ndim == 0:
        raise NotNative("a scalar is indexed")
    if type(key) is slice:
        return _windows(array, key)
    if isinstance(key, Index):
        return _rows(array, key)
    return _picked(array, _places(key, array))


def _taken_at(array: Any, key: tuple[Any, ...]) -> Each:
    places = [place for place, part in enumerate(key) if _differs(part)]
    before = key[: places[0]]
    are_whole = all(type(part) is slice and part == slice(None) for part in before)
    if len(places) != 1 or not are_whole or places[0] >= array.ndim:
        raise NotNative(
            "an index by several values, or behind other than full slices, is not known"
        )
    if before:
        move = torch.movedim if type(array) is torch.Tensor else np.moveaxis
        moved = taken(move(array, places[0], 0), key[places[0]])
        if type(key[places[0]]) is slice:
            raise NotNative("a window along another dimension than the first is not known")
        assert isinstance(moved, Rows)
        moved = replace(moved, owner=array)
    else:
        moved = taken(array, key[0])
    assert isinstance(moved, Rows)
    lead = [slice(None)] if type(key[0]) is slice else []
    rest = (*lead, *before, *key[places[0] + 1 :])
    return of_rows(moved, rest) if rest else moved


def _differs(part: Any) -> bool:
    if type(part) is slice:
        return any(isinstance(each, Each) for each in (part.start, part.stop, part.step))
    return isinstance(part, Each)


def _rows(array: Any, index: Index) -> Rows:
    first, last = _within(index, len(array))
    if index.step < 0:
        return _picked(array, np.arange(index.count) * index.step + first)
    return over(array[first : last + 1 : index.step], owner=array)


def _within(index: Index, length: int) -> tuple[int, int]:
    """Returns the places of the first and the last sample; from the end where all are negative."""
    low, high = index.ends
    shift = length if high < 0 else 0
    if low + shift < 0 or high + shift >= length:
        raise NotNative(f"its indices go from {low} to {high}, and what they index has {length}")
    first = index.first + shift
    return first, first + index.step * (index.count - 1)


def _windows(array: Any, window: slice) -> Rows:
    start, stop, step = window.start, window.stop, window.step
    start = Index(0, 0, 1) if start is None else start
    if not (isinstance(start, Index) and isinstance(stop, Index) and start.step == stop.step):
        raise NotNative("a slice whose length differs from sample to sample")
    if start.step < 1 or not (step is None or (type(step) is int and step > 0)):
        raise NotNative("a window that goes backwards is not known")
    size = stop.first - start.first
    if size < 1 or start.first < 0 or stop.ends[1] > len(array):
        raise NotNative(
            f"its windows go from {start.first} to {stop.ends[1]}, and what they index has {len(array)}"
        )
    if type(array) is torch.Tensor:
        view = array[start.first :].unfold(0, size, start.step)[: start.count].movedim(-1, 1)
    else:
        shape = (start.count, size, *array.shape[1:])
        strides = (start.step * array.strides[0], *array.strides)
        view = np.lib.stride_tricks.as_strided(
            array[start.first :], shape, strides, writeable=bool(array.flags.writeable)
        )
    return over(view if step is None else view[:, ::step], owner=array)


def _places(key: Any, array: Any) -> np.ndarray[Any, Any]:
    """Returns the rows that a value names, one for each sample."""
    if isinstance(key, Rows) and key.ndim == 0 and not key.steps:
        is_index = key.probe.dtype == torch.int64 if key.is_torch else key.probe.dtype.kind in "iu"
        if is_index and (not key.is_torch or type(array) is torch.Tensor):
            places = np.asarray(key.view)
            places = places if key.picks is None else places[key.picks]
            return places.astype(np.int64)
    if isinstance(key, Objects) and key.kinds == {int}:
        return np.asarray(key.values)
    raise NotNative(f"an array indexed by {described(key)} is not known")


def _picked(array: Any, places: np.ndarray[Any, Any]) -> Rows:
    check_count(len(places))
    length = len(array)
    if places.dtype != np.int64 or places.min() < -length or places.max() >= length:
        raise NotNative(f"an index leaves what it indexes, which has {length}")
    return replace(over(array), picks=np.where(places < 0, places + length, places))


def of_rows(rows: Rows, key: Any) -> Rows:
    """Returns what each sample gives for an index that is the same for all.

    Raises:
        NotNative: It is not known, or fails.
    """
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        ends = (part.start, part.stop, part.step) if type(part) is slice else (part,)
        if not all(end is None or end is ... or type(end) is int for end in ends):
            raise NotNative("an array indexed by an array or a list is not known")
    whole = (slice(None), *parts)
    made = rows.reshaped(("[]", repr(parts)), lambda array: array[whole])
    if made.ndim == 0 and ... in parts:
        raise NotNative("an array without dimensions is not known")
    return made


def to_torch(rows: Rows) -> Rows:
    """Returns arrays as tensors of the same elements."""
    if rows.is_torch:
        return rows
    call = _from_numpy
    picks = replace(rows, is_python=False)
    if rows.steps:
        return picks.stepped(Step("torch", call))
    try:
        return replace(picks, view=call(rows.view), probe=call(rows.probe))
    except (TypeError, ValueError) as error:
        raise NotNative(f"torch takes no such array: {error}") from error


def _from_numpy(array: Any) -> Any:
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():  # nobody writes to it
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


def to_numpy(rows: Rows) -> Rows:
    """Returns tensors as arrays that share their memory."""
    if rows.ndim == 0:
        raise NotNative("an array without dimensions is not known")
    call = torch.Tensor.numpy
    if rows.steps:
        return rows.stepped(Step("numpy", call))
    return replace(rows, view=call(rows.view), probe=call(rows.probe))


def cast(rows: Rows, dtype: Any) -> Rows:
    """Returns the rows with elements of another dtype, one of torch for tensors, else NumPy's.

    Raises:
        NotNative: No such dtype.
    """
    if rows.is_torch and not isinstance(dtype, torch.dtype):
        raise NotNative(f"a cast to {dtype!r} is not known")
    if not rows.is_torch:
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise NotNative(f"a cast to {dtype!r} is not known") from None
        if dtype.kind not in "biuf" or not dtype.isnative:
            raise NotNative(f"a cast to {dtype} is not known")
    was = rows.probe.dtype
    if was == dtype:
        return rows
    if _kind(was) == "c":
        raise NotNative("a cast of complex numbers is not known")

    def call(array: Any) -> Any:
        if _kind(was) == "f" and _kind(dtype) in "iu":
            _check_range(array, dtype)
        return array.to(dtype) if isinstance(array, torch.Tensor) else array.astype(dtype)

    return rows.stepped(Step(("cast", str(dtype)), call))


def _kind(dtype: Any) -> str:
    if not isinstance(dtype, torch.dtype):
        return str(dtype.kind)
    if dtype is torch.bool:
        return "b"
    return "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"


def _check_range(array: Any, dtype: Any) -> None:
    """Refuses numbers whose conversion to an integer is another on each processor."""
    if not len(array):
        return
    least, most = float(array.min()), float(array.max())
    limits: Any = torch.iinfo(dtype) if isinstance(dtype, torch.dtype) else np.iinfo(dtype)
    if not (limits.min - 1 < least and most < limits.max):
        msg = f"numbers from {least} to {most} do not fit {dtype}"
        raise ValueError(msg)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one / other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}
"""Operators whose result for an element is one correctly rounded operation on it."""
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SMALL = 1 << 16


def calculated(symbol: str, left: Any, right: Any) -> Rows:
    """Returns rows of which each element was calculated with what is the same for all samples.

    Raises:
        NotNative: The operation is not known to be exact.
    """
    rows, other = (left, right) if isinstance(left, Rows) else (right, left)
    if not isinstance(rows, Rows) or isinstance(other, Each) or symbol not in _OPERATORS:
        raise NotNative(f"{described(left)} {symbol} {described(right)} is not known")
    dtype = rows.probe.dtype
    if dtype in _HALF or _kind(dtype) == "c" or (_kind(dtype) == "b" and symbol not in "==!="):
        raise NotNative(f"arithmetic on {dtype} is not known to be exact")
    if not rows.is_torch and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        raise NotNative("arithmetic of NumPy before version 2 depends on values")
    is_number = type(other) in (int, float)
    key: Any = (type(other).__name__, repr(other))
    if not is_number:
        key = _constant_key(rows, other)
    call = _OPERATORS[symbol]
    is_left = rows is left
    made = rows.stepped(
        Step(
            (symbol, is_left, key),
            (lambda array: call(array, other)) if is_left else (lambda array: call(other, array)),
            is_pointwise=is_number,
        )
    )
    if made.shape != rows.shape or made.is_torch != rows.is_torch:
        raise NotNative("arithmetic that changes the shape of a sample is not known")
    return made


def _constant_key(rows: Rows, other: Any) -> Any:
    """Returns what names a constant array; refuses one that batches would be broadcast to otherwise."""
    is_same = type(other) is torch.Tensor if rows.is_torch else type(other) is np.ndarray
    if not is_same or other.ndim > rows.ndim or rows.ndim == 0 or other.nbytes > _SMALL:
        raise NotNative(f"arithmetic with {name(type(other))} is not known to be exact")
    check_array(other)
    if _kind(other.dtype) in "bc" or other.dtype in _HALF:
        raise NotNative(f"arithmetic with {other.dtype} is not known to be exact")
    flat = np.ascontiguousarray(np.asarray(other))
    return str(other.dtype), tuple(other.shape), flat.tobytes()


def _same(rows: Rows) -> Rows:
    return rows


def _only_torch(rows: Rows, doing: str) -> None:
    if not rows.is_torch:
        raise NotNative(f"{doing} of {described(rows)} is not known")


def _only_numpy(rows: Rows, doing: str) -> None:
    if rows.is_torch or rows.ndim == 0:
        raise NotNative(f"{doing} of {described(rows)} is not known")


def _number(rows: Rows) -> Rows:
    """Returns the Python numbers of samples without dimensions, as `item()` does."""
    if rows.ndim:
        if rows.shape != (1,) * rows.ndim:
            raise NotNative("item() of an array of several elements")
        rows = rows.reshaped("item", lambda array: array.reshape(-1))
    if rows.is_torch:
        rows = rows.stepped(Step("numpy", torch.Tensor.numpy)) if rows.steps else _viewed(rows)
    kind, size = rows.probe.dtype.kind, rows.probe.dtype.itemsize
    if kind not in "biuf" or (kind == "u" and size == 8):
        raise NotNative(f"item() of {rows.probe.dtype} is not known")
    wide = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}[kind]
    return replace(cast(rows, wide), is_python=True)


def _viewed(rows: Rows) -> Rows:
    return replace(rows, view=rows.view.numpy(), probe=rows.probe.numpy())


def _to(rows: Rows, dtype: Any) -> Rows:
    _only_torch(rows, "to()")
    return cast(rows, dtype)


def _astype(rows: Rows, dtype: Any, *, copy: bool = True) -> Rows:  # noqa: ARG001 (the same numbers)
    if rows.is_torch:
        raise NotNative("astype() of a tensor")
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
        raise NotNative("an array without dimensions is not known")
    key = tuple(slice(None) if at not in drop else 0 for at in range(len(shape)))
    return of_rows(rows, key) if drop else rows


def _permute(rows: Rows, *dims: Any) -> Rows:
    dims = dims[0] if len(dims) == 1 and type(dims[0]) in (tuple, list) else dims
    order = [range(rows.ndim)[_int(dim)] for dim in dims]
    if sorted(order) != list(range(rows.ndim)):
        raise NotNative("a permutation of other dimensions")
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
        raise NotNative("reshape() of a scalar, or to another shape than ints, is not known")
    whole = np.empty(rows.shape, np.bool_).reshape(shape).shape if rows.shape else shape
    if not rows.shape and any(each not in (1, -1) for each in shape):
        raise NotNative("a sample has another number of elements")
    whole = tuple(1 if not rows.shape else each for each in whole)
    if not rows.is_torch and not whole:
        raise NotNative("an array without dimensions is not known")
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
    """Returns whether the rows have a shape without being copied."""
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
        raise NotNative("view() of an array, or as another dtype, is not known")
    if rows.steps and any(not step.is_pointwise for step in rows.steps):
        raise NotNative("view() after other operations is not known")
    made = _reshape(rows, *shape)
    if len(made.steps) != len(rows.steps):
        raise NotNative("view() of elements that are not side by side")
    return made


def _flatten(rows: Rows) -> Rows:
    return _reshape(rows, -1)


def _transposed(rows: Rows) -> Rows:
    if rows.is_torch and rows.ndim != 2:
        raise NotNative("T of a tensor that has not two dimensions")
    return _permute(rows, *range(rows.ndim)[::-1])


def _numpy(rows: Rows) -> Rows:
    _only_torch(rows, "numpy()")
    return to_numpy(rows)


def _int(value: Any) -> int:
    if type(value) is not int:
        raise NotNative(f"a dimension {value!r} is not known")
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
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "permute": _torch_only(_same),
    "transpose": _transpose,
    "reshape": _reshape,
    "view": _view,
    "flatten": _flatten,
    "ravel": _flatten,
}
"""The methods of samples that are known, as functions of the rows and the arguments."""
METHODS["permute"] = _permute
T = _transposed
