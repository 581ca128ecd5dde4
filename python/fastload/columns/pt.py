"""`Pt`: tensors in files of `torch.save`."""

from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import Paths, expand
from fastload.columns.progress import progress

__all__ = ["Pt"]


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
        with progress("headers") as tell:
            self._native = _lib.pt(self._paths, key, tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the key; the headers are read again."""
        return Pt, (self._paths, self._key)

    def __repr__(self) -> str:
        what = "files" if self._key is None else f"files, {self._key!r} of each,"
        return f"Pt({len(self)} {what} of {self._describe()})"
