"""Tuning while a loader runs.

Owns the windows of one loader, over all its epochs, and what was changed. Runs nowhere but in
`next`, once in two seconds, and has no thread. What it sets is permission: samples do not depend on it.
"""

import logging
import threading
import time
import weakref
from typing import NamedTuple

from fastload import _lib
from fastload.tune.machine import PoolClock, memory_share
from fastload.tune.tuned import Tuned

_LOGGER = logging.getLogger("fastload")

WINDOW_S = 2.0
"""Shortest window, in seconds."""
WINDOW_BATCHES = 30
"""Fewest batches of a window."""
_STRIDE = 64
"""Most batches between two looks at the clock: few, for a step may take long all of a sudden."""
_NEVER = -1
_KEPT = 1_000
"""Most changes that are remembered."""


class Change(NamedTuple):
    """What the tuner did, or found.

    Attributes:
        time: When, as `time.time()`.
        workers: How many there may be from then on.
        depth: How many batches may be in flight from then on.
        reason: Why, a clause.
        rate: Samples per second in the window before.
        step_s: The training's own time for a batch in it, in seconds; the median.
        wait_s: What the training waited for a batch in it, in seconds; the mean.
    """

    time: float
    workers: int
    depth: int
    reason: str
    rate: float
    step_s: float
    wait_s: float


class Online:
    """The tuner of a loader.

    Args:
        tuner: What decides.
        workers: How many there are at first.
        depth: How many batches are in flight at first.
        kind: What the workers are, for words.

    Attributes:
        workers: How many there may be now.
        depth: How many batches may be in flight now.
        history: What was changed or found, the newest last.
        bottleneck: What held the loader up in the last window, in words; empty before the first one.
    """

    def __init__(self, tuner: _lib.Tuner, workers: int, depth: int, kind: str = "threads") -> None:
        self.workers = workers
        self.depth = depth
        self.history: list[Change] = []
        self.bottleneck = ""
        self._tuner = tuner
        self._kind = kind
        self._clock = PoolClock()
        self._partial: _lib.Window | None = None
        self._tuned: weakref.ref[Tuned] | None = None
        self._since = 0.0
        self._seen = 0
        self._looking = threading.Lock()  # an iterator may be taken from by several threads

    def attach(self, tuned: Tuned) -> int:
        """Tunes an iterator's work from now on, which began with the settings of now.

        Returns:
            After how many batches to look.
        """
        self._tuned = weakref.ref(tuned)
        self._since = time.perf_counter()
        self._clock.passed_s()
        before = self._partial.batches if self._partial is not None else 0
        self._seen = max(1, WINDOW_BATCHES - int(before))
        return self._seen

    def pause(self, tuned: Tuned) -> None:
        """Ends the part of a window that lies in an epoch which is over."""
        if self._is_attached(tuned):
            self._partial = self._measured(tuned)
            self._tuned = None

    def look(self, tuned: Tuned) -> int:
        """Decides, if the window is long enough.

        Returns:
            After how many further batches to look again; negative for never.
        """
        if not self._is_attached(tuned) or not self._looking.acquire(blocking=False):
            return _NEVER
        try:
            return self._look(tuned)
        finally:
            self._looking.release()

    def _look(self, tuned: Tuned) -> int:
        now = time.perf_counter()
        elapsed_s = now - self._since
        before = self._partial
        left_s = WINDOW_S - elapsed_s - (before.elapsed_s if before else 0)
        if left_s > 0:
            further = min(_STRIDE, int(self._seen * left_s / max(elapsed_s, 1e-6)) + 1)
            self._seen += further
            return further
        window = self._measured(tuned)
        self._partial, self._since, self._seen = None, now, WINDOW_BATCHES
        self._decide(window, tuned)
        return WINDOW_BATCHES

    def _is_attached(self, tuned: Tuned) -> bool:
        return self._tuned is not None and self._tuned() is tuned

    def _measured(self, tuned: Tuned) -> _lib.Window:
        window = tuned.window(self._clock.passed_s(), memory_share())
        return window if self._partial is None else self._partial.joined(window)

    def _decide(self, window: _lib.Window, tuned: Tuned) -> None:
        workers, depth, reason, is_news = self._tuner.next(window, self.workers, self.depth)
        self.bottleneck = window.bottleneck
        changed = (workers, depth) != (self.workers, self.depth)
        if changed:
            tuned.set(workers, depth)
        self.workers, self.depth = workers, depth
        if changed or is_news:
            change = Change(
                time.time(), workers, depth, reason, window.rate, window.step_s, window.wait_s
            )
            self.history.append(change)
            del self.history[:-_KEPT]
            _LOGGER.info("%d %s, %d batches ahead: %s", workers, self._kind, depth, reason)
