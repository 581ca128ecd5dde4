"""Rows of arrays: what an array gives for an index that differs from sample to sample.

Owns the ways into an array that are known: a row, a window, a row whose place lies in a table. None of them copies
anything.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading.values import (
    Each,
    Index,
    Objects,
    Rows,
    check_count,
    described,
    over,
)
from fastload.registry import refuse

__all__ = ["check_array", "differs", "is_array", "is_plain", "of_rows", "taken"]


_EXACT = (np.ndarray, np.memmap, torch.Tensor)


def is_array(value: Any) -> bool:
    """Returns true if a value is an array or a tensor of the very class."""
    return type(value) in _EXACT


def check_array(array: Any) -> None:
    """Refuses arrays whose rows are not plain numbers in memory."""
    if type(array) is torch.Tensor:
        if array.requires_grad:
            refuse("a tensor requires gradients", "detach() it")
        if not array.is_cpu or array.layout is not torch.strided or array.is_quantized:
            refuse("a tensor is not dense in the CPU's memory", "make it so")
        if any(getattr(array, "names", ())) or array.is_nested or array.is_conj() or array.is_neg():
            refuse("a tensor is named or nested, or conjugated or negated lazily", "make it plain")
    elif array.dtype.kind not in "biufc":
        refuse(f"an array has elements of {array.dtype}", "make it an array of numbers")
    elif not array.dtype.isnative:
        refuse("an array has foreign byte order", "convert it to this machine's")


def taken(array: Any, key: Any) -> Rows:
    """Indexes an array of the user's with an index that differs between samples."""
    check_array(array)
    if type(key) is tuple:
        return _taken_at(array, key)
    if array.ndim == 0:
        refuse("a scalar is indexed")
    if type(key) is slice:
        return _windows(array, key)
    if isinstance(key, Index):
        return _rows(array, key)
    return _picked(array, _places(key, array))


def _taken_at(array: Any, key: tuple[Any, ...]) -> Rows:
    places = [place for place, part in enumerate(key) if differs(part)]
    at, part = places[0], key[places[0]]
    before, behind = key[:at], key[at + 1 :]
    are_whole = all(type(each) is slice and each == slice(None) for each in before)
    if len(places) != 1 or type(part) is tuple or not are_whole or at >= array.ndim:
        refuse("an index by several values, or behind other than full slices, is not known")
    if type(part) is slice:
        if before:
            refuse("a window along another dimension than the first is not known")
        moved, before = taken(array, part), (slice(None),)
    elif before:
        move = torch.movedim if type(array) is torch.Tensor else np.moveaxis
        moved = replace(taken(move(array, at, 0), part), owner=array)
    else:
        moved = taken(array, part)
    return of_rows(moved, (*before, *behind)) if before or behind else moved


def differs(key: Any) -> bool:
    """Returns true if an index differs from sample to sample."""
    if type(key) is slice:
        return any(isinstance(each, Each) for each in (key.start, key.stop, key.step))
    return isinstance(key, Each) or (type(key) is tuple and any(map(differs, key)))


def is_plain(key: Any) -> bool:
    """Returns true if an index consists of ints, slices of ints, `...` and None."""
    if type(key) is slice:
        return {type(key.start), type(key.stop), type(key.step)} <= {int, type(None)}
    if type(key) is tuple:
        return all(type(part) is not tuple and is_plain(part) for part in key)
    return key is None or key is ... or type(key) is int


def _rows(array: Any, index: Index) -> Rows:
    index = index.within(len(array))
    if index.step < 0:
        return _picked(array, np.arange(index.count) * index.step + index.first)
    low, high = index.ends
    return over(array[low : high + 1 : index.step], owner=array)


def _windows(array: Any, window: slice) -> Rows:
    start, stop, step = window.start, window.stop, window.step
    if not (isinstance(start, Index) and isinstance(stop, Index) and start.step == stop.step):
        refuse("a slice whose length differs from sample to sample")
    if start.step < 1 or not (step is None or (type(step) is int and step > 0)):
        refuse("a window that goes backwards is not known")
    size = stop.first - start.first
    if size < 1 or start.first < 0 or stop.ends[1] > len(array):
        refuse(
            f"its windows go from {start.first} to {stop.ends[1]}, and what they index has {len(array)}"
        )
    view: Any
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
        is_index = key.dtype == torch.int64 if key.is_torch else key.dtype.kind in "iu"
        if is_index and (not key.is_torch or type(array) is torch.Tensor):
            places = np.asarray(key.view)
            places = places if key.picks is None else places[key.picks]
            if key.dtype == np.uint64 and places.max() > np.iinfo(np.int64).max:
                refuse("an index of more than 63 bits")
            return places.astype(np.int64)
    if isinstance(key, Objects) and key.kinds == {int}:
        return np.asarray(key.values)
    return refuse(f"an array indexed by {described(key)} is not known")


def _picked(array: Any, places: np.ndarray[Any, Any]) -> Rows:
    check_count(len(places))
    length = len(array)
    if places.dtype != np.int64 or places.min() < -length or places.max() >= length:
        refuse(f"an index is out of range for {length} rows")
    return replace(over(array), picks=np.where(places < 0, places + length, places))


def of_rows(rows: Rows, key: Any) -> Rows:
    """Indexes each sample with an index that is the same for all."""
    parts = key if type(key) is tuple else (key,)
    if not is_plain(key):
        refuse("an array indexed by an array or a list is not known")
    whole = (slice(None), *parts)
    made = rows.reshaped(("[]", repr(parts)), lambda array: array[whole])
    if made.ndim == 0 and ... in parts:
        refuse("an array without dimensions is not known")
    return made
