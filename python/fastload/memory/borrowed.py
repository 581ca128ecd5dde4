"""Borrowed memory: what keeps arrays where they are while native threads read them.

Owns what each kind of owner needs. NumPy refuses to resize an array that has a weak reference, and Python to
resize or close what exports a buffer. torch refuses to resize a storage that NumPy has seen. It frees the memory of
a storage that it shares with another process, so that is done here: readers go on with the old memory, which
lives as long as they do, and look up the new one. Refuses to copy anything for its own safety.
"""

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from fastload import _lib

_READERS = "_fastload_readers"
_NEW: dict[str, Callable[[int], torch.UntypedStorage]] = {
    "_share_fd_cpu_": torch.UntypedStorage._new_using_fd_cpu,
    "_share_filename_cpu_": torch.UntypedStorage._new_using_filename_cpu,
}
"""The function that makes a storage of the same kind as each method would."""


def hold(owner: Any) -> tuple[_lib.Storage | None, Any]:
    """Keeps the memory of a tensor or an array in its place, or follows it.

    Returns:
        The storage that is notified when the memory moves, None if it does not; and the objects to keep as
        long as it is read.
    """
    if not isinstance(owner, torch.Tensor):
        return None, list(_pins(owner))
    storage = owner.untyped_storage()
    readers = vars(storage).get(_READERS)
    if readers is None:
        _bytes(storage).numpy()  # torch resizes no storage that NumPy has seen
        readers = _lib.Storage()
        setattr(storage, _READERS, readers)
        lock = threading.Lock()
        for name in _NEW:
            share = functools.partial(_share, weakref.ref(storage), readers, lock, name)
            setattr(storage, name, share)  # torch looks its methods up in the storage
    return readers, storage  # a storage has one object in Python as long as that is kept


def _pins(array: Any) -> Iterator[Any]:
    """Returns what keeps the memory of an array where it is."""
    while isinstance(array, np.ndarray):
        if array.flags.owndata:
            yield weakref.ref(array)
        array = array.base
    if array is not None:
        try:
            yield memoryview(array)
        except (TypeError, ValueError, BufferError):  # no buffer: the array holds what it needs
            return


def _share(
    reference: "weakref.ref[torch.UntypedStorage]", readers: _lib.Storage, lock: Any, name: str
) -> Any:
    """Moves a storage to shared memory; returns what torch's method of that name returns."""
    storage = reference()
    assert storage is not None
    # without the lock of `UntypedStorage`'s own method, which a thread may have that waits for this one
    share = getattr(torch._C.StorageBase, name)
    with lock:
        old, length = storage.data_ptr(), storage.nbytes()
        kept = None
        if length and not _is_shared(storage, name):
            kept = _given_up(storage, readers, _NEW[name])
        handle = share(storage)
        if storage.data_ptr() != old:
            readers.moved(old, storage.data_ptr(), length, kept)
        return handle


def _given_up(
    storage: torch.UntypedStorage,
    readers: _lib.Storage,
    new: Callable[[int], torch.UntypedStorage],
) -> torch.Tensor | None:
    """Returns what has the memory that a storage is about to give up; None if nothing reads it.

    Raises:
        RuntimeError: torch cannot keep it, and an iterator reads it.
    """
    content = _bytes(storage)
    if not hasattr(storage, "_swap_data_ptr_"):  # torch before 2.12
        try:
            return torch._lazy_clone(content)  # and with it the original's memory
        except RuntimeError as error:  # memory that it did not allocate itself
            if not readers.is_read():
                return None
            msg = (
                "this release of torch cannot keep memory that it did not allocate while it moves it, and an "
                "iterator reads it: share the tensor before iterating, or close the iterator"
            )
            raise RuntimeError(msg) from error
    shared = new(storage.nbytes())
    _bytes(shared).copy_(content)
    storage._swap_data_ptr_(shared)
    return _bytes(shared)


def _is_shared(storage: torch.UntypedStorage, name: str) -> bool:
    """Returns true if a storage has memory of the kind already that a method would move it to."""
    if not storage.is_shared():
        return False
    try:
        storage._get_shared_fd()  # type: ignore[attr-defined]
    except RuntimeError:
        return name == "_share_filename_cpu_"
    return name == "_share_fd_cpu_"


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
