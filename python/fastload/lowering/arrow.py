"""Columns of Arrow tables, as native columns over the same memory.

Owns what is read of Arrow's layout: numbers, bools, text, bytes, and lists of numbers, in any number
of chunks. Arrow's memory is shared, but for bools, which Arrow packs into bits, and for small columns of
several chunks, which are joined. Refuses nulls, and every other type.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastload import _arrays, _lib
from fastload.lowering.registry import NotNative

__all__ = ["Stored", "binaries", "check_nulls", "indices", "joined", "numbers", "parts", "strings"]

_JOINED_BYTES = 64 << 20
"""Largest column whose chunks are joined: one array is faster to read than many."""

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
"""The kinds of numbers, by the names of Arrow's types; an unsigned long has no like in torch."""


_Lists = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""The entries of an array of lists, and where each list begins and ends in them."""


@dataclass(frozen=True)
class Stored:
    """A column of numbers.

    Attributes:
        native: The column of `fastload._lib`.
        dims: How many dimensions a sample has.
        source: What Arrow calls the type of a number.
        least: The fewest entries of a list at any depth, as far as that is below 2; 1 without lists.
        is_even: Whether all lists are of one length.
    """

    native: _lib.Column
    dims: int
    source: str
    least: int
    is_even: bool = True


def numbers(column: Any, floats: str) -> Stored:
    """Returns a column of numbers or bools, or of lists of them.

    Args:
        column: A chunked array. Lists in lists must be of one length.
        floats: The type that floating point numbers are converted to; whole ones become int64.

    Raises:
        NotNative: Another type, nulls, or inner lists of different lengths.
    """
    chunks = _chunks(column)
    source, dims = _element(chunks[0].type)
    kind = _NUMBERS.get(source)
    if kind is None:
        raise _unread(chunks[0].type)
    dtype = floats if kind == "float" else kind
    if not dims or _is_fixed(chunks[0].type):
        arrays = [_rectangle(chunk) for chunk in chunks]
    else:
        lists = [_lists(chunk) for chunk in chunks]
        stacked = _stacked(lists)
        if stacked is None:
            return _ragged(lists, dtype, dims, source)
        arrays = stacked
    native = joined([_rows(array, dtype) for array in arrays])
    return Stored(native, dims, source, min(arrays[0].shape[1:], default=1))


def _ragged(lists: list[_Lists], dtype: str, dims: int, source: str) -> Stored:
    """Returns a column of lists of different lengths."""
    ragged = [_lib.Ragged(_rows(entries, dtype), _rows(offsets)) for entries, offsets in lists]
    lengths = [int(np.diff(offsets).min(initial=1)) for _, offsets in lists]
    inner = lists[0][0].shape[1:]
    return Stored(joined(ragged), dims, source, min(*lengths, *inner, 1), is_even=False)


def strings(column: Any) -> _lib.Column:
    """Returns a column of text.

    Raises:
        NotNative: Another type, or nulls.
    """
    chunks = _chunks(column)
    if str(chunks[0].type) not in ("string", "large_string"):
        raise _unread(chunks[0].type)
    return joined([_lib.Text(_bytes(chunk)) for chunk in chunks])


def binaries(column: Any) -> list[_lib.Ragged]:
    """Returns columns of bytes, one for each chunk of a column of Arrow's binary or large binary.

    Raises:
        NotNative: Nulls.
    """
    return [_bytes(chunk) for chunk in _chunks(column)]


def joined(columns: list[Any]) -> _lib.Column:
    """Returns one column of several, one after the other."""
    return columns[0] if len(columns) == 1 else _lib.Concat(columns)


def _bytes(chunk: Any) -> _lib.Ragged:
    """Returns the bytes of an array of text or binary values, which Arrow lays out alike."""
    width = np.int64 if str(chunk.type).startswith("large_") else np.int32
    _, places, values = chunk.buffers()
    offsets = np.zeros(1, width)
    if len(chunk):
        offsets = np.frombuffer(places, width)[chunk.offset :][: len(chunk) + 1]
    data = np.frombuffer(values or b"", np.uint8)
    return _lib.Ragged(_rows(data), _rows(offsets))


def indices(column: Any) -> _lib.Rows:
    """Returns the native indices of a column of unsigned 64-bit numbers."""
    chunks = _chunks(column)
    arrays = [np.asarray(chunk.to_numpy()).view(np.int64) for chunk in chunks]
    return _rows(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def parts(column: Any) -> list[Any]:
    """Returns the fields of a column of structs, each a chunked array.

    Raises:
        NotNative: Nulls.
    """
    check_nulls(column)
    fields: list[Any] = column.flatten()
    return fields


def check_nulls(array: Any) -> None:
    """Refuses nulls in an array, chunked or not.

    Raises:
        NotNative: There are some.
    """
    if array.null_count:
        msg = "it holds nulls"
        raise NotNative(msg, "fill them, or drop their rows")


def _chunks(column: Any) -> list[Any]:
    """Returns the chunks of a column, at least one.

    Raises:
        NotNative: One holds nulls.
    """
    check_nulls(column)
    if column.num_chunks > 1 and column.nbytes <= _JOINED_BYTES:
        whole = column.combine_chunks()
        return list(getattr(whole, "chunks", [whole]))
    return [chunk for chunk in column.chunks if len(chunk)] or [column.combine_chunks()]


def _element(kind: Any) -> tuple[str, int]:
    """Returns what the numbers in an Arrow type are called, and how deep in lists they are."""
    dims = 0
    while hasattr(kind, "value_type") and str(kind).startswith(
        ("list<", "large_list<", "fixed_size_list<")
    ):
        kind, dims = kind.value_type, dims + 1
    return str(kind), dims


def _is_fixed(kind: Any) -> bool:
    return hasattr(kind, "list_size")


def _lists(array: Any) -> _Lists:
    return _rectangle(array.values), np.asarray(array.offsets.to_numpy())


def _rectangle(array: Any) -> np.ndarray[Any, Any]:
    """Returns an array of numbers, or of lists that are of one length at each depth.

    Raises:
        NotNative: Lists of different lengths, or nulls.
    """
    check_nulls(array)
    if _is_fixed(array.type):
        inner = _rectangle(array.flatten())
        return inner.reshape(len(array), array.type.list_size, *inner.shape[1:])
    if hasattr(array.type, "value_type"):
        stacked = _stacked([_lists(array)])
        if stacked is None:
            msg = "its inner lists are of different lengths"
            raise NotNative(msg, "pad them to one length")
        return stacked[0]
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _stacked(lists: Sequence[_Lists]) -> list[np.ndarray[Any, Any]] | None:
    """Returns the lists of each chunk as rows of one shape, or None if their lengths differ."""
    lengths = [np.diff(offsets) for _, offsets in lists]
    length = int(lengths[0][0]) if len(lengths[0]) else 0
    if not all((each == length).all() for each in lengths):
        return None
    return [
        entries[offsets[0] : offsets[-1]].reshape(len(offsets) - 1, length, *entries.shape[1:])
        for entries, offsets in lists
    ]


def _rows(array: np.ndarray[Any, Any], dtype: str | None = None) -> _lib.Rows:
    return _lib.Rows(*_arrays.of_array(array), dtype)


def _unread(kind: Any) -> NotNative:
    return NotNative(f"it holds values of Arrow type {kind}")
