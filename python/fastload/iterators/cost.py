"""`Cost`: the time that a worker spends on a batch, and the stopwatch that measures it."""

import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Cost", "Watch"]

_QUEUE = "/proc/thread-self/schedstat"


class Cost(NamedTuple):
    """Seconds.

    Attributes:
        wall_s: Time with work to do.
        cpu_s: CPU time of it.
        queued_s: Time of it waiting for a free CPU (Linux; elsewhere 0).
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    queued_s: float = 0.0


_NOTHING = Cost()


class Watch:
    """A stopwatch of the thread that creates it; runs while the thread has work."""

    _file: int | None = None

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            self._file = os.open(_QUEUE, os.O_RDONLY | os.O_CLOEXEC)
        self._since = self._now()
        self._before = _NOTHING

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self._file is not None:  # modules may be gone by then
            close(self._file)

    @property
    def lapped_s(self) -> float:
        """When the last lap ended, by `time.perf_counter()`, which all processes read alike."""
        return self._since.wall_s

    def run(self) -> None:
        """Starts."""
        self._since = self._now()

    def rest(self) -> None:
        """Stops."""
        self._before = self.lap()

    def lap(self) -> Cost:
        """Returns the cost since the last lap and starts the next."""
        now, since, before = self._now(), self._since, self._before
        self._since, self._before = now, _NOTHING
        return Cost(  # spelled out: this is a tenth of the cost of a small batch
            before.wall_s + now.wall_s - since.wall_s,
            before.cpu_s + now.cpu_s - since.cpu_s,
            before.queued_s + now.queued_s - since.queued_s,
        )

    def _now(self) -> Cost:
        """Returns the clocks of this thread."""
        queued_s = 0.0
        if self._file is not None:  # Format: `scheduler/sched-stats` of the kernel's documentation.
            _, queued_ns, *_ = os.pread(self._file, 64, 0).split()
            queued_s = int(queued_ns) / 1e9
        return Cost(time.perf_counter(), time.thread_time(), queued_s)
