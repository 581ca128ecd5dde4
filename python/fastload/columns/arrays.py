"""`Npy`, `Npz` and `Pt`: arrays in files of NumPy and of torch, one of each file."""

from collections.abc import Sequence
from typing import final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.files import Paths, expand, progress


@final
class Npy(Column):
    """Arrays in `.npy` files, one each.

    The headers of all files are read when the column is made, for shapes and dtype; elements are read with
    their samples. Samples have C order and native byte order, whatever the files have. A batch of arrays of one
    shape is stacked; different shapes raise the error of `default_collate`.

    Args:
        paths: Files, or a pattern such as `"features/**/*.npy"`, whose matches are sorted.
        rows: The rows of an array that are the sample: a slice of step 1, or one per file. Only the part of
            a file from their first element to their last is read. None: all.

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
        self._arguments = (self._paths,), {"rows": rows}
        with progress("headers") as tell:
            self._native = _lib.npy(self._paths, _ranges(rows, len(self._paths)), tell)

    def __repr__(self) -> str:
        return f"Npy({len(self)} files of {self._describe()})"


@final
class Npz(Column):
    """Arrays in `.npz` files, as `numpy.savez` and `numpy.savez_compressed` write them: one of each file.

    As `Npy`, of the arrays that `numpy.load(path)[key]` returns. The other arrays of a file are not read;
    several columns of the same files are the values of one sample.

    Args:
        paths: Files, or a pattern such as `"features/**/*.npz"`, whose matches are sorted.
        key: Name of the array.
        rows: The rows of an array that are the sample: a slice of step 1, or one per file. Of uncompressed
            arrays only the part from their first element to their last is read, without verifying the checksum.
            None: all.

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
        self._arguments = (self._paths, key), {"rows": rows}
        with progress("headers") as tell:
            self._native = _lib.npz(self._paths, key, _ranges(rows, len(self._paths)), tell)

    def __repr__(self) -> str:
        return f"Npz({self._key!r} of {len(self)} files, {self._describe()})"


@final
class Pt(Column):
    """Tensors in files that `torch.save` wrote, one tensor per file.

    A file holds a tensor, or a dict of them by name, in the zip format of torch 1.6 and later. No code of a
    file is run: anything but tensors and plain values is refused by name. Pickles are read when the column is
    made, for shapes and dtype; of a sample, only the bytes between its first and its last element are read.
    Samples are on the CPU, contiguous and without gradients, with the values that `torch.load(path,
    weights_only=True)` returns; a parameter becomes a plain tensor. Like torch, it verifies no checksums.

    Args:
        paths: Files, or a pattern such as `"latents/**/*.pt"`, whose matches are sorted.
        key: Name of the tensor in a dict; None if files hold a tensor.

    Raises:
        TypeError: Paths that are neither text nor path objects, a key that is not text.
        ValueError: A pattern without matches.
        OSError: None of the files can be read. Errors of single files are raised when their samples are read: a
            damaged file, something other than tensors, another dtype than the first file's.

    Examples:
        >>> latents = Pt("latents/*.pt", key="mean")
        >>> latents[0].shape
        torch.Size([4, 64, 64])
    """

    def __init__(self, paths: Paths, key: str | None = None) -> None:
        self._paths = expand(paths)
        self._key = key
        self._arguments = (self._paths, key), {}
        with progress("headers") as tell:
            self._native = _lib.pt(self._paths, key, tell)

    def __repr__(self) -> str:
        what = "files" if self._key is None else f"files, {self._key!r} of each,"
        return f"Pt({len(self)} {what} of {self._describe()})"


def _ranges(
    rows: slice | Sequence[slice] | None, files: int
) -> list[tuple[int | None, int | None]]:
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
