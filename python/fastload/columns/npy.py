"""`Npy`: arrays in NumPy's files."""

from collections.abc import Sequence
from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import Paths, expand
from fastload.columns.progress import progress

__all__ = ["Npy", "ranges"]


@final
class Npy(Column):
    """Arrays in `.npy` files, one each.

    The headers of all files are read when the column is made, for shapes and dtype; elements are read with
    their samples. Samples have C order and native byte order, whatever the files have. A batch of arrays of one
    shape is stacked; different shapes raise the error of `default_collate`.

    Args:
        paths: Files, or a pattern such as `"features/**/*.npy"`, whose matches are sorted.
        rows: The rows of an array that are the sample: a slice of step 1, or one per file. Of files in C order
            only these are read. None: all.

    Raises:
        TypeError: Paths that are neither text nor path objects.
        ValueError: A pattern without matches, a slice with a step, or slices that do not match the number of
            files.
        OSError: None of the files can be read. Errors of single files are raised when their samples are read: a
            damaged header, elements that a tensor cannot hold, another dtype than the first file's.

    Examples:
        >>> features = Npy("features/*.npy", rows=slice(0, 100))
        >>> features[0].shape
        torch.Size([100, 2048])
    """

    def __init__(self, paths: Paths, *, rows: slice | Sequence[slice] | None = None) -> None:
        self._paths = expand(paths)
        self._rows = rows
        with progress("headers") as tell:
            self._native = _lib.npy(self._paths, ranges(rows, len(self._paths)), tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the rows; the headers are read again."""
        return _npy, (self._paths, self._rows)

    def __repr__(self) -> str:
        return f"Npy({len(self)} files of {self._describe()})"


def _npy(paths: list[str], rows: slice | Sequence[slice] | None) -> Npy:
    return Npy(paths, rows=rows)


def ranges(rows: slice | Sequence[slice] | None, files: int) -> list[tuple[int | None, int | None]]:
    """Returns the bounds of slices: none, one pair, or one pair per file."""
    if rows is None:
        return []
    several = [rows] if isinstance(rows, slice) else list(rows)
    if not isinstance(rows, slice) and len(several) != files:
        msg = f"rows has {len(several)} slices for {files} files; give one for each, or one for all"
        raise ValueError(msg)
    for each in several:
        if each.step not in (None, 1):
            msg = f"rows takes slices of step 1, found {each}"
            raise ValueError(msg)
    return [(each.start, each.stop) for each in several]
