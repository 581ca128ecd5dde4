"""Memory while something is measured: how much over time, and the end before there is none left.

Looks once in a second, and less often where looking is dear, in the thread that consumes; has no thread
of its own. Invariant: looking takes less than a hundredth of the time.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from fastload.tune.machine import memory_share
from fastload.tune.usage import own_bytes, private_bytes

__all__ = ["REFUSE", "WARN", "MemoryRefused", "Moment", "Watch"]

WARN = 0.95
"""Part of the memory in use from which it is warned."""

REFUSE = 0.98
"""Part of the memory in use from which nothing more is measured."""

_EVERY_S = 1.0
_PART = 0.01


class MemoryRefused(Exception):  # noqa: N818 (a decision)
    """So much of the memory is in use that measuring on would endanger the machine."""

    def __init__(self, share: float) -> None:
        super().__init__(share)
        self.share = share

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} of the memory is in use, above {REFUSE:.0%} nothing is measured: "
            "close other programs, or use smaller batches"
        )


class Moment(NamedTuple):
    """Memory at one time.

    Attributes:
        at_s: Seconds since the watch began.
        used_bytes: What this process and its children hold.
        share: Part of all memory that is in use, by anybody.
        doing: What was measured then.
    """

    at_s: float
    used_bytes: int
    share: float
    doing: str


class Watch:
    """Memory over time.

    Args:
        seen: Called after each look.

    Attributes:
        moments: What was seen.
        doing: What is measured now.
        worker_bytes: The most that one worker process was seen to hold for itself.
        peak_bytes: The most that was held since the stretch began.
    """

    def __init__(self, seen: Callable[[], None] | None = None) -> None:
        self._seen = seen
        self.moments: list[Moment] = []
        self.doing = ""
        self.worker_bytes = 0
        self.peak_bytes = 0
        self._began = time.perf_counter()
        self._next = 0.0

    def begin(self, doing: str) -> None:
        """Starts a stretch, with a peak of its own.

        Raises:
            MemoryRefused: More than 98 % of the memory are in use.
        """
        self.doing = doing
        self.peak_bytes = 0
        self.look()

    def look(self) -> None:
        """Looks if it is time to.

        Raises:
            MemoryRefused: More than 98 % of the memory are in use.
        """
        now = time.perf_counter()
        if now >= self._next:
            self.see()

    def see(self) -> None:
        """Looks now.

        Raises:
            MemoryRefused: More than 98 % of the memory are in use.
        """
        began = time.perf_counter()
        workers = private_bytes()
        used = own_bytes() + sum(workers)
        share = memory_share()
        self.worker_bytes = max([self.worker_bytes, *workers])
        self.peak_bytes = max(self.peak_bytes, used)
        self.moments.append(Moment(began - self._began, used, share, self.doing))
        now = time.perf_counter()
        self._next = now + max(_EVERY_S, (now - began) / _PART)
        if self._seen is not None:
            self._seen()
        if share >= REFUSE:
            raise MemoryRefused(share)
