"""Intervals of time with a known cause: garbage collections, and regions that the user names.

Owns their clocks, in arrays of fixed size: the latest are kept.
"""

import contextlib
import gc
import os
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.steps import Recorder
from fastload.monitoring.trace import Span

__all__ = ["Collections", "Intervals", "Regions"]

_SIZE = 4096  # intervals that are kept
_STEPS = 512  # steps of each region that are kept
_LEAST_S = 1e-4  # a shorter garbage collection is not recorded
_NAMES = 64  # names of regions; further ones count as `other`


class Intervals:
    """Disjoint intervals of one thread, in their order."""

    def __init__(self) -> None:
        self._begin, self._end = (array("d", bytes(8 * _SIZE)) for _ in range(2))
        self._names = [""] * _SIZE
        self._count = 0

    def add(self, begin_s: float, end_s: float, name: str = "") -> None:
        """Adds an interval, which begins after the last one has ended."""
        at = self._count % _SIZE
        self._names[at] = name
        self._begin[at], self._end[at] = begin_s, end_s
        self._count += 1

    def _kept(self) -> NDArray[np.int64]:
        """Returns the places of the intervals that are kept, oldest first."""
        count = self._count
        return np.arange(max(0, count - _SIZE), count) % _SIZE

    def latest(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the begins and ends that are kept, each of shape `(intervals,)`, oldest first."""
        at = self._kept()
        return np.frombuffer(self._begin)[at], np.frombuffer(self._end)[at]

    def spans(self, track: str) -> list[Span]:
        """Returns the intervals that are kept as spans of a track, oldest first."""
        return [Span(track, self._names[at], self._begin[at], self._end[at]) for at in self._kept()]

    def within(
        self, begin_s: NDArray[np.float64], end_s: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Returns how many seconds of each span `[begin_s, end_s)` the intervals cover."""
        begins, ends = self.latest()
        if len(begins) == 0:
            return np.zeros(len(begin_s))
        # the covered time up to a moment is linear within an interval and constant between two
        moments = np.stack([begins, ends], axis=1).ravel()
        covered = np.repeat(np.cumsum(ends - begins), 2)
        covered[::2] -= ends - begins
        covering = np.interp(end_s, moments, covered) - np.interp(begin_s, moments, covered)
        return np.maximum(covering, 0.0)


class Collections:
    """Records the garbage collections of this process.

    Those of any thread count: the interpreter is held meanwhile.
    """

    def __init__(self) -> None:
        self.intervals = Intervals()
        self._began_s = 0.0

    def start(self) -> None:
        """Starts recording."""
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)

    def close(self) -> None:
        """Stops recording; safe to call twice."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: Mapping[str, int]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._began_s = now
        elif now - self._began_s >= _LEAST_S:
            self.intervals.add(self._began_s, now, f"generation {info['generation']}")


def _close_all() -> None:
    for each in gc.callbacks[:]:
        recording = getattr(each, "__self__", None)
        if isinstance(recording, Collections):
            recording.close()


os.register_at_fork(after_in_child=_close_all)  # workers are not monitored


class Regions:
    """Records the regions that a user names.

    Attributes:
        intervals: The outermost regions, of the thread that takes the batches.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.intervals = Intervals()
        self._recorder = recorder
        self._open: list[str] = []
        self._steps: dict[str, deque[tuple[int, float]]] = {}

    @property
    def depth(self) -> int:
        """The number of regions that are open now in the thread that takes the batches."""
        return len(self._open)

    def steps(self) -> Mapping[str, list[tuple[int, float]]]:
        """Returns the steps of the latest regions and their seconds, by name; regions within others count, too."""
        return {name: list(steps) for name, steps in self._steps.items()}

    @contextlib.contextmanager
    def region(self, name: str) -> Iterator[None]:
        """Records the time of a `with` block; nothing in another thread than that which takes the batches."""
        if self._recorder.thread not in (None, threading.get_ident()):
            yield
            return
        if name not in self._steps and len(self._steps) >= _NAMES:
            name = "other"
        noted = self._steps.setdefault(name, deque(maxlen=_STEPS))
        step, began_s = self._recorder.count, time.monotonic()
        self._open.append(name)
        try:
            yield
        finally:
            self._open.pop()
            ended_s = time.monotonic()
            if name not in self._open:
                noted.append((step, ended_s - began_s))
            if not self._open:
                self.intervals.add(began_s, ended_s, name)
