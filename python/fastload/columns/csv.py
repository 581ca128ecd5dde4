"""`Csv`: columns of a table that is text."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from fastload import _lib
from fastload.columns.paths import expand
from fastload.columns.progress import progress
from fastload.columns.table import Table, dtype_name

__all__ = ["Csv"]

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""The fields that are no value, as to `pandas.read_csv`."""


@final
class Csv(Table):
    """One column of a table that is text, or several: the file is parsed once, into memory.

    Types are those that `pandas.read_csv` finds: int64, float64 where a number is no whole one or missing
    (then it is NaN), uint64 for numbers beyond int64, bool, and otherwise text. A text that is missing is
    an error of its own sample. Floats are exact, as `float_precision="round_trip"` and Python's `float`
    have them. Rows may be shorter than the header, and then lack values; longer ones are refused.

    Args:
        path: The file, in UTF-8.
        columns: The name of a column; or a list of names, which makes samples that are dicts of them.
            None: all columns.
        delimiter: What is between fields: one ASCII character.
        header: Whether the first row has the names of columns. Without it they are `"0"`, `"1"`, …
        dtype: One of torch's dtypes, or int, float, bool or str, for all columns; or a dict by name.
        quote: What is around fields that have delimiters or ends of lines in them. None: nothing is.
        missing: The fields that stand for no value. None: those of pandas.

    Raises:
        TypeError: A path, or a dtype, of another type.
        KeyError: There is no such column.
        ValueError: The delimiter or the quote is none.
        OSError: The file cannot be read, is no such table or no UTF-8, or a value is not of the type that
            its column is to have; names the line and the column.

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
        header: bool = True,
        dtype: Any = None,
        quote: str | None = '"',
        missing: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            msg = f"expected one path, found a {type(path).__name__}"
            raise TypeError(msg)
        [self._path] = expand([path])
        if columns is not None and not columns and not isinstance(columns, str):
            msg = "columns is a list without names; give at least one"
            raise ValueError(msg)
        one = isinstance(columns, str)
        wanted = (
            None if columns is None else [columns] if isinstance(columns, str) else list(columns)
        )
        self._columns = columns if one else wanted
        self._arguments = (delimiter, header, dtype, quote, missing)
        dialect = (delimiter, quote, list(MISSING if missing is None else missing))
        named, everywhere = _dtypes(dtype)
        with progress(Path(self._path).name, " blocks") as tell:
            source = _lib.Csv(self._path, wanted, named, everywhere, dialect, header, tell)
        places = {name: place for place, name in enumerate(source.names())}
        names = list(dict.fromkeys(wanted or places))
        self._open(source, places, names[0] if one else names)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments; the file is parsed again."""
        return _csv, (self._path, self._columns, *self._arguments)

    def __repr__(self) -> str:
        return f"Csv({self._names!r} of {len(self)} rows)"


def _csv(
    path: str, columns: Any, delimiter: str, header: Any, dtype: Any, quote: Any, missing: Any
) -> Csv:
    return Csv(
        path,
        columns,
        delimiter=delimiter,
        header=header,
        dtype=dtype,
        quote=quote,
        missing=missing,
    )


def _dtypes(dtype: Any) -> tuple[dict[str, str], str | None]:
    """Returns the dtypes of columns by name, and that of all others."""
    if dtype is None:
        return {}, None
    if isinstance(dtype, Mapping):
        return {name: dtype_name(each) for name, each in dtype.items()}, None
    return {}, dtype_name(dtype)
