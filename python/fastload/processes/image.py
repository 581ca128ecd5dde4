"""`Image`: what all workers of an iterator are given, pickled once, for processes that are not forked.

Owns a file in memory with the pickle, and beside it the tensors and arrays, which every worker maps: changed, pages
become its own. Refuses what cannot be given twice: descriptors, memory that is shared already, memory of devices. Then
each worker gets a pickle of its own.
"""

import ctypes
import mmap
import os
import pickle
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import TYPE_CHECKING, Any

import torch

from fastload import _lib
from fastload.processes.failures import name_part
from fastload.processes.pickling import SMALL, Pickler, dumps, loads

if TYPE_CHECKING:
    from ctypes import Array

__all__ = ["Image"]


class Image:
    """Values in a file in memory.

    Args:
        values: By name; a name is what an error calls its value.

    Raises:
        Exception: What pickling raises of a value, with the path to what does not pickle.
        OSError: There is no memory.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self._file = _File()
        self._place = self._write(values)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Image | None":
        """Returns the image of values, or None of values that cannot be given twice."""
        try:
            return cls(values)
        except _Once:
            return None

    def is_of(self, values: dict[str, Any]) -> bool:
        """Returns true if these are the values."""
        return values.keys() == self.values.keys() and all(
            value is self.values[name] for name, value in values.items()
        )

    def __getstate__(self) -> Any:
        return DupFd(self._file.descriptor), self._place

    def __setstate__(self, state: Any) -> None:
        descriptor, (start, length) = state
        memory = _File(descriptor.detach()).mapped()
        payload, places = pickle.loads(memory[start : start + length])
        parts = [
            torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=length)
            for start, length in places
        ]
        self.values = loads(payload, parts).load()

    def _write(self, values: dict[str, Any]) -> tuple[int, int]:
        """Writes the file; returns where in it the pickle is."""
        memory = _Memory(self._file)
        with _nothing_once():
            try:
                payload, places = dumps(values, memory=memory, pickler=_ImagePickler)
            except _Once:
                raise
            except Exception as error:
                for name, value in values.items():
                    try:
                        _tried(value)
                    except Exception:
                        name_part(error, value, name, _tried)
                        break
                raise
        return self._file.write(pickle.dumps((payload, places)))


class _Once(Exception):  # noqa: N818 (caught here)
    """Something that can be given to one process only."""


class _File:
    """A file with memory of the dataset, which worker processes map: in memory; on macOS an unlinked temporary one.

    Owns its descriptor, as long as the file is used.

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


class _Memory:
    """The memory of an image's parts, which lies in its file."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._taken: dict[int, int] = {}

    def take(self, length: int) -> torch.Tensor:
        start = self._file.extend(length)
        # shared: what is written here is in the file
        memory = mmap.mmap(self._file.descriptor, length, offset=start)
        tensor = torch.frombuffer(memory, dtype=torch.uint8)
        self._taken[tensor.data_ptr()] = start
        return tensor

    def part(self, address: int, length: int) -> tuple[int, int] | None:
        start = self._taken.pop(address, None)
        if start is not None:
            return start, length
        if length < SMALL:
            return None
        # the pickler keeps the storage that has these bytes
        return self._file.write((ctypes.c_ubyte * length).from_address(address))


class _ImagePickler(Pickler):
    """Refuses what other processes would share, or what only one can have."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor) and obj.device.type not in ("cpu", "meta"):
            raise _Once
        if isinstance(obj, torch.UntypedStorage) and obj.is_shared():
            raise _Once
        return super().reducer_override(obj)


class _NoProcess:
    """A process that is about to be started, and takes no descriptors."""

    def duplicate_for_child(self, _: int) -> int:
        raise _Once

    DupFd = duplicate_for_child


@contextmanager
def _nothing_once() -> Iterator[None]:
    """Has objects of `multiprocessing` pickle as for a new process, but for their descriptors."""
    before = context.get_spawning_popen()
    context.set_spawning_popen(_NoProcess())  # type: ignore[arg-type]
    try:
        yield
    finally:
        context.set_spawning_popen(before)


def _tried(value: Any) -> None:
    """Pickles a value for nothing."""
    dumps(value, pickler=_ImagePickler)
