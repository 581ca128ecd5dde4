"""Threads: the interpreter lock, a lock that a forked child finds free, and torch's intra-op threads.

Torch wakes those even for a millisecond of work, such as a permutation of 40,000 indices. Afterwards they spin
for some milliseconds on cores that should make batches.
"""

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator

import torch


def holds_interpreter() -> bool:
    """Returns true if only one thread at a time runs Python here."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


class RenewedLock:
    """A lock of a module, for its whole life.

    A thread of the parent that holds it at the moment of a fork does not exist in the child, which gets a new one.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock; a child that is forked by its holder goes on without it."""
        with self._lock:
            yield

    def _renew(self) -> None:
        self._lock = threading.Lock()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Restricts torch's operations in the calling thread to that thread; results stay the same.

    `torch.set_num_threads` would change the default of threads started later, too. Does nothing if torch is
    built without OpenMP.
    """
    threads = torch.get_num_threads()
    set_threads = _setter()
    if set_threads is None:
        yield
        return
    try:  # starts before the first call: an interrupt after it would leave one thread for good
        set_threads(1)
        yield
    finally:
        set_threads(threads)


@functools.cache
def _setter() -> Callable[[int], None] | None:
    """Returns OpenMP's `omp_set_num_threads` (OpenMP 5.2, 18.2.1), the one that torch itself calls; None if unknown.

    It applies to the calling thread.
    """
    try:
        setter = ctypes.CDLL(torch._C.__file__).omp_set_num_threads
    except (OSError, AttributeError):
        return None
    setter.argtypes, setter.restype = [ctypes.c_int], None
    threads = torch.get_num_threads()
    setter(1)
    is_torchs = torch.get_num_threads() == 1
    setter(threads)
    return setter if is_torchs else None
