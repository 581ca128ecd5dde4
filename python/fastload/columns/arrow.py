"""`Arrow`: a column of an Arrow table; and Arrow's memory as native columns, for all readers of tables.

Finds a column of a table or of an IPC file and reads it in place. Values keep their type. Refuses nulls, naming
the first, and every type that does not map to a tensor, a str or bytes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, final

import numpy as np

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.files import one_or_more
from fastload.memory import layout

_JOINED_BYTES = 64 << 20
"""Bytes of the largest column whose chunks are joined: one array is faster to read than many."""

STRINGS = {
    "string": _lib.text,
    "large_string": _lib.text,
    "binary": _lib.binary,
    "large_binary": _lib.binary,
}
"""Arrow's types of text and bytes, with what makes a column of such values."""


@final
class Arrow(Column):
    """A column of an Arrow table, over the table's own memory.

    Numbers, booleans and lists of them come as tensors of the column's own dtype, lists with a dimension of
    their length; text as `str`; binary as `bytes`. Dictionary-encoded values come decoded. Lists of one length
    are stacked in a batch, as by torch's `default_collate`; different lengths raise its error.

    Args:
        source: A `pyarrow.Table` or `RecordBatch`, a `ChunkedArray` or `Array`, anything with Arrow's stream
            interface (a data frame of polars or pandas), or the path of an IPC file or stream (`.arrow`,
            `.feather`).
        column: The column's name; None for an array.
        memory_map: True if a file is mapped rather than read. Numbers are read as batches touch them; text is read
            once, for a check, when the column is made. The process gets SIGBUS if the file is truncated while in use.

    Raises:
        ImportError: pyarrow is not installed.
        KeyError: No such column, or several.
        TypeError: Another type, such as dates, decimals or structs.
        ValueError: Nulls; the message names the first.
        OSError: The file cannot be read or is damaged.

    Examples:
        >>> Arrow("table.arrow", "price")[0]
        tensor(9.5000, dtype=torch.float64)
    """

    def __init__(self, source: Any, column: str | None = None, *, memory_map: bool = False) -> None:
        if isinstance(source, str | os.PathLike):
            self._paths = [path] = one_or_more([source])
            if column is None:
                msg = f"the column of {path!r} to be read is needed: Arrow(path, column)"
                raise TypeError(msg)
            self._arguments = (path, column), {"memory_map": memory_map}
            array = _read(path, column, memory_map=memory_map)
        else:
            array = _pick(source, column)
            pa = import_pyarrow()
            alone = array if column is None else pa.table({column: array})
            self._arguments = (alone, column), {}
        self._name = "" if column is None else column
        self._native, self._form = native(array, self._name)

    def __repr__(self) -> str:
        return f"Arrow({self._name!r}, {len(self)} of {self._describe()})"


def import_pyarrow() -> Any:
    """Returns pyarrow.

    Raises:
        ImportError: It is not installed; the message says how to install it.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        msg = 'columns of Arrow tables and CSV files need pyarrow: pip install "fastload[tables]"'
        raise ImportError(msg) from error
    return pa


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Makes pyarrow's errors name the file.

    Raises:
        MemoryError: pyarrow's.
        OSError: The system's errors unchanged, and all other errors of pyarrow.
    """
    pa = import_pyarrow()
    try:
        yield
    except MemoryError as error:
        msg = f"cannot read {path!r}: {error}"
        raise MemoryError(msg) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        if isinstance(error, UnicodeEncodeError) and error.object == path:
            msg = f"cannot read {path!r}: pyarrow opens files with names in UTF-8 only; rename the file"
            raise OSError(msg) from error
        msg = f"cannot read {path!r}: {error}"
        raise OSError(msg) from error


def _pick(source: Any, name: str | None) -> Any:
    """Returns the column of a table, or an array, as a chunked array.

    Raises:
        KeyError: No such column, or several.
        TypeError: Neither a table nor an array, or a name where there is none to choose.
    """
    pa = import_pyarrow()
    if isinstance(source, pa.ChunkedArray | pa.Array):
        if name is not None:
            msg = f"an array has no column {name!r}; leave the name out"
            raise TypeError(msg)
        return source if isinstance(source, pa.ChunkedArray) else pa.chunked_array([source])
    if not isinstance(source, pa.Table):
        if not (isinstance(source, pa.RecordBatch) or hasattr(source, "__arrow_c_stream__")):
            msg = f"expected an Arrow table, an array or a path, found {type(source).__name__}"
            raise TypeError(msg)
        source = pa.table(source)
    if name is None:
        msg = f"a table needs the name of a column: one of {', '.join(source.column_names)}"
        raise TypeError(msg)
    return source.column(place(source.schema, name, "the table"))


def _read(path: str, name: str, *, memory_map: bool) -> Any:
    """Returns the column of an IPC file or stream as a chunked array; only its own bytes are read.

    Raises:
        KeyError: No such column, or several.
        OSError: The file cannot be read or is damaged.
    """
    pa = import_pyarrow()
    with naming(path):
        with pa.memory_map(path) if memory_map else pa.OSFile(path) as file:
            opener = pa.ipc.open_file if file.read(6) == b"ARROW1" else pa.ipc.open_stream
            file.seek(0)
            number = place(opener(file).schema, name, repr(path))
            file.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=[number])
            found = opener(file, options=options).read_all().column(0)
        found.validate(full=True)
    return found


def native(array: Any, name: str) -> tuple[_lib.Column, Literal["tensor", "text", "bytes"]]:
    """Returns the native column over a chunked array, and the form of its samples.

    Raises:
        TypeError: A type that samples cannot have.
        ValueError: Nulls.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type) or pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.large_binary())
    if array.null_count:
        raise _null(name, _first_null(array))
    if pa.types.is_null(array.type):  # a column without rows
        array = array.cast(pa.string())
    parts = chunks(array)
    if (make := STRINGS.get(str(array.type))) is not None:
        form: Literal["text", "bytes"] = "text" if make is _lib.text else "bytes"
        return joined([make(ragged_bytes(chunk)) for chunk in parts]), form
    first, columns = 0, []
    for chunk in parts:
        columns.append(_numbers(chunk, name, first))
        first += len(chunk)
    return joined(columns), "tensor"


def _numbers(chunk: Any, name: str, first: int) -> _lib.Column:
    """Returns the column of numbers, or of lists of them, whose first row is row `first` of the whole."""
    import pyarrow as pa

    if not (pa.types.is_list(chunk.type) or pa.types.is_large_list(chunk.type)):
        return rows(_rectangle(chunk, name, first, 1))
    values, offsets = lists(chunk)
    if values.null_count:
        null = _first_null(values)
        raise _null(name, first + int(np.searchsorted(offsets, null, "right")) - 1)
    return _lib.Ragged(rows(_rectangle(values, name, first, 0)), rows(offsets))


def _rectangle(array: Any, name: str, first: int, per_row: int) -> np.ndarray[Any, Any]:
    """Returns numbers, or fixed-size lists of them, `per_row` to a row; 0 if that is unknown."""
    import pyarrow as pa

    kind = array.type
    if array.null_count:
        null = _first_null(array)
        raise _null(name, first + null // per_row if per_row else None)
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner = _rectangle(array.flatten(), name, first, per_row * size)
        return inner.reshape(len(array), size, *inner.shape[1:])
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        msg = (
            f"column {name!r} is of Arrow type {kind}, which is not a tensor, text or bytes; cast it to a "
            "number or text first, or flatten() structs"
        )
        raise TypeError(msg)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def place(schema: Any, name: str, where: str) -> int:
    """Returns the position of a column in the table that `where` names.

    Raises:
        KeyError: No such column, or several.
    """
    places: list[int] = schema.get_all_field_indices(name)
    if len(places) != 1:
        found = "several columns" if places else "no column"
        msg = f"{where} has {found} {name!r}; it has {', '.join(schema.names)}"
        raise KeyError(msg)
    return places[0]


def _first_null(array: Any) -> int:
    import pyarrow as pa

    return int(array.is_null().index(pa.scalar(True)).as_py())


def _null(name: str, row: int | None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    msg = (
        f"column {name!r} is null{where}, and a batch cannot hold nulls; fill them "
        "(pyarrow.compute.fill_null), or drop their rows (Table.drop_null)"
    )
    return ValueError(msg)


def chunks(array: Any) -> list[Any]:
    """Returns the non-empty chunks of a chunked array, at least one; those of a small array joined."""
    if array.num_chunks > 1 and array.nbytes <= _JOINED_BYTES:
        whole = array.combine_chunks()
        return list(getattr(whole, "chunks", [whole]))
    return [chunk for chunk in array.chunks if len(chunk)] or [array.combine_chunks()]


def lists(array: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Returns the values in an array of lists, and where each list begins and ends in them."""
    if hasattr(array.type, "list_size"):
        return array.flatten(), np.arange(len(array) + 1) * array.type.list_size
    places = np.asarray(array.offsets.to_numpy())
    if not len(places):  # an array without rows may have no offsets
        return array.values.slice(0, 0), np.zeros(1, np.int64)
    first = int(places[0])
    offsets = places - first if first else places
    return array.values.slice(first, int(offsets[-1])), offsets


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
    memory = layout.of_array(array)
    steps = [] if dtype in (None, memory.dtype) else [("cast", dtype)]
    return _lib.Rows(*memory, *steps)


def joined(columns: list[Any]) -> _lib.Column:
    """Returns one column of several, one after the other."""
    return columns[0] if len(columns) == 1 else _lib.concat(columns)
