"""`Cost`: what a worker spends at a batch, and the watch that it is read from."""

import time
from typing import NamedTuple, Self

__all__ = ["Cost", "Watch"]


class Cost(NamedTuple):
    """Seconds.

    Attributes:
        wall_s: In which there was something to do.
        cpu_s: Of them, those on a processor.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @classmethod
    def now(cls) -> Self:
        """Returns the clocks of the thread that asks."""
        return cls(time.perf_counter(), time.thread_time())


class Watch:
    """A thread's watch: runs from when there is something to do to when there is nothing."""

    def __init__(self) -> None:
        self._since = Cost.now()
        self._before = Cost()

    def run(self) -> None:
        """Starts."""
        self._since = Cost.now()

    def rest(self) -> None:
        """Stops."""
        self._before = self.lap()

    def lap(self) -> Cost:
        """Returns what was spent since the last time, and goes on from there."""
        now, before = Cost.now(), self._before
        spent = Cost(
            before.wall_s + now.wall_s - self._since.wall_s,
            before.cpu_s + now.cpu_s - self._since.cpu_s,
        )
        self._since, self._before = now, Cost()
        return spent
