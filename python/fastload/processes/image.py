"""The objects that all workers of an iterator are given, pickled once.

Owns a file in memory with the pickle, and beside it the tensors and arrays, which every worker maps: changed,
pages become its own. For processes that are not forked, which have nothing yet. Refuses what cannot be given
twice: descriptors, memory that is shared already, memory of devices. Then each worker gets a pickle of its own.
"""

import ctypes
import mmap
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import Any

import torch

from fastload.processes import unpicklable
from fastload.processes.file import File
from fastload.processes.pickling import SMALL, Pickler, dumps, loads

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
        self._file = File()
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
        memory = File(descriptor.detach()).mapped()
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
                        unpicklable.name_part(error, value, name, _tried)
                        break
                raise
        return self._file.write(pickle.dumps((payload, places)))


class _Once(Exception):  # noqa: N818 (caught here)
    """Something that can be given to one process only."""


class _Memory:
    """The memory of an image's parts, which lies in its file.

    Args:
        file: The image's.
    """

    def __init__(self, file: File) -> None:
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
