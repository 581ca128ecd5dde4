"""torch's intra-op threads.

Torch wakes them even for a millisecond of work, such as a permutation of 40,000 indices. Afterwards they spin
for some milliseconds on cores that should make batches.
"""

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator

import torch

__all__ = ["one_thread"]


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
