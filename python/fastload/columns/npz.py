"""`Npz`: arrays in NumPy's archives."""

from collections.abc import Sequence
from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.npy import ranges
from fastload.columns.paths import Paths, expand
from fastload.columns.progress import progress

__all__ = ["Npz"]


@final
class Npz(Column):
    """Arrays in `.npz` files, as `numpy.savez` and `numpy.savez_compressed` write them: one of each file.

    As `Npy`, of the arrays that `numpy.load(path)[key]` returns. The other arrays of a file are not read;
    several columns of the same files are the values of one sample.

    Args:
        paths: Files, or a pattern such as `"features/**/*.npz"`, whose matches are sorted.
        key: Name of the array.
        rows: The rows of an array that are the sample: a slice of step 1, or one per file. Of uncompressed
            arrays in C order only these are read, without verifying the checksum. None: all.

    Raises:
        TypeError: Paths that are neither text nor path objects, a key that is not text.
        ValueError: A pattern without matches, a slice with a step, or slices that do not match the number of
            files.
        OSError: None of the files can be read. Errors of single files are raised when their samples are read:
            no such array, a wrong checksum, elements that a tensor cannot hold, another dtype than the first
            file's.

    Examples:
        >>> fastload.Dataset((Npz("clips/*.npz", "features"), Npz("clips/*.npz", "label")))
    """

    def __init__(
        self, paths: Paths, key: str, *, rows: slice | Sequence[slice] | None = None
    ) -> None:
        self._paths = expand(paths)
        self._key = key
        self._rows = rows
        with progress("headers") as tell:
            self._native = _lib.npz(self._paths, key, ranges(rows, len(self._paths)), tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths, the key and the rows; the headers are read again."""
        return _npz, (self._paths, self._key, self._rows)

    def __repr__(self) -> str:
        return f"Npz({self._key!r} of {len(self)} files, {self._describe()})"


def _npz(paths: list[str], key: str, rows: slice | Sequence[slice] | None) -> Npz:
    return Npz(paths, key, rows=rows)
