"""`Csv`: columns of CSV files."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, final

from fastload.columns import arrow
from fastload.columns.column import Table, dtype_name
from fastload.columns.files import expand

_LONGEST_ROW = 16 << 20
"""Bytes. Without a limit, an unterminated quoted field would extend to the end of the file."""


@final
class Csv(Table):
    """One column of a CSV file, or several: pyarrow parses the file once, into memory.

    Types are those that `pyarrow.csv.read_csv` infers from the whole column: int64, float64, bool or else text.
    Floats are exact, as Python's `float` reads them. Quoted fields may hold delimiters and line breaks. A
    missing number is NaN in a column of floats, and refused in others, as `Arrow` refuses nulls. An empty text
    is `""`. If memory runs out while the file is parsed, pyarrow may abort the process.

    Args:
        path: The file.
        columns: The name of a column; or a list of names, for samples that are dicts of them.
            None: all columns.
        delimiter: The separator of fields: one ASCII character.
        header: True: the first row has the column names. False: there is no such row, and columns are named
            `"f0"`, `"f1"`, …; a list of names: the same, with these names.
        dtype: One of torch's dtypes, int, float, bool, str, or a type of pyarrow, for all columns; or a dict
            by name. None: the types that pyarrow infers.
        quote: The quotation mark around fields with delimiters or line breaks. None: fields are never quoted.
        missing: The fields that mean a missing value, in columns that are not text. None: those of pyarrow,
            such as `""`, `"NA"` and `"nan"`; without `"nan"` among them it is the float NaN.
        encoding: The file's encoding, by Python's name.

    Raises:
        ImportError: pyarrow is not installed.
        TypeError: A path or a dtype of another type; or a column of an unsupported type, such as dates.
        KeyError: No such column, or several.
        ValueError: An invalid delimiter or quote, or a missing integer or bool; names the file, the column and
            the first such row, counted from 0.
        OSError: The file cannot be read or decoded, a row has more or fewer fields than the first, or a field is
            not of its column's dtype; names the file, the column, and the row, where the first in the file is 1.

    Examples:
        >>> price = Csv("houses.csv", "price")
        >>> table = Csv("houses.csv", ["rooms", "area", "price"])
        >>> dataset = fastload.Dataset((table.columns["area"], table.columns["price"]))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: str | Sequence[str] | None = None,
        *,
        delimiter: str = ",",
        header: bool | Sequence[str] = True,
        dtype: Any = None,
        quote: str | None = '"',
        missing: Sequence[str] | None = None,
        encoding: str = "utf-8",
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            msg = f"expected one path, found a {type(path).__name__}"
            raise TypeError(msg)
        self._paths = [path] = expand([path])
        if columns is not None and not columns and not isinstance(columns, str):
            msg = "columns is an empty list; give at least one name"
            raise ValueError(msg)
        _check_marks(delimiter, quote)
        options = {"delimiter": delimiter, "header": header, "dtype": dtype}
        options |= {"quote": quote, "missing": missing, "encoding": encoding}
        self._arguments = (path, columns), options
        wanted = [columns] if isinstance(columns, str) else columns
        table = _read(path, wanted, **options)
        natives = {}
        for name in table.column_names:
            try:
                natives[name] = arrow.native(_with_nan(table.column(name)), name)
            except (TypeError, ValueError) as error:
                advice = (
                    "dtype=str reads it as text"
                    if isinstance(error, TypeError)
                    else "read the table with pyarrow.csv.read_csv for that, and give it to Arrow"
                )
                msg = f"in {path!r}, {error}; {advice}"
                raise type(error)(msg) from error
        super().__init__(natives, columns if isinstance(columns, str) else table.column_names)

    def __repr__(self) -> str:
        return f"Csv({self._names!r} of {len(self)} rows)"


def _with_nan(column: Any) -> Any:
    """Returns a column of an Arrow table; floats with NaN in the place of nulls."""
    import pyarrow as pa

    return column.fill_null(float("nan")) if pa.types.is_floating(column.type) else column


def _check_marks(delimiter: str, quote: str | None) -> None:
    for mark in (delimiter, quote):
        if mark is not None and not (len(mark) == 1 and mark.isascii() and mark not in "\r\n"):
            msg = (
                "delimiter and quote are one ASCII character each, and not line breaks; "
                f"found {mark!r}"
            )
            raise ValueError(msg)
    if delimiter == quote:
        msg = f"{delimiter!r} cannot be both delimiter and quote"
        raise ValueError(msg)


def _read(
    path: str,
    columns: Sequence[str] | None,
    *,
    delimiter: str,
    header: bool | Sequence[str],
    dtype: Any,
    quote: str | None,
    missing: Sequence[str] | None,
    encoding: str,
) -> Any:
    """Returns columns of a file as an Arrow table, each in one chunk if pyarrow can hold it so."""
    pa = arrow.import_pyarrow()
    from pyarrow import csv

    names = [] if isinstance(header, bool) else list(header)
    read = csv.ReadOptions(
        encoding=encoding, column_names=names, autogenerate_column_names=header is False
    )
    parse = csv.ParseOptions(
        delimiter=delimiter, quote_char=quote or False, newlines_in_values=quote is not None
    )
    convert = csv.ConvertOptions(null_values=None if missing is None else list(missing))
    with arrow.naming(path):
        try:
            return _parse(path, columns, dtype, read, parse, convert)
        except pa.ArrowInvalid:
            # One thread counts rows, so that an error has a number; larger blocks take longer rows.
            read.use_threads, read.block_size = False, _LONGEST_ROW
        return _parse(path, columns, dtype, read, parse, convert)


def _parse(
    path: str, columns: Sequence[str] | None, dtype: Any, read: Any, parse: Any, convert: Any
) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    names: list[str] = []
    try:
        with csv.open_csv(path, read, parse) as reader:
            schema = reader.schema
        names = schema.names
        wanted = list(dict.fromkeys(names if columns is None else columns))
        types = _types(dtype, wanted)
        for name in [*wanted, *types]:
            arrow.place(schema, name, repr(path))
        convert.include_columns, convert.column_types = wanted, types
        table = csv.read_csv(path, read, parse, convert)
        # Invalid bytes make a column binary; if its dtype is text, they are an error that names the row.
        others = {each.name for each in table.schema if pa.types.is_binary(each.type)} - set(types)
        if others:
            convert.column_types = types | dict.fromkeys(others, pa.string())
            table = csv.read_csv(path, read, parse, convert)
    except pa.ArrowInvalid as error:
        words = re.sub(
            r"In CSV column #(\d+)", lambda found: f"column {names[int(found[1])]!r}", str(error)
        )
        if "straddling" in words:
            words = f"a row has more than {_LONGEST_ROW >> 20} MiB, or a quoted field does not end"
        raise pa.ArrowInvalid(words) from error
    return table.combine_chunks()


def _types(dtype: Any, names: list[str]) -> dict[str, Any]:
    """Returns the Arrow types that `dtype` gives, by column."""
    if dtype is None:
        return {}
    if not isinstance(dtype, Mapping):
        return dict.fromkeys(names, _type(dtype))
    return {name: _type(each) for name, each in dtype.items()}


def _type(dtype: Any) -> Any:
    import pyarrow as pa

    if isinstance(dtype, pa.DataType):
        return dtype
    name = dtype_name(dtype)
    try:
        return pa.type_for_alias("string" if name == "text" else name)
    except ValueError:
        msg = f"Arrow has no type for dtype {dtype}; give another, or a type of pyarrow"
        raise TypeError(msg) from None
