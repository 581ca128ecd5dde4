"""The threads that torch divides one operation among.

Torch wakes them for what a single thread does in a millisecond, such as a permutation of 40,000 indices, and
afterwards they look for more work for some milliseconds, on processors that batches are to be made on.
"""

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator

import torch

__all__ = ["one_thread"]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Has operations of this thread, and of no other, use no further threads; what they return is the same.

    Unlike `torch.set_num_threads`, which would change what threads to come use. Where torch is not built with
    OpenMP, nothing changes.
    """
    threads = torch.get_num_threads()
    set_threads = _setter()
    if set_threads is None:
        yield
        return
    try:  # before the first call: Ctrl-C behind it would leave one thread for ever
        set_threads(1)
        yield
    finally:
        set_threads(threads)


@functools.cache
def _setter() -> Callable[[int], None] | None:
    """Returns OpenMP's `omp_set_num_threads` (OpenMP 5.2, 18.2.1), the one that torch itself calls; None if unknown.

    It is about the thread that calls it.
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
