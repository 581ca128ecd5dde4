"""What a process and its children cost: CPU time, memory that is theirs, page faults.

Read from Linux's own accounts (`getrusage`, `/proc`); children count, because torch's workers are
processes and fastload's are threads.
"""

import resource
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

_OWN = ("Pss_Anon:", "Pss_Shmem:")


def cpu_s() -> float:
    """Returns the processor seconds of this process and of its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def tree_cpu_s() -> float:
    """Returns `cpu_s` and the processor seconds of the children that live, in ticks of 10 ms."""
    living = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return cpu_s() + sum(times.user + times.system for times in living)


def page_faults() -> int:
    """Returns the minor page faults of this process and of its children that have ended."""
    return sum(
        resource.getrusage(who).ru_minflt
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def tree_own_bytes(pid: int) -> int:
    """Returns the memory of a process and all that descend from it, without the pages of files.

    A page that n processes share counts 1/n in each: the sum is what the tree occupies, where a
    sum of resident sets would count shared pages several times. Pages of files are left out because
    their share depends on how many other processes use the same libraries at that time.

    Args:
        pid: The process.
    """
    root = psutil.Process(pid)
    return sum(_own_bytes(process.pid) for process in [root, *root.children(recursive=True)])


def _own_bytes(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):  # ended between the listing and the reading
        return 0
    fields = (line.split() for line in rollup.splitlines())
    return sum(int(field[1]) * 1024 for field in fields if field[0] in _OWN)


class PeakMemory:
    """Samples the memory of a process tree while the block runs, from outside of it.

    Attributes:
        peak_bytes: The largest `tree_own_bytes` seen.
    """

    def __init__(self, pid: int, every_s: float = 0.1) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, tree_own_bytes(self._pid))
            if self._over.wait(self._every_s):
                return
