"""`Npy`: arrays in NumPy's own files."""

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

    The headers of all files are read when the column is made, so that shapes and dtype are known;
    elements are read when they are wanted. Samples come in C order and native byte order, whatever the
    files have. A batch of arrays of one shape is stacked; different shapes are the error that
    `default_collate` raises.

    Args:
        paths: Files, or a pattern such as `"features/**/*.npy"`, whose matches are sorted.
        rows: Which rows of an array are the sample: a slice of step 1, or one for each file. Files in C
            order are read only there. None: all.

    Raises:
        TypeError: Paths that are neither text nor path objects.
        ValueError: A pattern without matches, a slice with a step, or not as many slices as files.
        OSError: Not one of the files can be read. What is wrong with some of them is raised when their
            samples are wanted: a damaged header, elements that a tensor cannot hold, another dtype than
            the first file's.

    Examples:
        >>> features = Npy("features/*.npy", rows=slice(0, 100))
        >>> features[0].shape
        torch.Size([100, 2048])
    """

    def __init__(self, paths: Paths, *, rows: slice | Sequence[slice] | None = None) -> None:
        self._paths = expand(paths)
        self._rows = rows
        with progress("headers") as tell:
            self._native = _lib.Npy(self._paths, ranges(rows, len(self._paths)), tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the rows; the headers are read again."""
        return _npy, (self._paths, self._rows)

    def __repr__(self) -> str:
        return f"Npy({len(self)} files of {self._describe()})"


def _npy(paths: list[str], rows: slice | Sequence[slice] | None) -> Npy:
    return Npy(paths, rows=rows)


def ranges(rows: slice | Sequence[slice] | None, files: int) -> list[tuple[int | None, int | None]]:
    """Returns the bounds of slices: none, those of one slice, or one pair for each file."""
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
