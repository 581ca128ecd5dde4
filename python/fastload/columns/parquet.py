"""`Parquet`: a column of Parquet files."""

import os
from typing import final
from weakref import WeakValueDictionary

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.files import Paths, absolute, one_or_more, progress
from fastload.machine.budget import budget_bytes
from fastload.machine.threads import RenewedLock

_Key = tuple[tuple[str, ...], int, tuple[tuple[int, ...], ...]]


@final
class Parquet(Column):
    """A column of Parquet files, decoded by native threads as its rows are read.

    Numbers, booleans and lists of them come as tensors of the column's own dtype, lists with a dimension of
    their length; text as `str`; binary as `bytes`. Lists of one length are stacked in a batch, as by torch's
    `default_collate`; different lengths raise its error. Parquet has no type for Arrow's durations: they are the
    int64 that the file holds, in the unit that they had.

    Files are decoded by row groups. A column that fits the cache is decoded once; of a larger one the most
    recently used row groups stay cached, so rows in random order decode row groups again and again: shuffle
    such files when they are written, or raise `cache`. Columns of the same files with the same `cache` share
    the open files and the cache.

    Args:
        paths: A file, several of them with the same columns, or a pattern such as `"part-*.parquet"`, whose
            matches are sorted.
        column: The column's name; a field of a struct is `"struct.field"`.
        cache: Size of the cache of decoded values: bytes, or a number with a unit. Each decoding thread needs
            one row group more.

    Raises:
        KeyError: No such column.
        TypeError: Paths that are neither text nor path objects, or values of another type, such as
            timestamps, decimals or structs.
        ValueError: A pattern without matches, or nulls; the message names the first.
        OSError: A file cannot be read, or its footer is damaged. Damaged values, and files that change later,
            raise errors when samples of their row group are read. Damage that leaves the format valid, in a
            page without a checksum, goes unnoticed.

    Examples:
        >>> price = Parquet("trades-*.parquet", "price")
        >>> price[0]
        tensor(9.5000, dtype=torch.float64)
    """

    def __init__(
        self,
        paths: Paths | os.PathLike[str],
        column: str,
        *,
        cache: int | str = "256MiB",
    ) -> None:
        cache = budget_bytes(cache, "cache")
        self._paths = absolute(one_or_more(paths))
        self._name = column
        self._arguments = (self._paths, column), {"cache": cache}
        self._files = _shared(self._paths, cache)
        self._native, self._form = self._files.column(column)

    def __repr__(self) -> str:
        return f"Parquet({self._name!r}, {len(self)} of {self._describe()})"


_OPEN: WeakValueDictionary[_Key, _lib.ParquetFiles] = WeakValueDictionary()
_LOCK = RenewedLock()


def _shared(paths: list[str], cache: int) -> _lib.ParquetFiles:
    """Returns open files; reuses those in use unless they have changed."""
    stats = map(os.stat, paths)
    seen = ((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in stats)
    key = tuple(paths), cache, tuple(seen)
    with _LOCK.held():
        files = _OPEN.get(key)
    if files is None:
        with progress("footers") as tell:
            files = _lib.ParquetFiles(paths, cache, tell)
        with _LOCK.held():
            files = _OPEN.setdefault(key, files)
    return files
