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

@final
class Plain(Column):
    """Files that are one value.

    Args:
        source: The files: their paths, the bytes of each, or stretches of larger files.
        what: `"bytes"`; `"text"`, of UTF-8; or `"integer"`, an int64 in decimal digits.

    Raises:
        ValueError: Another content.
    """

    def __new__(cls, source: list[str] | Ragged | Blobs, what: str) -> Plain: ...

@final
class Tar:
    """The index of tar files: which stretch is which member of which sample.

    Neighbours of one key, the name up to its first dot, are one sample.

    Args:
        paths: The files.
        progress: Called with (done, total) files now and then.

    Raises:
        OSError: A file cannot be read, or is no such archive.
    """

    def __new__(
        cls, paths: list[str], progress: Callable[[int, int], None] | None = None
    ) -> Tar: ...
    def __len__(self) -> int:
        """Returns how many samples there are."""
    def keys(self) -> list[str]:
        """Returns the key of each sample."""
    def extensions(self) -> dict[str, int]:
        """Returns how many samples have a member of each extension."""
    def lacking(self, extensions: list[str]) -> list[int]:
        """Returns the samples that have none of these."""
    def shard(self, sample: int) -> str | None:
        """Returns the file that holds a sample; None if there is no such sample."""
    def changed(self) -> bool:
        """Returns whether one of the files is not as it was."""
    def members(self, extensions: list[str], samples: list[int]) -> Blobs:
        """Returns the bytes of the first of `extensions` that each of `samples` has.

        Raises:
            ValueError: One of them has none.
        """
