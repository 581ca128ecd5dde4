"""What this process holds, by the system's count (Linux)."""

import os

from fastload import _lib


def foreign_threads() -> int:
    """Returns how many threads are not the pool's, which may have more of them at any time."""
    return len(os.listdir("/proc/self/task")) - _lib.pool_threads()  # noqa: PTH208


def descriptors() -> int:
    """Returns how many descriptors are open, that of the question among them."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
