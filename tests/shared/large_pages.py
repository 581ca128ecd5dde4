"""Large pages for a process that forks: each fork copies the table of its pages, and frees the copy as it ends.

With torch 2.15 for CUDA it has some hundred thousand pages of four kilobytes, and a fork takes 16 ms until it has ended
(AMD EPYC, Linux 6.18); in pages of two megabytes it is 6. The kernel splits a page that either of the two writes to.
"""

import ctypes
import functools
import os
from pathlib import Path

_SIZE = 2 << 20
_MADV_COLLAPSE = 25  # from Linux 6.1 on; elsewhere the call fails, and nothing is changed


def use_from_first_fork() -> None:
    """Has the first fork move what this process has in memory by then into large pages, as far as there are some."""
    os.register_at_fork(before=_collapse)


@functools.cache
def _collapse() -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for line in maps.read_text().splitlines():
        addresses, permissions, _, _, _, *name = line.split(maxsplit=5)
        if permissions == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in addresses.split("-"))
            start, end = -(-start // _SIZE) * _SIZE, end // _SIZE * _SIZE
            if start < end:
                madvise(start, end - start, _MADV_COLLAPSE)
