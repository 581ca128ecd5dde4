"""Rows and cells of pandas' frames.

Owns which ways into a frame are known, and what type a value has there: a row of several dtypes is one of another
dtype, which pandas itself is asked for. pandas is never imported here.
"""

import sys
from typing import Any, NamedTuple

import numpy as np

from fastload.lowering.reading.arrays import taken
from fastload.lowering.reading.values import Cells, Each, Index, Objects, check_count
from fastload.registry import refuse

__all__ = [
    "Indexer",
    "Row",
    "attribute",
    "is_frame",
    "is_of_frames",
    "item",
    "values",
]


class Indexer(NamedTuple):
    """`frame.iloc` or `frame.loc`."""

    frame: Any
    kind: str


class Row(Each):
    """One row of a frame for each sample, a Series.

    Args:
        frame: The frame.
        key: Which row, an `Each`.
        columns: The places of its columns.
    """

    def __init__(self, frame: Any, key: Any, columns: range) -> None:
        self.frame = frame
        self.key = key
        self.columns = columns


def _class(name: str) -> Any:
    return getattr(sys.modules.get("pandas"), name, None)


def is_frame(value: Any) -> bool:
    """Returns true if a value is a frame or a series of the very class."""
    return "pandas" in sys.modules and type(value) in (_class("DataFrame"), _class("Series"))


def is_of_frames(value: Any) -> bool:
    """Returns true if a value is a frame, a series, a way into one or a row of one."""
    return isinstance(value, Indexer | Row) or is_frame(value)


def attribute(value: Any, name: str) -> Any:
    """Returns an attribute of a frame, a series or a row.

    Raises:
        NotNative: It is not known.
    """
    if is_frame(value):
        if name in ("iloc", "loc"):
            return Indexer(value, name)
        if name == "values":
            return values(value)
        if name in ("shape", "empty"):
            return getattr(value, name)
        if _is_column(value, name):
            return item(value, name)
    if isinstance(value, Row):
        if name == "values":
            return values(value)
        names = [value.frame.columns[at] for at in value.columns]
        if name in names and not hasattr(_class("Series"), name):
            return item(value, name)
    return refuse(f"{name} of a frame is not known")


def _is_column(frame: Any, name: str) -> bool:
    kind = _class("DataFrame")
    return type(frame) is kind and not hasattr(kind, name) and name in list(frame.columns)


def values(value: Any) -> Any:
    """Returns the array of a frame, a series or a row."""
    if isinstance(value, Row):
        part = value.frame.iloc[:, value.columns.start : value.columns.stop]
        _check_row(part.iloc[0])
        row = part.iloc[0].to_numpy()
        array = part.to_numpy()
        if row.dtype != array.dtype or array.dtype.kind not in "biuf":
            refuse(f"a row of {row.dtype} is not known")
        return taken(array, value.key)
    array = value.to_numpy()
    if array.ndim != 1 or (isinstance(value.dtype, np.dtype) and array.dtype != object):
        return array
    cells = Cells(array.tolist())
    if value.dtype != object and set(map(type, cells)) != {str}:
        refuse(f"the array of a column of {value.dtype} is not known")
    return cells


def item(value: Any, key: Any) -> Any:
    """Returns `value[key]`.

    Raises:
        NotNative: It is not known.
    """
    if isinstance(value, Row):
        return _of_row(value, key)
    if isinstance(value, Indexer):
        return _indexed(value, key)
    if type(value) is _class("DataFrame"):
        if type(key) is list and all(type(each) is str for each in key):
            return value[key]
        if type(key) is not str or list(value.columns).count(key) != 1:
            refuse(f"a frame indexed by {key!r} is not known")
        return value[key]
    _check_labels(value)
    return _cell(value, key)


def _indexed(indexer: Indexer, key: Any) -> Any:
    frame, kind = indexer
    is_by_label = kind == "loc"
    if is_by_label:
        _check_labels(frame)
    if type(frame) is _class("Series"):
        return _cell(frame, key, from_end=not is_by_label)
    rows, columns = key if type(key) is tuple and len(key) == 2 else (key, slice(None))
    if not isinstance(rows, Index):
        refuse("a row of a frame that is not named by the index is not known")
    if is_by_label and rows.ends[0] < 0:
        refuse("a negative label of a frame is not known")
    _check_within(rows, len(frame.index))
    if type(columns) is slice and not is_by_label:
        places = range(len(frame.columns))[columns]
        if places.step != 1 or not places:
            refuse("columns that are not side by side")
        return Row(frame, rows, places)
    if type(columns) is slice and columns == slice(None):
        return Row(frame, rows, range(len(frame.columns)))
    if is_by_label:
        return _cell(item(frame, columns), rows)
    if type(columns) is not int:
        refuse(f"a frame indexed by {columns!r} is not known")
    return _cell(frame.iloc[:, columns], rows)


def _check_labels(frame: Any) -> None:
    """Refuses labels that are not 0, 1, 2, …: they may be anywhere.

    Raises:
        NotNative: They are others.
    """
    index = frame.index
    if type(index) is not _class("RangeIndex") or (index.start, index.step) != (0, 1):
        refuse("a frame's labels are not 0, 1, 2, …", "use iloc, or reset_index(drop=True)")


def _check_within(index: Index, rows: int) -> None:
    low, high = index.ends
    if low < 0 or high >= rows:
        refuse(f"its indices go from {low} to {high}, and the frame has {rows} rows")


def _check_row(row: Any) -> None:
    """Refuses rows of pandas' own dtypes but text: they have NA where a column has nan.

    Raises:
        NotNative: It is one.
    """
    if not isinstance(row.dtype, np.dtype | _class("StringDtype")):
        refuse(f"a row of {row.dtype} is not known")


def _of_row(row: Row, key: Any) -> Any:
    frame = row.frame
    names = list(frame.columns)[row.columns.start : row.columns.stop]
    if type(key) is str and names.count(key) == 1:
        place = row.columns.start + names.index(key)
    elif type(key) is slice and all(type(e) in (int, type(None)) for e in (key.start, key.stop)):
        places = row.columns[key]
        if places.step != 1 or not places:
            refuse("columns that are not side by side")
        return Row(frame, row.key, places)
    else:
        refuse(f"a row of a frame indexed by {key!r} is not known")
    first = frame.iloc[0, row.columns.start : row.columns.stop]
    _check_row(first)
    cell = first.iloc[place - row.columns.start]
    column = frame.iloc[:, place]
    if isinstance(cell, np.generic) and column.dtype != cell.dtype:
        if column.dtype.kind not in "biuf" or cell.dtype != np.float64 or column.dtype.itemsize > 8:
            refuse(f"a row of a frame makes {cell.dtype} of {column.dtype}")
        return taken(column.to_numpy().astype(cell.dtype), row.key)
    return _cell(column, row.key)


def _cell(series: Any, key: Any, *, from_end: bool = False) -> Any:
    """Returns one value of a series for each sample."""
    if not isinstance(key, Index):
        refuse("a cell that is not named by the index is not known")
    if not from_end:
        _check_within(key, len(series))
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return taken(series.to_numpy(), key)
    check_count(len(series))
    texts = series.tolist()
    if set(map(type, texts)) != {str}:
        refuse(f"a column of {dtype} that is not all text, or has gaps, is not known")
    _check_within(key, len(texts))
    return Objects([texts[at] for at in key.values()])
