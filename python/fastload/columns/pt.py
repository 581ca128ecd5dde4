"""`Pt`: tensors in files of `torch.save`."""

from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import Paths, expand
from fastload.columns.progress import progress

__all__ = ["Pt"]


@final
class Pt(Column):
    """Tensors that `torch.save` wrote, one of each file.

    A file holds a tensor, or a dict of them by name, in the zip format of torch 1.6 and later. No code of
    a file is run: what is neither a tensor nor a plain value beside it is refused by its name. Pickles are
    read when the column is made, so that shapes and dtype are known, and of a sample only the bytes
    between its first and its last element. Samples are on the CPU, contiguous and without gradients, with
    the values that `torch.load(path, weights_only=True)` returns; a parameter is its values. As torch, it
    checks no checksums.

    Args:
        paths: Files, or a pattern such as `"latents/**/*.pt"`, whose matches are sorted.
        key: Which tensor of a dict is the sample; None where files hold a tensor.

    Raises:
        TypeError: Paths that are neither text nor path objects, a key that is no text.
        ValueError: A pattern without matches.
        OSError: Not one of the files can be read. What is wrong with some of them is raised when their
            samples are wanted: a damaged file, something else than tensors, another dtype than the first
            file's.

    Examples:
        >>> latents = Pt("latents/*.pt", key="mean")
        >>> latents[0].shape
        torch.Size([4, 64, 64])
    """

    def __init__(self, paths: Paths, key: str | None = None) -> None:
        self._paths = expand(paths)
        self._key = key
        with progress("headers") as tell:
            self._native = _lib.Pt(self._paths, key, tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the key; the headers are read again."""
        return Pt, (self._paths, self._key)

    def __repr__(self) -> str:
        what = "files" if self._key is None else f"files, {self._key!r} of each,"
        return f"Pt({len(self)} {what} of {self._describe()})"
