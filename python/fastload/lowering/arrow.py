"""Columns of Arrow tables, as native columns over the same memory.

Reads Arrow's layout: numbers, bools, text, bytes, and lists of numbers or text, of any
lengths and in any number of chunks. Arrow's memory is shared, but for bools, which Arrow packs into bits, and for small columns of
several chunks, which are joined. Refuses nulls, and every other type.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastload import _lib
from fastload.columns.arrow import (
    STRINGS,
    bytes_and_offsets,
    chunks,
    joined,
    lists,
    ragged_bytes,
    rows,
)
from fastload.registry import NotNative

__all__ = [
    "Stored",
    "binaries",
    "check_nulls",
    "ends_in_zero",
    "indices",
    "numbers",
    "parts",
    "strings",
]

_NUMBERS = {
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "int64": "int64",
    "uint8": "int64",
    "uint16": "int64",
    "uint32": "int64",
    "halffloat": "float",
    "float": "float",
    "double": "float",
    "bool": "bool",
}
"""Dtypes by the names of Arrow's types; torch has no equivalent of uint64."""


@dataclass(frozen=True)
class Stored:
    """A column of numbers.

    Attributes:
        native: The column of `fastload._lib`.
        dims: Number of dimensions of a sample.
        source: Arrow's name of the numbers' type.
        is_even: True if all lists are of one length.
        is_array: True if each sample, by itself, is an array.
    """

    native: _lib.Column
    dims: int
    source: str
    is_even: bool = True
    is_array: bool = True


def numbers(column: Any, floats: str, *, keep_empty: bool = False) -> Stored:
    """Returns a column of numbers or bools, or of lists of them.

    Args:
        column: A chunked array.
        floats: The type that floats are converted to; integers become int64.
        keep_empty: True if a list without lists is one, in place of an array without rows.

    Raises:
        NotNative: Another type, or nulls.
    """
    chunks = _chunks(column)
    source, dims = _element(chunks[0].type)
    kind = _NUMBERS.get(source)
    if kind is None:
        raise _unread(chunks[0].type)
    dtype = floats if kind == "float" else kind
    if not dims:
        return Stored(joined([rows(_rectangle(chunk), dtype) for chunk in chunks]), 0, source)
    spread = [_spread(chunk) for chunk in chunks]
    entries = [_rectangle(each) for each, _ in spread]
    shapes = {None if each is None else each.shape[1:] for each in entries}
    if len(shapes) > 1 or None in shapes or (keep_empty and any(map(_has_gaps, chunks))):
        native = joined([_tree(chunk, dtype) for chunk in chunks])
        is_array = all((_shapes(chunk) >= 0).all() for chunk in chunks)
        return Stored(native, dims, source, is_even=False, is_array=is_array)
    bounds = [offsets for _, offsets in spread]
    arrays: list[Any] = entries
    stacked = _stacked(arrays, bounds)
    if stacked is not None:
        return Stored(joined([rows(each, dtype) for each in stacked]), dims, source)
    pairs = zip(arrays, bounds, strict=True)
    ragged = [_lib.Ragged(rows(each, dtype), rows(offsets)) for each, offsets in pairs]
    return Stored(joined(ragged), dims, source, is_even=False)


def strings(column: Any) -> tuple[_lib.Column, str, int] | None:
    """Returns a column of text or bytes, or of lists of them.

    Returns:
        The column, "text" or "bytes", and how deep in lists they are; None for another type.

    Raises:
        NotNative: Nulls.
    """
    source, dims = _element(column.type)
    make = STRINGS.get(source)
    if make is None:
        return None
    chunks = [_tree(chunk) for chunk in _chunks(column)]
    return joined(chunks), "text" if make is _lib.text else "bytes", dims


def ends_in_zero(column: Any) -> bool:
    """Returns true if one of a column's values, which are bytes, ends in a zero byte."""
    for chunk in _chunks(column):
        data, offsets = bytes_and_offsets(chunk)
        ends = offsets[1:][np.diff(offsets) > 0]
        if not data[ends - 1].all():
            return True
    return False


def binaries(column: Any) -> list[_lib.Ragged]:
    """Returns columns of bytes, one for each chunk of a column of Arrow's binary or large binary.

    Raises:
        NotNative: Nulls.
    """
    return [ragged_bytes(chunk) for chunk in _chunks(column)]


def indices(column: Any) -> _lib.Rows:
    """Returns the native indices of a column of unsigned 64-bit numbers."""
    chunks = _chunks(column)
    arrays = [np.asarray(chunk.to_numpy()).view(np.int64) for chunk in chunks]
    return rows(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def parts(column: Any) -> dict[str, Any]:
    """Returns the fields of a column of structs by name, each a chunked array.

    Raises:
        NotNative: Nulls.
    """
    check_nulls(column)
    names = [field.name for field in column.type]
    return dict(zip(names, column.flatten(), strict=True))


def check_nulls(array: Any) -> None:
    """Refuses nulls in an array, chunked or not."""
    if array.null_count:
        msg = "it holds nulls"
        raise NotNative(msg, "fill them, or drop their rows")


def _chunks(column: Any) -> list[Any]:
    """Returns the chunks of a column without nulls, at least one."""
    check_nulls(column)
    return chunks(column)


def _element(kind: Any) -> tuple[str, int]:
    """Returns the name of the value type in an Arrow type, and its depth of lists."""
    dims = 0
    kind = _stored(kind)
    while _holds_lists(kind):
        kind, dims = _stored(kind.value_type), dims + 1
    return str(kind), dims


def _stored(kind: Any) -> Any:
    """Returns the storage type: `datasets` has extension types for arrays."""
    return getattr(kind, "storage_type", kind)


def _holds_lists(kind: Any) -> bool:
    name = str(_stored(kind))
    return name.startswith(("list<", "large_list<", "fixed_size_list<"))


def _spread(array: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Returns the entries of an array of lists, and where each list begins and ends in them."""
    check_nulls(array)
    return lists(getattr(array, "storage", array))


def _rectangle(array: Any) -> np.ndarray[Any, Any] | None:
    """Returns an array of numbers, or of lists that are of one length at each depth; None of others."""
    if not _holds_lists(array.type):
        check_nulls(array)
        return np.asarray(array.to_numpy(zero_copy_only=False))
    entries, offsets = _spread(array)
    inner = _rectangle(entries)
    stacked = None if inner is None else _stacked([inner], [offsets])
    return None if stacked is None else stacked[0]


def _stacked(
    entries: list[np.ndarray[Any, Any]], bounds: list[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]] | None:
    """Returns the lists of each chunk as rows of one shape, or None if their lengths differ."""
    lengths = [np.diff(offsets) for offsets in bounds]
    length = int(lengths[0][0]) if len(lengths[0]) else 0
    if not all((each == length).all() for each in lengths):
        return None
    return [
        each.reshape(len(offsets) - 1, length, *each.shape[1:])
        for each, offsets in zip(entries, bounds, strict=True)
    ]


def _tree(array: Any, dtype: str | None = None) -> _lib.Column:
    """Returns text or bytes, or lists of text, bytes or numbers of any lengths."""
    make = STRINGS.get(str(array.type))
    if make is not None:
        check_nulls(array)
        return make(ragged_bytes(array))
    if not _holds_lists(array.type):
        raise _unread(array.type)
    entries, offsets = _spread(array)
    if str(entries.type) in _NUMBERS:
        return _lib.Ragged(rows(_rectangle(entries), dtype), rows(offsets))
    return _lib.lists(_tree(entries, dtype), rows(offsets))


def _has_gaps(array: Any) -> bool:
    """Returns true if a list that should hold lists is empty."""
    entries, offsets = _spread(array)
    return _holds_lists(entries.type) and (not np.diff(offsets).all() or _has_gaps(entries))


def _shapes(array: Any) -> np.ndarray[Any, Any]:
    """Returns the shape of each list of numbers, `(N, depth)`; -1 where it is no array."""
    entries, offsets = _spread(array)
    lengths = np.diff(offsets)
    if not _holds_lists(entries.type):
        return lengths[:, None]
    inner = _shapes(entries)
    found = np.full((len(lengths), 1 + inner.shape[1]), -1)
    held = lengths > 0
    if held.any():
        starts = offsets[:-1][held]
        least, most = (each.reduceat(inner, starts) for each in (np.minimum, np.maximum))
        even = ((least == most) & (least >= 0)).all(1, keepdims=True)
        found[held] = np.where(even, np.column_stack([lengths[held], least]), -1)
    return found


def _unread(kind: Any) -> NotNative:
    return NotNative(f"it holds values of Arrow type {kind}")
