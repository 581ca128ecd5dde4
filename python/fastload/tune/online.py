"""Tuning while a loader runs.

Owns the measurement windows of one loader, over all its epochs, and the changes that were made. The
decision itself is native and knows only numbers. Runs in `next`, about once in two seconds, and has no
thread. It sets how much may run at once; samples do not depend on it.
"""

import functools
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol

from fastload import _lib
from fastload.machine.cpu import cpu_budget
from fastload.machine.processes import CpuTime
from fastload.machine.strain import Gauge, Strain
from fastload.tune.machine import PoolClock

_LOGGER = logging.getLogger("fastload")
WINDOW_S = 2.0  # shortest window, in seconds
# Fewest batches of a window. A decision rests on three windows and must not take minutes where steps are long
WINDOW_BATCHES = 10
_SHORT_EPOCH_S = 0.5  # in a shorter epoch, the threads' clocks are read in the next one
_MOST_CHANGES = 1_000  # length of the history
_MOST_PYTHON_WORKERS = 16  # Python workers per core: a worker waits for one sample at a time
_MOST_NATIVE_THREADS = 4  # native threads per core


class Tuned(Protocol):
    """An iterator that can be measured and resized while it runs.

    A tuner refers to it weakly. The consumer calls the methods, between two batches.
    """

    def window(self, pool_cpu_s: float, memory_share: float) -> _lib.Window:
        """Returns the measurements since the last call, or since the epoch began.

        Args:
            pool_cpu_s: CPU seconds of this process's native threads in that time.
            memory_share: Fraction of the memory that is in use, 0 to 1.
        """

    def set(self, workers: int, depth: int) -> None:
        """Sets how many workers may run and how many batches may be in flight."""

    def watch(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Schedules one call of `look` by the consumer, in place of the call scheduled before.

        Args:
            seconds: Earliest time of the call, from now.
            batches: Fewest further batches before the call.
            look: The function to call.
        """


class Settings(NamedTuple):
    """The limits that a tuner sets.

    Attributes:
        workers: Most workers at a time.
        depth: Most batches in flight.
    """

    workers: int
    depth: int


class Change(NamedTuple):
    """One decision of the tuner.

    Attributes:
        time: When, as `time.time()`.
        knob: The setting that was changed: `"workers"`, `"depth"`, `"workers, depth"`, or `""` for nothing.
        old: The settings before.
        new: The settings after.
        reason: The reason, a clause.
        effect: The result of the change before, where this decision judges it; else empty.
        rate: Samples per second in the window before.
        step_s: The training's own time per batch in that window, in seconds; the median.
        wait_s: The time that the training waited per batch in that window, in seconds; the mean.
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


class Online:
    """The tuner of a loader.

    Args:
        tuner: The decision rule.
        workers: First number of workers.
        depth: First number of batches in flight.
        kind: The kind of the workers, for the log: `"threads"` or `"processes"`.

    Attributes:
        workers: Most workers now.
        depth: Most batches in flight now.
        history: The decisions, newest last.
        bottleneck: The bottleneck of loading in the last window, in words; empty before the first one.
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
        self._clock_is_unread = False
        self._partial: _lib.Window | None = None
        self._figures: dict[str, float] = {}
        self._tuned: weakref.ref[Tuned] | None = None
        self._since = 0.0
        self._deciding = threading.Lock()  # several threads may take batches of one iterator

    def attach(self, tuned: Tuned) -> None:
        """Starts tuning an iterator, which began with the current settings."""
        self._tuned = weakref.ref(tuned)
        self._since = time.perf_counter()
        self._gauge = self._gauge or Gauge()
        if not self._clock_is_unread:
            self._clock.passed()  # leaves out what ran between two epochs
        self._tuner.rearm()
        before = self._partial
        seconds, batches = (before.elapsed_s, int(before.batches)) if before else (0.0, 0)
        self._schedule(tuned, WINDOW_S - seconds, WINDOW_BATCHES - batches)

    def pause(self, tuned: Tuned) -> None:
        """Keeps the unfinished window of an epoch that is over; the next epoch continues it."""
        if self._is_attached(tuned):
            self._clock_is_unread = time.perf_counter() - self._since < _SHORT_EPOCH_S
            passed = CpuTime(0.0, 0.0) if self._clock_is_unread else self._clock.passed()
            # The last part of a window reads the memory.
            self._partial = self._measured(tuned, passed, memory_share=0.0)
            self._tuned = None

    def stats(self) -> dict[str, float | str]:
        """Returns the settings and the figures of the last window; empty before the first one."""
        if not self._figures:
            return {}
        settings = {"workers": self.workers, "depth": self.depth}
        return {"bottleneck": self.bottleneck, **settings, **self._figures}

    def _schedule(self, tuned: Tuned, seconds: float, batches: int) -> None:
        tuned.watch(seconds, batches, functools.partial(self._look, weakref.ref(tuned)))

    def _look(self, attached: weakref.ref[Tuned]) -> None:
        """Decides at the end of a window."""
        tuned = attached()
        if tuned is None or not self._is_attached(tuned):
            return
        if not self._deciding.acquire(blocking=False):
            return
        try:
            self._clock_is_unread = False
            assert self._gauge is not None  # since the first iterator
            strain = self._gauge.read()
            window = self._measured(tuned, self._clock.passed(), strain.memory_share)
            self._partial, self._since = None, time.perf_counter()
            self._decide(self._with_strain(window, strain), tuned)
            self._schedule(tuned, WINDOW_S, WINDOW_BATCHES)
        finally:
            self._deciding.release()

    def _is_attached(self, tuned: Tuned) -> bool:
        return self._tuned is not None and self._tuned() is tuned

    def _measured(self, tuned: Tuned, passed: CpuTime, memory_share: float) -> _lib.Window:
        """Returns the window so far."""
        self._queued_s += passed.queued_s
        window = tuned.window(passed.cpu_s, memory_share)
        return window if self._partial is None else self._partial.joined(window)

    def _with_strain(self, window: _lib.Window, strain: Strain) -> _lib.Window:
        """Adds the machine's memory and pressure to a window, and keeps the figures for `stats`."""
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
        del self.history[:-_MOST_CHANGES]
        why = f"{reason}: {effect}" if effect else reason
        _LOGGER.info("%d %s, %d batches ahead: %s", self.workers, self._kind, self.depth, why)


def start(
    *,
    workers: int,  # first number of workers
    depth: int,  # first number of batches in flight
    budget_bytes: int,  # most bytes of batches in flight
    workers_are_fixed: bool,  # true if the user chose the number of workers
    depth_is_fixed: bool,  # true if the user chose the depth, or the workers that it follows
    known_depth: int | None = None,  # the depth of a profile
    is_known: bool = False,  # true if the settings were measured here, with this dataset
    most_depth: int | None = None,  # most batches in flight; None for two for each possible worker
    kind: str = "threads",  # what the workers are, for the log
    whole_batches: bool = False,  # true if one Python worker makes a whole batch
    may_look_ahead: bool = True,  # true if the sampler may be read further ahead than torch does
) -> Online:
    """Returns the tuner of a loader whose first iterator starts."""
    cores = cpu_budget()
    most = most_workers(workers, cores, whole_batches=whole_batches)
    tuner = _lib.Tuner(
        cores=float(cores),
        most_workers=most,
        most_depth=max(depth, 2 * most) if most_depth is None else most_depth,
        budget_bytes=budget_bytes,
        whole_batches=whole_batches,
        workers_are_fixed=workers_are_fixed,
        depth_is_fixed=depth_is_fixed,
        is_known=is_known,
    )
    if known_depth is not None and not depth_is_fixed:
        depth = known_depth if may_look_ahead else min(known_depth, depth)
    return Online(tuner, workers, depth, kind)


def most_workers(workers: int, cores: int, *, whole_batches: bool) -> int:
    """Returns the most workers to try; AUTO starts with `workers`, and more may wait for files."""
    per_core = _MOST_PYTHON_WORKERS if whole_batches else _MOST_NATIVE_THREADS
    return max(workers, per_core * cores)
