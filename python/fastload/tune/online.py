"""Tuning while a loader runs.

Owns the windows of one loader, over all its epochs, and what was changed. Runs nowhere but in
`next`, once in two seconds, and has no thread. What it sets is permission: samples do not depend on it.
"""

import functools
import logging
import threading
import time
import weakref
from typing import NamedTuple

from fastload import _lib
from fastload.tune.machine import Gauge, PoolClock, PoolTime, memory_share
from fastload.tune.tuned import Tuned

_LOGGER = logging.getLogger("fastload")

WINDOW_S = 2.0
"""Shortest window, in seconds."""
WINDOW_BATCHES = 10
"""Fewest batches of a window: decisions rest on three of them, and must not take minutes where a step is long."""
_SHORT_S = 0.5
"""An epoch that is shorter is not worth reading the threads' clocks."""
_KEPT = 1_000
"""Most changes that are remembered."""


class Settings(NamedTuple):
    """What a tuner sets.

    Attributes:
        workers: How many there may be.
        depth: How many batches may be in flight.
    """

    workers: int
    depth: int


class Change(NamedTuple):
    """What the tuner did, or found.

    Attributes:
        time: When, as `time.time()`.
        knob: What was changed: `"workers"`, `"depth"`, `"workers, depth"`, or nothing: `""`.
        old: What was set until then.
        new: What is set from then on.
        reason: Why, a clause.
        effect: What came of the change before, where this judges it; else empty.
        rate: Samples per second in the window before.
        step_s: The training's own time for a batch in it, in seconds; the median.
        wait_s: What the training waited for a batch in it, in seconds; the mean.
    """

    time: float
    knob: str
    old: Settings
    new: Settings
    reason: str
    effect: str
    rate: float
    step_s: float
    wait_s: float

    @property
    def workers(self) -> int:
        """How many there may be from then on."""
        return self.new.workers

    @property
    def depth(self) -> int:
        """How many batches may be in flight from then on."""
        return self.new.depth


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
        self._gauge: Gauge | None = None
        self._queued_s = 0.0
        self._unread = False
        self._partial: _lib.Window | None = None
        self._figures: dict[str, float] = {}
        self._tuned: weakref.ref[Tuned] | None = None
        self._since = 0.0
        self._looking = threading.Lock()  # an iterator may be taken from by several threads

    def attach(self, tuned: Tuned) -> None:
        """Tunes an iterator's work from now on, which began with the settings of now."""
        self._tuned = weakref.ref(tuned)
        self._since = time.perf_counter()
        self._gauge = self._gauge or Gauge()
        if not self._unread:
            self._clock.passed()  # by whatever ran meanwhile
        self._tuner.rearm()
        before = self._partial
        seconds, batches = (before.elapsed_s, int(before.batches)) if before else (0.0, 0)
        self._be_called(tuned, WINDOW_S - seconds, WINDOW_BATCHES - batches)

    def pause(self, tuned: Tuned) -> None:
        """Ends the part of a window that lies in an epoch which is over."""
        if self._is_attached(tuned):
            self._unread = time.perf_counter() - self._since < _SHORT_S
            passed = PoolTime(0.0, 0.0) if self._unread else self._clock.passed()
            self._partial = self._measured(tuned, passed, memory_share=0.0)  # the last part tells
            self._tuned = None

    def stats(self) -> dict[str, float | str]:
        """Returns what is set, and what the last window was like; empty before the first one."""
        if not self._figures:
            return {}
        settings = {"workers": self.workers, "depth": self.depth}
        return {"bottleneck": self.bottleneck, **settings, **self._figures}

    def _be_called(self, tuned: Tuned, seconds: float, batches: int) -> None:
        """Asks for a call at the end of the window."""
        tuned.watch(seconds, batches, functools.partial(self._look, weakref.ref(tuned)))

    def _look(self, attached: weakref.ref[Tuned]) -> None:
        """Decides, at the end of a window of what was attached."""
        tuned = attached()
        if tuned is None or not self._is_attached(tuned):
            return
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._unread = False
            window = self._measured(tuned, self._clock.passed(), memory_share())
            self._partial, self._since = None, time.perf_counter()
            self._decide(self._beside(window), tuned)
            self._be_called(tuned, WINDOW_S, WINDOW_BATCHES)
        finally:
            self._looking.release()

    def _is_attached(self, tuned: Tuned) -> bool:
        return self._tuned is not None and self._tuned() is tuned

    def _measured(self, tuned: Tuned, passed: PoolTime, memory_share: float) -> _lib.Window:
        """Returns the window so far."""
        self._queued_s += passed.queued_s
        window = tuned.window(passed.cpu_s, memory_share)
        return window if self._partial is None else self._partial.joined(window)

    def _beside(self, window: _lib.Window) -> _lib.Window:
        """Returns a window with what the machine said meanwhile, and keeps its figures."""
        assert self._gauge is not None  # since the first iterator
        strain = self._gauge.read()
        self._figures = {
            "samples_per_s": window.rate,
            "step_s": window.step_s,
            "interpreter_share": window.interpreter_share,
            **strain._asdict(),
        }
        queued_s, self._queued_s = self._queued_s, 0.0
        return window.beside(
            queued_s=queued_s,
            free_bytes=strain.free_bytes,
            memory_stall=strain.memory_stall_share,
            throttled=strain.throttled_share,
        )

    def _decide(self, window: _lib.Window, tuned: Tuned) -> None:
        old = Settings(self.workers, self.depth)
        *new, reason, effect, is_news = self._tuner.next(window, *old)
        settings = Settings(*new)
        self.bottleneck = window.bottleneck
        if settings != old:
            tuned.set(*settings)
        self.workers, self.depth = settings
        if settings == old and not is_news:
            return
        knob = ", ".join(
            name
            for name, was, now in zip(Settings._fields, old, settings, strict=True)
            if was != now
        )
        figures = window.rate, window.step_s, window.wait_s
        self.history.append(Change(time.time(), knob, old, settings, reason, effect, *figures))
        del self.history[:-_KEPT]
        why = f"{reason}: {effect}" if effect else reason
        _LOGGER.info("%d %s, %d batches ahead: %s", self.workers, self._kind, self.depth, why)
