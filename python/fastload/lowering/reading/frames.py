"""Rows and cells of pandas' frames.

Owns which ways into a frame are known, and what type a value has there: a row of several dtypes is one of another
dtype, which pandas itself is asked for. pandas is never imported here.
"""

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastload.lowering.reading.arrays import taken
from fastload.lowering.reading.values import Cells, Each, Index, Objects, check_ahead, check_count
from fastload.registry import refuse

__all__ = ["Indexer", "Row", "attribute", "is_frame", "is_of_frames", "item", "values"]


_INDEXERS = {"iloc": "iloc", "loc": "loc", "iat": "iloc", "at": "loc"}


class Indexer(NamedTuple):
    """`iloc` or `loc` of a frame, a series or a row; of one cell where it was `iat` or `at`."""

    of: Any
    kind: str
    of_cell: bool


@dataclass(frozen=True, eq=False)
class Row(Each):
    """One row of a frame for each sample, a Series.

    Attributes:
        frame: The frame, with the columns of the row.
        first: The first row, as pandas makes it.
        index: The place of each sample's row.
    """

    frame: Any
    first: Any
    index: Index


def _class(name: str) -> Any:
    return getattr(sys.modules.get("pandas"), name, None)


def is_frame(value: Any) -> bool:
    """Returns true if a value is a frame or a series of the very class."""
    return "pandas" in sys.modules and type(value) in (_class("DataFrame"), _class("Series"))


def is_of_frames(value: Any) -> bool:
    """Returns true if a value is a frame, a series, a way into one or a row of one."""
    return isinstance(value, Indexer | Row) or is_frame(value)


def attribute(value: Any, name: str) -> Any:
    """Returns an attribute of a frame, a series or a row."""
    if name == "values":
        return values(value)
    if name in _INDEXERS and not isinstance(value, Indexer):
        return Indexer(value, _INDEXERS[name], name in ("iat", "at"))
    if is_frame(value) and name == "shape":
        return value.shape
    frame, kind = (value.frame, "Series") if isinstance(value, Row) else (value, "DataFrame")
    if type(frame) is not _class("DataFrame") or hasattr(_class(kind), name):
        refuse(f"{name} of a frame is not known")
    return item(value, name)


def values(value: Any) -> Any:
    """Returns the array of a frame, a series or a row."""
    if isinstance(value, Row):
        row, array = _known(value.first).to_numpy(), value.frame.to_numpy()
        if array.dtype.kind not in "biuf":
            refuse(f"a row of {row.dtype} is not known")
        return taken(_as_in_row(array, row.dtype), value.index)
    if isinstance(value, Indexer):
        refuse("values of a frame's indexer is not known")
    array = value.to_numpy()
    if array.ndim != 1 or (isinstance(value.dtype, np.dtype) and array.dtype != object):
        return array
    cells = Cells(array.tolist())
    if value.dtype != object and set(map(type, cells)) != {str}:
        refuse(f"the array of a column of {value.dtype} is not known")
    return cells


def item(value: Any, key: Any) -> Any:
    """Returns `value[key]`."""
    if isinstance(value, Row):
        return _of_row(value, key)
    if isinstance(value, Indexer):
        return _indexed(value, key)
    if type(value) is not _class("DataFrame"):
        _check_labels(value)
        return _cell(value, key)
    is_list = type(key) is list and _is_several(key)
    if not is_list and (type(key) is not str or list(value.columns).count(key) != 1):
        refuse(f"a frame indexed by {key!r} is not known")
    return value[key]


def _indexed(indexer: Indexer, key: Any) -> Any:
    frame, kind, of_cell = indexer
    is_table = type(frame) is _class("DataFrame")
    index, columns = key if type(key) is tuple and len(key) == 2 else (key, slice(None))
    if of_cell and _is_several(columns if is_table else key):
        refuse("at and iat of anything but a cell are not known")
    if isinstance(frame, Row):
        return _of_row(frame, key, kind)
    is_by_label = kind == "loc"
    if is_by_label:
        _check_labels(frame)
    if not is_table:
        return _cell(frame, key)
    _check_within(index, frame)
    if _is_several(columns):
        if type(columns) is list:
            _check_copied(len(frame) * len(columns))
        part, first = (_by_pandas(frame, kind, (rows, columns)) for rows in (slice(None), 0))
        return Row(part, first, index)
    if is_by_label:
        return _cell(item(frame, columns), index)
    if type(columns) is not int:
        refuse(f"a frame indexed by {columns!r} is not known")
    return _cell(frame.iloc[:, columns], index)


def _is_several(key: Any) -> bool:
    """Returns true if a key names columns, the same for all samples."""
    if type(key) is slice:
        ends = key.start, key.stop, key.step
        return all(type(each) in (int, str, type(None)) for each in ends)
    return type(key) is list and all(type(each) in (int, str) for each in key)


def _by_pandas(value: Any, kind: str, key: Any) -> Any:
    """Returns what pandas gives for a key, of which no part differs between samples."""
    try:
        return (value if kind == "" else getattr(value, kind))[key]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        refuse(f"pandas raises {type(error).__name__}: {error}")


def _check_labels(frame: Any) -> None:
    """Refuses labels that are not 0, 1, 2, …: they may be anywhere."""
    index = frame.index
    if type(index) is not _class("RangeIndex") or (index.start, index.step) != (0, 1):
        refuse("a frame's labels are not 0, 1, 2, …", "use iloc, or reset_index(drop=True)")


def _check_within(index: Any, frame: Any) -> None:
    """Refuses what names no row of a frame or a series for each sample, counted from its start."""
    if not isinstance(index, Index) or index.ends[0] < 0:
        refuse("a row of a frame that is not named by the index is not known")
    index.within(len(frame))


def _known(row: Any) -> Any:
    """Refuses rows of pandas' own dtypes but text: they have NA where a column has nan."""
    if not isinstance(row.dtype, np.dtype | _class("StringDtype")):
        refuse(f"a row of {row.dtype} is not known")
    return row


def _of_row(row: Row, key: Any, kind: str = "") -> Any:
    if type(key) not in (int, str) and not _is_several(key):
        refuse(f"a row of a frame indexed by {key!r} is not known")
    first = row.first
    place = _by_pandas(type(first)(range(len(first)), first.index), kind, key)
    if isinstance(place, type(first)):
        return _part(row, place.tolist())
    cell, column = _known(row.first).iloc[place], row.frame.iloc[:, place]
    if isinstance(cell, np.generic) and column.dtype != cell.dtype:
        return taken(_as_in_row(column.to_numpy(), cell.dtype), row.index)
    return _cell(column, row.index)


def _part(row: Row, places: list[int]) -> Row:
    """Returns rows of some columns; side by side, they are a view of the frame."""
    columns: Any = places
    if places and places == list(range(places[0], places[-1] + 1)):
        columns = slice(places[0], places[-1] + 1)
    else:
        _check_copied(len(row.frame) * len(places))
    return Row(row.frame.iloc[:, columns], row.first.iloc[columns], row.index)


def _check_copied(elements: int) -> None:
    """Refuses large copies of columns that lie apart, or have other dtypes in rows."""
    check_ahead(8 * elements, "copying {} MiB of a frame")


def _as_in_row(array: Any, dtype: Any) -> Any:
    """Returns columns in the dtype that they have in rows, next to others."""
    if array.dtype == dtype:
        return array
    if not {array.dtype.kind, dtype.kind} <= set("biuf") or not np.can_cast(array.dtype, dtype):
        refuse(f"a row of a frame makes {dtype} of {array.dtype}")
    _check_copied(array.size)
    return array.astype(dtype)


def _cell(series: Any, index: Any) -> Any:
    """Returns one value of a series for each sample."""
    _check_within(index, series)
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return taken(series.to_numpy(), index)
    check_count(len(series))
    texts = series.tolist()
    if set(map(type, texts)) != {str}:
        refuse(f"a column of {dtype} that is not all text, or has gaps, is not known")
    return Objects([texts[at] for at in index.values()])
