"""The time that tuning may take, and its division among what is still to be measured."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["Deadline", "Overdue", "within"]

_LEAST_S = 0.25
"""Seconds of a run that say anything."""


class Overdue(BaseException):
    """A run takes far longer than it was given; no `except Exception` of a dataset swallows it."""


class Deadline:
    """When everything should be done.

    Args:
        seconds: From now.
        later: Runs that come after all others, for which time is kept.

    Attributes:
        later: How many of them are still to come.
    """

    def __init__(self, seconds: float, later: int = 0) -> None:
        self._began = time.monotonic()
        self.seconds = seconds
        self.later = later

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 when it is over."""
        return max(0.0, self.seconds - self.passed_s)

    def share(self, runs: int, most_s: float = 5.0) -> float:
        """Returns how long each of the runs that remain may take, in seconds."""
        return min(most_s, max(_LEAST_S, self.left_s / max(1, runs + self.later)))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends what takes longer than it should, whatever it waits for.

    Raises:
        Overdue: The time is over.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Overdue

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, end)
    others_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if others_s:  # somebody else's timer goes on
            left_s = others_s - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left_s, 1e-6), interval_s)
