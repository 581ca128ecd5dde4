"""Whether worker processes pay: what batches take to make, beside what the consumer waits for them.

Owns the sums of one iterator. Samples do not depend on what is found, only who makes them.
"""

from fastload.iterators.cost import Cost

__all__ = ["Evidence"]

_WINDOW = 16
"""Batches of a window; two windows in a row have to say the same."""
_MARGIN = 1.25
"""How much sooner the consumer itself has to be done."""
_MOST_S = 0.002
"""A batch that takes longer is never cheaper than handing it over, whatever a window says."""


class Evidence:
    """What the batches of an epoch took.

    Args:
        skipped: How many of the first batches tell nothing, for they were asked for while workers started.
    """

    def __init__(self, skipped: int) -> None:
        self._skipped = skipped
        self._made, self._made_s = 0, 0.0
        self._taken, self._spent_s = 0, 0.0
        self._start_s = 0.0
        self._window: list[float] = []
        self._window_made, self._window_made_s = 0, 0.0
        self._in_favour = 0

    def started(self, seconds: float) -> None:
        """Counts the time that starting the workers took."""
        self._start_s += seconds
        self._spent_s += seconds

    def made(self, cost: Cost) -> None:
        """Counts a batch that a worker has made; for want of a processor it did not have to wait."""
        seconds = max(0.0, cost.wall_s - cost.queued_s)
        self._made += 1
        self._made_s += seconds
        self._window_made += 1
        self._window_made_s += seconds

    def taken(self, seconds: float) -> str | None:
        """Counts a call of `next` that gave a batch; returns why workers do not pay, once they do not."""
        self._taken += 1
        self._spent_s += seconds
        if self._taken <= self._skipped:
            self._window_made, self._window_made_s = 0, 0.0
            return None
        self._window.append(seconds)
        if len(self._window) < _WINDOW:
            return None
        # one call may have met whatever else the machine does
        waited_s = (sum(self._window) - max(self._window)) / (_WINDOW - 1)
        made_s = self._window_made_s / max(1, self._window_made)
        is_cheap = bool(self._window_made) and made_s <= _MOST_S and _MARGIN * made_s < waited_s
        self._in_favour = self._in_favour + 1 if is_cheap else 0
        self._window = []
        self._window_made, self._window_made_s = 0, 0.0
        if self._in_favour < 2:
            return None
        return (
            f"a batch takes {1e6 * made_s:.0f} µs to make, "
            f"and {1e6 * waited_s:.0f} µs to have from a worker"
        )

    def ended(self) -> str | None:
        """Returns why workers did not pay in a whole epoch, with their start; None if they may have paid.

        Workers that share the batches save no more than it takes to make them: if their start took longer,
        they cannot have paid.
        """
        if not self._made or not self._taken:
            return None
        batch_s = self._made_s / self._made
        made_s = batch_s * self._taken
        limit_s = self._spent_s if batch_s <= _MOST_S else self._start_s
        if _MARGIN * made_s >= limit_s:
            return None
        return (
            f"an epoch takes {1e3 * made_s:.1f} ms to make, "
            f"and {1e3 * self._spent_s:.1f} ms to have from workers"
        )
