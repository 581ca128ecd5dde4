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

__all__ = ["check_array", "is_array", "of_rows", "taken"]


_EXACT = (np.ndarray, np.memmap, torch.Tensor)


def is_array(value: Any) -> bool:
    """Returns true if a value is an array or a tensor of the very class."""
    return type(value) in _EXACT


def check_array(array: Any) -> None:
    """Refuses arrays whose rows are not plain numbers in memory.

    Raises:
        NotNative: Why.
    """
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


def taken(array: Any, key: Any) -> Each:
    """Indexes an array with an index that differs between samples.

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
        refuse("a scalar is indexed")
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
        refuse("an index by several values, or behind other than full slices, is not known")
    if before:
        move = torch.movedim if type(array) is torch.Tensor else np.moveaxis
        moved = taken(move(array, places[0], 0), key[places[0]])
        if type(key[places[0]]) is slice:
            refuse("a window along another dimension than the first is not known")
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
        refuse(f"its indices go from {low} to {high}, and what they index has {length}")
    first = index.first + shift
    return first, first + index.step * (index.count - 1)


def _windows(array: Any, window: slice) -> Rows:
    start, stop, step = window.start, window.stop, window.step
    start = Index(0, 0, 1) if start is None else start
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
        is_index = key.probe.dtype == torch.int64 if key.is_torch else key.probe.dtype.kind in "iu"
        if is_index and (not key.is_torch or type(array) is torch.Tensor):
            places = np.asarray(key.view)
            places = places if key.picks is None else places[key.picks]
            return places.astype(np.int64)
    if isinstance(key, Objects) and key.kinds == {int}:
        return np.asarray(key.values)
    return refuse(f"an array indexed by {described(key)} is not known")


def _picked(array: Any, places: np.ndarray[Any, Any]) -> Rows:
    check_count(len(places))
    length = len(array)
    if places.dtype != np.int64 or places.min() < -length or places.max() >= length:
        refuse(f"an index leaves what it indexes, which has {length}")
    return replace(over(array), picks=np.where(places < 0, places + length, places))


def of_rows(rows: Rows, key: Any) -> Rows:
    """Indexes each sample with an index that is the same for all.

    Raises:
        NotNative: It is not known, or fails.
    """
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        ends = (part.start, part.stop, part.step) if type(part) is slice else (part,)
        if not all(end is None or end is ... or type(end) is int for end in ends):
            refuse("an array indexed by an array or a list is not known")
    whole = (slice(None), *parts)
    made = rows.reshaped(("[]", repr(parts)), lambda array: array[whole])
    if made.ndim == 0 and ... in parts:
        refuse("an array without dimensions is not known")
    return made
