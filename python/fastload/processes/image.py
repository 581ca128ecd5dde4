"""What all workers of an iterator are given, pickled once.

Owns a file in memory with the pickle, and beside it the tensors and arrays, which every worker maps: changed,
pages become its own. For processes that are not forked, which have nothing yet. Refuses what cannot be given
twice: descriptors, memory that is shared already, memory of devices. Then each worker gets a pickle of its own.
"""

import mmap
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.processes import culprit
from fastload.processes.file import File
from fastload.processes.pickling import SMALL, Pickler, dumps, loads, make_array

__all__ = ["Image"]


class Image:
    """Values in files in memory.

    Args:
        values: By name; a name is what an error calls its value.

    Attributes:
        files: The files: its own, and earlier ones in which memory of these values lies.

    Raises:
        Exception: What pickling raises of a value, with the path to what does not pickle.
        OSError: There is no memory.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.files = [File()]
        self._place = self._write(values)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Image | None":
        """Returns the image of values, or None of values that cannot be given twice."""
        try:
            return cls(values)
        except _Once:
            return None

    def is_of(self, values: dict[str, Any]) -> bool:
        """Returns whether these are the values."""
        return values.keys() == self.values.keys() and all(
            value is self.values[name] for name, value in values.items()
        )

    def __getstate__(self) -> Any:
        return [DupFd(file.descriptor) for file in self.files], self._place

    def __setstate__(self, state: Any) -> None:
        descriptors, (start, length) = state
        memories = [File(descriptor.detach()).mapped() for descriptor in descriptors]
        payload, places = pickle.loads(memories[0][start : start + length])
        parts = [
            torch.frombuffer(memories[file], dtype=torch.uint8, offset=start, count=length)
            for file, start, length in places
        ]
        self.values = loads(payload, parts).load()

    def _write(self, values: dict[str, Any]) -> tuple[int, int]:
        """Writes the files; returns where in the first the pickle is."""
        memory = _Memory(self.files)
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
                        culprit.name(error, value, name, _tried)
                        break
                raise
        return self.files[0].write(pickle.dumps((payload, places)))


class _Once(Exception):  # noqa: N818 (nobody sees it)
    """Something that can be given to one process only."""


class _Memory:
    """Where the parts of an image lie.

    Args:
        files: The image's; a part may lie in an earlier one, which is added.
    """

    def __init__(self, files: list[File]) -> None:
        self._files = files
        self._taken: dict[int, int] = {}
        self._heap: File | None = None

    def take(self, length: int) -> torch.Tensor:
        start = self._files[0].extend(length)
        memory = mmap.mmap(
            self._files[0].descriptor, length, offset=start
        )  # shared: what is written here is in the file
        tensor = torch.frombuffer(memory, dtype=torch.uint8)
        self._taken[tensor.data_ptr()] = start
        return tensor

    def part(self, address: int, length: int) -> tuple[int, int, int] | None:
        start = self._taken.pop(address, None)
        if start is not None:
            return 0, start, length
        return self.laid(address, length, address) if length >= SMALL else None

    def laid(self, address: int, length: int, allocated: int) -> tuple[int, int, int]:
        """Returns where bytes of this process lie, put there unless they do already.

        Those of the heap have a file of their own: what is left of it when they are freed is no more
        than the heap would have kept.
        """
        file = self._files[0]
        if _lib.is_in_heap((address, length, allocated)):
            file = self._heap = self._heap or File()
        file, start = file.lay(address, length, allocated)
        if file not in self._files:
            self._files.append(file)
        return self._files.index(file), start, length


class _ImagePickler(Pickler):
    """Refuses what other processes would share, or what only one can have."""

    _memory: Any

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor) and obj.device.type not in ("cpu", "meta"):
            raise _Once
        if isinstance(obj, torch.UntypedStorage) and obj.is_shared():
            raise _Once
        return super().reducer_override(obj)

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        is_whole = array.flags.c_contiguous or array.flags.f_contiguous
        if self._memory is None or array.dtype.hasobject or array.nbytes < SMALL or not is_whole:
            return super()._array(array)
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        allocated = root.ctypes.data if root.flags.owndata else 0
        self.parts.append(self._memory.laid(array.ctypes.data, array.nbytes, allocated))
        order = "F" if array.flags.fnc else "C"
        return make_array, (self._marker, array.dtype, array.shape, order)


class _Nobody:
    """A process that is about to be started, and takes no descriptors."""

    def duplicate_for_child(self, _: int) -> int:
        raise _Once

    DupFd = duplicate_for_child


@contextmanager
def _nothing_once() -> Iterator[None]:
    """Has objects of `multiprocessing` pickle as for a new process, but for their descriptors."""
    before = context.get_spawning_popen()
    context.set_spawning_popen(_Nobody())  # type: ignore[arg-type]
    try:
        yield
    finally:
        context.set_spawning_popen(before)


def _tried(value: Any) -> None:
    """Pickles a value for nothing."""
    dumps(value, pickler=_ImagePickler)
