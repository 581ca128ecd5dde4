"""`Host`: effects of the machine on the training in a window: faults, swapping, pressure, throttling, suspension, stops."""

import resource
import time

from fastload.machine import cgroup, kernel_file
from fastload.machine.processes import thread_time
from fastload.machine.strain import Gauge

__all__ = ["Host", "Stops"]

_VMSTAT = "/proc/vmstat"
_COUNTED = {
    "pswpin": "swap_in_bytes",
    "workingset_refault_file": "cache_refault_bytes",
}
_STOP_S = 0.25  # longest time that a busy machine is expected to keep a thread from running
_PAGE = resource.getpagesize()


class Host:
    """Reads the machine; counts and shares cover the time since the last reading."""

    def __init__(self) -> None:
        self._gauge = Gauge()
        self._queued: tuple[int, float] | None = None
        self._since_s = time.monotonic()
        self._counts = _counts()
        self._suspended_s = _suspended_s()

    def read(self, now_s: float, thread: int) -> dict[str, float]:
        """Returns the figures, among them those of `fastload.machine.strain.Strain`.

        Args:
            now_s: The monotonic clock.
            thread: The training thread's number in the system; 0 if unknown.
        """
        counts, suspended_s = _counts(), _suspended_s()
        elapsed_s = max(now_s - self._since_s, 1e-9)
        passed = {name: max(0.0, counts[name] - self._counts.get(name, 0.0)) for name in counts}
        figures: dict[str, float] = self._gauge.read()._asdict()
        figures["io_stall_share"] = min(1.0, passed.pop("io_stalled_s") / elapsed_s)
        figures["suspended_s"] = round(max(0.0, suspended_s - self._suspended_s), 3)
        self._since_s, self._counts, self._suspended_s = now_s, counts, suspended_s
        return figures | passed | self._queued_since(thread)

    def _queued_since(self, thread: int) -> dict[str, float]:
        """Returns `queued_s`; nothing for a thread that was not read before."""
        before, self._queued = self._queued, None
        scheduled = thread_time(thread)
        if scheduled is None:
            return {}
        self._queued = thread, scheduled.queued_s
        if before is None or before[0] != thread:
            return {}
        return {"queued_s": max(0.0, scheduled.queued_s - before[1])}


class Stops:
    """Counts the time in which the process could not run, from the lateness of the monitor's thread."""

    def __init__(self) -> None:
        self._stopped_s = self._active_s = 0.0

    def note(self, late_s: float, thread: int) -> None:
        """Counts by how much the monitor's thread woke late, unless the training thread was busy, or the machine.

        Then either the process was stopped, or its native code waited without giving up the interpreter.
        """
        scheduled = thread_time(thread)
        if scheduled is None:
            return
        before_s, self._active_s = self._active_s, sum(scheduled)
        if late_s >= _STOP_S and self._active_s - before_s < late_s / 2:
            self._stopped_s += late_s

    def passed_s(self) -> float:
        """Returns the seconds since the last call."""
        stopped_s, self._stopped_s = self._stopped_s, 0.0
        return stopped_s


def _counts() -> dict[str, float]:
    """Returns the counters so far; those that the kernel does not have are absent."""
    counts = {
        "major_faults": float(resource.getrusage(resource.RUSAGE_SELF).ru_majflt),
        "io_stalled_s": cgroup.stalled_s("io", "some"),
    }
    kernels = kernel_file.counts(_VMSTAT)
    pages = {ours: kernels[name] for name, ours in _COUNTED.items() if name in kernels}
    return counts | {name: float(number * _PAGE) for name, number in pages.items()}


def _suspended_s() -> float:
    """Returns the seconds for which the machine was suspended since it was started; 0 if unknown."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if clock is None else time.clock_gettime(clock) - time.monotonic()
