"""Memory use and resource pressure of this process and its machine.

Reads the kernel's own counters when it is called. What cannot be read is 0.
"""

import time
from typing import NamedTuple

import psutil

from fastload.machine import cgroup, memory


class Strain(NamedTuple):
    """Memory use and resource pressure. The last three shares are fractions of the elapsed time, 0 to 1."""

    rss_bytes: int  # resident memory of this process
    cgroup_bytes: int  # memory of its control group, page cache included
    free_bytes: int  # memory that can still be allocated without swapping
    swap_free_bytes: int  # swap space that can be used in addition
    memory_share: float  # used fraction of the memory
    memory_stall_share: float  # all tasks waited for memory
    cpu_stall_share: float  # at least one runnable task waited for a CPU
    throttled_share: float  # a CPU quota kept the process from running


class Gauge:
    """Reads memory use and pressure; shares cover the time since the last reading."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._counters = _stalled_s()

    def read(self) -> Strain:
        """Returns the current values."""
        now, counters = time.perf_counter(), _stalled_s()
        elapsed_s = max(now - self._since, 1e-9)
        shares = [
            min(1.0, max(0.0, later - earlier) / elapsed_s)
            for earlier, later in zip(self._counters, counters, strict=True)
        ]
        self._since, self._counters = now, counters
        account = memory.read()
        return Strain(
            psutil.Process().memory_info().rss,
            cgroup.memory_used_bytes(),
            account.available_bytes,
            account.swap_bytes,
            account.share,
            *shares,
        )


def _stalled_s() -> tuple[float, float, float]:
    """Returns seconds in which all tasks waited for memory, one for a CPU, and a quota throttled."""
    return (
        cgroup.stalled_s("memory", "full"),
        cgroup.stalled_s("cpu", "some"),
        cgroup.throttled_s(),
    )
