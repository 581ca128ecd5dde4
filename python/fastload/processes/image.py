"""What all workers of an iterator are given, pickled once.

Owns a file in memory with the pickle, and beside it the tensors and arrays, which every worker maps: changed,
pages become its own. For processes that are not forked, which have nothing yet. Refuses what cannot be given
twice: descriptors, memory that is shared already, memory of devices. Then each worker gets a pickle of its own.
"""

import mmap
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import Any

import torch

from fastload.processes import culprit
from fastload.processes.pickling import Pickler, dumps, loads

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
        self.descriptor = os.memfd_create("fastload-dataset")
        try:
            self._place = self._write(values)
        except BaseException:
            os.close(self.descriptor)
            raise

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

    def close(self) -> None:
        """Closes the file here; workers that have it keep it."""
        os.close(self.descriptor)

    def __getstate__(self) -> Any:
        return DupFd(self.descriptor), self._place

    def __setstate__(self, state: Any) -> None:
        descriptor, (start, length) = state
        self.descriptor = descriptor.detach()
        memory = mmap.mmap(self.descriptor, 0, flags=mmap.MAP_PRIVATE)
        os.close(self.descriptor)
        payload, places = pickle.loads(memory[start : start + length])
        parts = [
            torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=length)
            for start, length in places
        ]
        self.values = loads(payload, parts).load()

    def _write(self, values: dict[str, Any]) -> tuple[int, int]:
        """Writes the file; returns where in it the pickle is."""
        file = _File(self.descriptor)
        with _nothing_once():
            try:
                payload, places = dumps(values, memory=file, pickler=_ImagePickler)
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
        index = pickle.dumps((payload, places))
        start = file.extend(len(index))
        os.pwrite(self.descriptor, index, start)
        return start, len(index)


class _Once(Exception):  # noqa: N818 (nobody sees it)
    """Something that can be given to one process only."""


class _File:
    """Memory for the parts of an image: pages of a file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._length = 0
        self._places: dict[int, int] = {}

    def extend(self, length: int) -> int:
        """Makes the file larger; returns where the new bytes begin, a multiple of the page size."""
        start = self._length
        pages = -(-length // mmap.ALLOCATIONGRANULARITY)
        self._length += pages * mmap.ALLOCATIONGRANULARITY
        os.ftruncate(self._descriptor, self._length)
        return start

    def take(self, length: int) -> torch.Tensor:
        start = self.extend(length)
        tensor = torch.frombuffer(
            mmap.mmap(self._descriptor, length, offset=start), dtype=torch.uint8
        )
        self._places[tensor.data_ptr()] = start
        return tensor

    def part(self, address: int, length: int) -> tuple[int, int] | None:
        start = self._places.pop(address, None)
        return None if start is None else (start, length)


class _ImagePickler(Pickler):
    """Refuses what other processes would share, or what only one can have."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor) and obj.device.type not in ("cpu", "meta"):
            raise _Once
        if isinstance(obj, torch.UntypedStorage) and obj.is_shared():
            raise _Once
        return super().reducer_override(obj)


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
