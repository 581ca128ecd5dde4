"""The time that a worker spends on a batch: the stopwatch that measures it, and whether workers pay.

`Evidence` compares the cost of making batches with the consumer's wait. Its verdict decides who makes samples; samples
do not depend on it.
"""

import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BESIDE", "Cost", "Evidence", "Watch"]

_QUEUE = "/proc/thread-self/schedstat"
_WINDOW = 16
"""Batches of a window; two windows in a row must agree."""
_MARGIN = 1.25
"""The consumer takes over only if its wait is more than this many times the cost of making the batches."""
BESIDE = 1.5
"""How many times longer a batch computes in a worker, beside others: they share caches, and CPUs may share a core."""
_MOST_S = 0.002
"""Seconds. A batch that takes longer costs more than handing it over, whatever a window says, unless both are measured
and handing over takes longer."""

_START = 0.25
"""Share of an epoch's wait above which the start of workers makes it a short one."""


class Cost(NamedTuple):
    """Seconds.

    Attributes:
        wall_s: Time with work to do.
        cpu_s: CPU time of it.
        queued_s: Time of it waiting for a free CPU (Linux; elsewhere 0).
        sent_s: CPU time of it that handing over the batch before took.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    queued_s: float = 0.0
    sent_s: float = 0.0


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
            before.cpu_s,
        )

    def _now(self) -> Cost:
        """Returns the clocks of this thread."""
        queued_s = 0.0
        if self._file is not None:  # Format: `scheduler/sched-stats` of the kernel's documentation.
            _, queued_ns, *_ = os.pread(self._file, 64, 0).split()
            queued_s = int(queued_ns) / 1e9
        return Cost(time.perf_counter(), time.thread_time(), queued_s)


class Evidence:
    """The measurements of an epoch.

    Args:
        skipped: Number of first batches to ignore, because they were requested while workers started.

    Attributes:
        made_s: The seconds that all batches so far would have taken here.
    """

    def __init__(self, skipped: int) -> None:
        self._skipped = skipped
        self._made = 0
        self.made_s = self._handed_s = 0.0
        self._taken, self._spent_s = 0, 0.0
        self._start_s = 0.0
        self._window: list[float] = []
        self._window_made, self._window_made_s = 0, 0.0
        self._in_favour = 0

    def started(self, seconds: float) -> None:
        """Adds the time that starting the workers took."""
        self._start_s += seconds
        self._spent_s += seconds

    def made(self, cost: Cost) -> None:
        """Adds the cost that a worker's batch would have here, where nothing else runs beside it.

        Handing it over is no part of that.
        """
        asleep_s = max(0.0, cost.wall_s - cost.queued_s - cost.cpu_s)
        seconds = (cost.cpu_s - cost.sent_s) / BESIDE + asleep_s
        self._handed_s += cost.sent_s / BESIDE
        self._made += 1
        self.made_s += seconds
        self._window_made += 1
        self._window_made_s += seconds

    def opened(self, seconds: float) -> None:
        """Adds the CPU time that the consumer needed to unpickle a batch; the first one's may import modules."""
        if self._taken:
            self._handed_s += seconds

    def taken(self, seconds: float) -> str | None:
        """Adds the wait of a call of `next`; returns why workers do not pay, or None as long as they may."""
        self._taken += 1
        self._spent_s += seconds
        if self._taken <= self._skipped:
            self._window_made, self._window_made_s = 0, 0.0
            return None
        self._window.append(seconds)
        if len(self._window) < _WINDOW:
            return None
        # one call may have been delayed by other processes
        waited_s = (sum(self._window) - max(self._window)) / (_WINDOW - 1)
        made_s = self._window_made_s / max(1, self._window_made)
        is_cheap = (
            bool(self._window_made) and self._may_cost_less(made_s) and _MARGIN * made_s < waited_s
        )
        self._in_favour = self._in_favour + 1 if is_cheap else 0
        self._window = []
        self._window_made, self._window_made_s = 0, 0.0
        if self._in_favour < 2:
            return None
        return (
            f"a batch takes {1e6 * made_s:.0f} µs to make, "
            f"and {1e6 * waited_s:.0f} µs to get from a worker"
        )

    def ended(self, *, is_left: bool = False) -> str | None:
        """Returns why workers did not pay in an epoch, their start included; None if they may have.

        Workers save at most the time that making the batches takes: if their start took longer, they cannot
        have paid. In an epoch that was left after few batches, these were waited for. In one that is so short that
        the start is a large part of the wait, all of the wait counts.
        """
        if not self._made or not self._taken:
            return None
        batch_s = self.made_s / self._made
        made_s = batch_s * self._taken
        is_short = self._start_s > _START * self._spent_s
        is_waited_for = is_left or is_short or self._may_cost_less(batch_s)
        limit_s = self._spent_s if is_waited_for else self._start_s
        if _MARGIN * made_s >= limit_s:
            return None
        what = f"{self._taken} of its batches take" if is_left else "an epoch takes"
        return f"{what} {1e3 * made_s:.1f} ms to make, and {1e3 * self._spent_s:.1f} ms to get from workers"

    def _may_cost_less(self, made_s: float) -> bool:
        """Returns true if making a batch may cost less than handing it over."""
        return made_s <= _MOST_S or self._handed_s > self.made_s
