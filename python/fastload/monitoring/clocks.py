"""`ahead_ns`: how two clocks are set against each other, however often a thread is interrupted between reading them."""

import time
from collections.abc import Callable

__all__ = ["ahead_ns"]

_READINGS = 9


def ahead_ns(clock: Callable[[], int]) -> int:
    """Returns how far the monotonic clock is ahead of another one, in nanoseconds, by the closest of several readings."""
    readings = []
    for _ in range(_READINGS):
        before_ns = time.monotonic_ns()
        other_ns = clock()
        after_ns = time.monotonic_ns()
        readings.append((after_ns - before_ns, (before_ns + after_ns) // 2 - other_ns))
    return min(readings)[1]
