"""A file with memory of the dataset, which worker processes map: in memory; on macOS an unlinked temporary one.

Owns its descriptor, as long as the file is used. Refuses to know what the bytes mean.
"""

import mmap
import os
import weakref
from typing import TYPE_CHECKING, Any

from fastload import _lib

if TYPE_CHECKING:
    from ctypes import Array

__all__ = ["File"]


class File:
    """A file in memory.

    Args:
        descriptor: Of an existing file, owned from now on; None makes one.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = _lib.make_file("fastload-dataset") if descriptor is None else descriptor
        weakref.finalize(self, os.close, self.descriptor).atexit = False
        self._length = 0

    def mapped(self) -> mmap.mmap:
        """Returns its bytes, of which a change is the process's own."""
        return mmap.mmap(self.descriptor, 0, flags=mmap.MAP_PRIVATE)

    def extend(self, length: int) -> int:
        """Makes the file larger; returns where the new bytes begin, a multiple of the page size."""
        start = self._length
        pages = -(-length // mmap.ALLOCATIONGRANULARITY)
        self._length += pages * mmap.ALLOCATIONGRANULARITY
        os.ftruncate(self.descriptor, self._length)
        return start

    def write(self, content: "bytes | Array[Any]") -> tuple[int, int]:
        """Appends bytes; returns where they begin, and their number."""
        left = memoryview(content).cast("B")
        start, length = self.extend(len(left)), len(left)
        place = start
        while left:
            written = os.pwrite(self.descriptor, left, place)
            left, place = left[written:], place + written
        return start, length
