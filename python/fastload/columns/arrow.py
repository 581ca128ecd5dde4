"""`Arrow`: a column of an Arrow table, in memory or in a file."""

import os
from typing import Any, final

from fastload.columns import arrow_table
from fastload.columns.column import Column
from fastload.columns.files import one_or_more


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
        memory_map: True if a file is mapped rather than read. Only pages that batches touch take memory, but
            the process gets SIGBUS if the file is truncated while in use.

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
            [path] = one_or_more([source])
            if column is None:
                msg = f"the column of {path!r} to be read is needed: Arrow(path, column)"
                raise TypeError(msg)
            self._arguments = (path, column), {"memory_map": memory_map}
            array = arrow_table.read(path, column, memory_map=memory_map)
        else:
            array = arrow_table.pick(source, column)
            pa = arrow_table.import_pyarrow()
            alone = array if column is None else pa.table({column: array})
            self._arguments = (alone, column), {}
        self._name = "" if column is None else column
        self._native, self._form = arrow_table.column(array, self._name)

    def __repr__(self) -> str:
        return f"Arrow({self._name!r}, {len(self)} of {self._describe()})"
