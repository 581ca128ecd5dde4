"""The part of `_lib` that reads files: its columns, one class per format. There is no such module."""

from collections.abc import Callable
from typing import final

from fastload._columns import Column, Ragged

@final
class Blobs:
    """Encoded bytes of samples that share files."""

    def __len__(self) -> int: ...

@final
class Npy(Column):
    """Arrays in `.npy` files.

    Args:
        source: The files: their paths, the bytes of each, or stretches of larger files.
        rows: (start, stop) of the rows of each array that are its sample: none, one for all files, or
            one for each.
        progress: Called with (done, total) now and then, while headers are read.

    Raises:
        OSError: Not one of the files can be read.
    """

    def __new__(
        cls,
        source: list[str] | Ragged | Blobs,
        rows: list[tuple[int | None, int | None]],
        progress: Callable[[int, int], None] | None = None,
    ) -> Npy: ...
