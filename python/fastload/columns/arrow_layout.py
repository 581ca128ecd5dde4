"""Arrow's memory layout, and native columns over it, for all readers of tables."""

from typing import Any

import numpy as np

from fastload import _lib
from fastload.memory import layout

__all__ = ["bytes_and_offsets", "chunks", "joined", "ragged_bytes", "rows"]

_JOINED_BYTES = 64 << 20
"""Bytes of the largest column whose chunks are joined: one array is faster to read than many."""


def chunks(array: Any) -> list[Any]:
    """Returns the non-empty chunks of a chunked array, at least one; those of a small array joined."""
    if array.num_chunks > 1 and array.nbytes <= _JOINED_BYTES:
        whole = array.combine_chunks()
        return list(getattr(whole, "chunks", [whole]))
    return [chunk for chunk in array.chunks if len(chunk)] or [array.combine_chunks()]


def bytes_and_offsets(chunk: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the bytes and offsets of text or binary values, which have the same layout."""
    width = np.int64 if str(chunk.type).startswith("large_") else np.int32
    _, places, values = chunk.buffers()
    offsets = np.zeros(1, width)
    if len(chunk):
        offsets = np.frombuffer(places, width)[chunk.offset :][: len(chunk) + 1]
    return np.frombuffer(values or b"", np.uint8), offsets


def ragged_bytes(chunk: Any) -> _lib.Ragged:
    """Returns text or binary values as single bytes, one row for each value."""
    data, offsets = bytes_and_offsets(chunk)
    return _lib.Ragged(rows(data), rows(offsets))


def rows(array: Any, dtype: str | None = None) -> _lib.Rows:
    """Returns the rows of an array, of its dtype or of another."""
    return _lib.Rows(*layout.of_array(array), dtype)


def joined(columns: list[Any]) -> _lib.Column:
    """Returns one column of several, one after the other."""
    return columns[0] if len(columns) == 1 else _lib.concat(columns)
