"""What the machine says of this process while it runs: processor time of threads, memory, pressure.

Reads once for each window, never in between. What cannot be read is 0.
"""

import time
from pathlib import Path
from typing import NamedTuple

import psutil

from fastload.machine import cgroup, kernel_file
from fastload.machine.budget import available_bytes

__all__ = ["Gauge", "PoolClock", "PoolTime", "Strain", "memory_share"]

_TASKS = Path("/proc/self/task")
_PREFIX = "fastload-"


class PoolTime(NamedTuple):
    """Time of the native threads, in seconds.

    Attributes:
        cpu_s: On a processor.
        queued_s: Ready to run, while no processor was free.
    """

    cpu_s: float
    queued_s: float


class PoolClock:
    """Processor time of the native threads, as the scheduler counts it (Linux; elsewhere 0)."""

    def __init__(self) -> None:
        self._ours: dict[str, PoolTime] = {}
        self._others: set[str] = set()

    def passed(self) -> PoolTime:
        """Returns the time since the last call; a thread's first one counts from its start."""
        cpu_s = queued_s = 0.0
        alive = {task.name for task in _TASKS.iterdir()} if _TASKS.is_dir() else set()
        for task in alive - self._others:
            if task not in self._ours:
                if not kernel_file.read(_TASKS / task / "comm").startswith(_PREFIX):
                    self._others.add(task)
                    continue
                self._ours[task] = PoolTime(0.0, 0.0)
            before = self._ours[task]
            match kernel_file.read(_TASKS / task / "schedstat").split():
                case [on, ready, *_]:
                    now = PoolTime(int(on) / 1e9, int(ready) / 1e9)
                case _:  # the thread has ended
                    now = before
            cpu_s += now.cpu_s - before.cpu_s
            queued_s += now.queued_s - before.queued_s
            self._ours[task] = now
        self._others &= alive
        for task in self._ours.keys() - alive:
            del self._ours[task]
        return PoolTime(cpu_s, queued_s)


class Strain(NamedTuple):
    """How hard pressed a process and its machine are; shares are parts of the time, 0 to 1.

    Attributes:
        rss_bytes: Memory of this process.
        cgroup_bytes: Memory of its control group, page cache included.
        free_bytes: Memory that may still be taken.
        memory_stall_share: Everything waited for memory.
        cpu_stall_share: Something that could run waited for a processor.
        throttled_share: A quota of the control groups kept the process from processors.
    """

    rss_bytes: int
    cgroup_bytes: int
    free_bytes: int
    memory_stall_share: float
    cpu_stall_share: float
    throttled_share: float


class Gauge:
    """Reads the strain; shares are of the time since the last reading."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._since = time.perf_counter()
        self._counters = _counters()

    def read(self) -> Strain:
        """Returns the strain of now."""
        now, counters = time.perf_counter(), _counters()
        elapsed_s = max(now - self._since, 1e-9)
        shares = [
            min(1.0, max(0.0, later - earlier) / elapsed_s)
            for earlier, later in zip(self._counters, counters, strict=True)
        ]
        self._since, self._counters = now, counters
        return Strain(
            self._process.memory_info().rss,
            cgroup.memory_used_bytes(),
            available_bytes(),
            *shares,
        )


def memory_share() -> float:
    """Returns the part of the memory that this process may use which is used, 0 to 1."""
    host = psutil.virtual_memory()
    return max(1 - host.available / host.total, cgroup.memory_share())


def _counters() -> tuple[float, float, float]:
    """Returns seconds: everything waited for memory, something for a processor, quotas throttled."""
    return (
        cgroup.stalled_s("memory", "full"),
        cgroup.stalled_s("cpu", "some"),
        cgroup.throttled_s(),
    )
