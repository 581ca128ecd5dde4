"""A file with memory of the dataset, which worker processes map: in memory; on macOS an unlinked temporary one.

Owns its descriptor, as long as anybody has the file, and what is known of memory of this process whose pages
are the file's: it need not be copied again while nobody has changed it. Refuses to know what the bytes mean.
"""

import ctypes
import mmap
import os
import weakref
from typing import Self

import torch

from fastload import _lib

__all__ = ["File"]

_NAME = "fastload-dataset"
_MOST = 8192
"""Blocks of memory that pages are exchanged of: each is two mappings more, of which a process has 65,530."""

_files: "weakref.WeakSet[File]" = weakref.WeakSet()
"""The files that memory of this process lies in."""


class File:
    """A file in memory.

    Args:
        descriptor: Of a file that there is, owned from now on; None makes one.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = _lib.make_file(_NAME) if descriptor is None else descriptor
        weakref.finalize(self, os.close, self.descriptor).atexit = False
        self._length = 0
        self._places: dict[tuple[int, int], int] = {}

    @property
    def is_lent(self) -> bool:
        """Whether memory of this process lies in it."""
        return bool(self._places)

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

    def write(self, content: bytes) -> tuple[int, int]:
        """Appends bytes; returns where they begin, and their number."""
        start = self.extend(len(content))
        written = 0
        while written < len(content):
            written += os.pwrite(self.descriptor, content[written:], start + written)
        return start, len(content)

    def lay(self, address: int, length: int, allocated: int) -> tuple[Self, int]:
        """Lays memory down, here, unless it lies in a file already.

        The caller keeps the memory. Its pages become the file's where nobody can tell.

        Args:
            address: Of the bytes.
            length: Their number.
            allocated: What the allocation of the memory that they lie in returned; 0 if that is not known.

        Returns:
            The file, and where in it they begin.
        """
        block = (address, length, allocated)
        for file in list(_files):
            start = file._places.get((address, length))
            if start is not None and _lib.is_deposited(file.descriptor, start, block):
                return file, start  # type: ignore[return-value]
        within = address % mmap.PAGESIZE
        start = self.extend(within + length) + within
        exchange = len(self._places) < _MOST and not _is_page_locked(address, length)
        if _lib.deposit(self.descriptor, start, block, exchange, _NAME):
            self._places[address, length] = start
            _files.add(self)
        return self, start


def _is_page_locked(address: int, length: int) -> bool:
    """Returns whether memory is pinned for an accelerator, which would go on using its pages."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    content = torch.frombuffer((ctypes.c_ubyte * length).from_address(address), dtype=torch.uint8)
    return content.is_pinned() or content[-1:].is_pinned()
