"""What other programs do meanwhile: figures taken beside them are too low."""

import os
import resource
import time

import psutil

from fastload.machine.cgroup import cpu_quota
from fastload.machine.cpu import affinity
from fastload.tune.usage import children, processor_s

__all__ = ["Others"]


class Others:
    """The processors that other programs kept busy since it was made.

    Known only where all processors of the host are this process's: elsewhere the others may be on those that
    are not.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._before_s = _others_s()

    def cores(self) -> float:
        """Returns how many, on average; 0 where that is unknown."""
        if affinity() != os.cpu_count() or cpu_quota() is not None:
            return 0.0
        elapsed_s = time.perf_counter() - self._began
        return max(0.0, _others_s() - self._before_s) / max(elapsed_s, 1e-9)


def _others_s() -> float:
    """Returns the processor seconds of the host without those of this process and its children."""
    host = psutil.cpu_times()
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    busy_s = sum(getattr(host, name, 0.0) for name in names)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = time.process_time() + ended.ru_utime + ended.ru_stime + processor_s(children())
    return float(busy_s - own_s)
