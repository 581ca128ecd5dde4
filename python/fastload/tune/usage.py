"""What a process tree uses: processor time and memory.

Owns the difference between what loads and what trains: workers that are processes count, a step that
runs in the thread that asks does not. Reads Linux's own accounts; what cannot be read is 0.
"""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from fastload.tune.machine import PoolClock

__all__ = ["LoadingClock", "children", "own_bytes", "private_bytes", "processor_s"]

_PAGE = os.sysconf("SC_PAGE_SIZE")


def children() -> list[psutil.Process]:
    """Returns the processes that this one started, and those that they did."""
    return psutil.Process().children(recursive=True)


def own_bytes() -> int:
    """Returns the resident memory of this process."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return int(psutil.Process().memory_info().rss)


def private_bytes() -> list[int]:
    """Returns what each child holds for itself: not what it shares with its parent."""
    return [_private(child.pid) for child in children()]


class LoadingClock:
    """Processor time of loading, in the lane that is measured.

    Args:
        lane: Python threads cannot be told from other threads of the process, so that in their lane
            all of it counts which was not spent in the step.

    Attributes:
        queued_s: For how long native threads could have run and had no processor, once it was read.
        taking_s: What the thread that takes batches spent on that, likewise.
    """

    def __init__(self, lane: str) -> None:
        self._all_threads = lane == "threads"
        self._pool = PoolClock()
        self._stepped_s = self.queued_s = self.taking_s = 0.0

    def start(self) -> None:
        """Counts from now on."""
        self._pool.passed()
        self._stepped_s = 0.0
        self._workers_s = processor_s(children())
        self._process_s = time.process_time()
        self._thread_s = time.thread_time()

    def stepped(self, seconds: float) -> None:
        """Takes out what this thread spent in a step, in processor seconds."""
        self._stepped_s += seconds

    def passed_s(self) -> float:
        """Returns the processor seconds since the start, once."""
        workers_s = processor_s(children()) - self._workers_s
        pool = self._pool.passed()
        self.queued_s = pool.queued_s
        self.taking_s = max(0.0, time.thread_time() - self._thread_s - self._stepped_s)
        if self._all_threads:
            own_s = time.process_time() - self._process_s
        else:
            own_s = time.thread_time() - self._thread_s + pool.cpu_s
        return max(0.0, workers_s + own_s - self._stepped_s)


def processor_s(processes: Iterable[psutil.Process]) -> float:
    """Returns the processor seconds of the processes that still live."""
    seconds = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


def _private(pid: int) -> int:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        fields = [line.split() for line in lines]
        names = ("Private_Clean:", "Private_Dirty:")
        return sum(int(field[1]) * 1024 for field in fields if field and field[0] in names)
    return 0
