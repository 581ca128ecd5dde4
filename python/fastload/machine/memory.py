"""The account of memory: what this process may still allocate, by the host, its control groups and its own limit.

Budgets, tuning and monitoring read it, and nothing else. Page cache that can be reclaimed counts as available. Reads the
kernel's own counters when it is called. What cannot be read limits nothing.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from fastload.machine import cgroup, kernel_file

WARN = 0.95  # used share of the memory from which a warning is given
REFUSE = 0.98  # used share of the memory from which nothing more is started

_PROC = Path("/proc")


class Memory(NamedTuple):
    """The memory that this process may still allocate, by one limit or by the least of several.

    Attributes:
        total_bytes: All memory that it may use.
        available_bytes: The rest of it, without swapping.
        swap_bytes: By swapping, in addition.
        share: Used fraction of the memory, 0 to 1: that of the fullest limit.
        limit: The limit that is reached first: `"the host"`, `"the control group"` or `"ulimit -v"`.
    """

    total_bytes: int
    available_bytes: int
    swap_bytes: int
    share: float
    limit: str

    @property
    def room_bytes(self) -> int:
        """All bytes that can be allocated, swap space included."""
        return self.available_bytes + self.swap_bytes


def read(proc: Path = _PROC) -> Memory:
    """Returns the account.

    Args:
        proc: The mount point of proc.
    """
    host = _host(proc)
    limits = [host, *_groups(proc, host.swap_bytes), *_address_space(proc)]
    tightest = min(limits, key=lambda limit: limit.room_bytes)
    available_bytes = min(limit.available_bytes for limit in limits)
    return Memory(
        min(limit.total_bytes for limit in limits),
        available_bytes,
        tightest.room_bytes - available_bytes,
        max(limit.share for limit in limits),
        tightest.limit,
    )


def _limit(name: str, total_bytes: int, available_bytes: int, swap_bytes: int) -> Memory:
    share = 1 - available_bytes / max(1, total_bytes)
    return Memory(total_bytes, available_bytes, swap_bytes, share, name)


def _host(proc: Path) -> Memory:
    """Format: `proc_meminfo(5)`."""
    sizes = kernel_file.sizes(proc / "meminfo")
    try:
        total, available = sizes["MemTotal:"], sizes["MemAvailable:"]
        return _limit("the host", total, min(total, available), sizes.get("SwapFree:", 0))
    except KeyError:  # another system, or a kernel before 3.14
        memory = psutil.virtual_memory()
        return _limit("the host", memory.total, memory.available, psutil.swap_memory().free)


def _groups(proc: Path, swap_bytes: int) -> Iterator[Memory]:
    for group in cgroup.memory_limits(proc):
        swap = swap_bytes if group.swap_bytes is None else min(swap_bytes, group.swap_bytes)
        yield _limit("the control group", group.limit_bytes, group.available_bytes, swap)


def _address_space(proc: Path) -> Iterator[Memory]:
    """Yields the limit on the mappings of this process, if there is one. Format: `proc_pid_statm(5)`."""
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    words = kernel_file.read(proc / "self/statm").split() if limit >= 0 else []
    if words and limit != resource.RLIM_INFINITY:
        used = int(words[0]) * resource.getpagesize()
        yield _limit("ulimit -v", limit, max(0, limit - used), 0)
