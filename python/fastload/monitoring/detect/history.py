"""`History`: what the detectors remember of a run, in arrays whose size does not grow with it.

Owns the newest 4,096 steps, the newest 64 stalls, the newest 512 windows, and two trails over the whole run:
the levels of the windows, and the least memory of each minute. `add` copies; it keeps no window.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import trimmed_mean
from fastload.monitoring.detect.pauses import stalls
from fastload.monitoring.record import Steps, Window

__all__ = ["MINUTE", "TEN_MINUTES", "Context", "History", "Ring", "Trail"]

T = TypeVar("T")
Floats = NDArray[np.float64]

STEPS = ("number", "end_s", "wait_s", "own_s", "gc_s", "region_s", "rows", "epoch", "border")
LEVELS = ("time_s", "step", "step_s", "wait_s", "rows")
STALLS = ("number", "end_s", "excess_s", "wait_s", "gc_s")
FIGURES = (
    "rss_bytes",
    "children_written_bytes",
    "pinned_bytes",
    "cuda_allocated_bytes",
    "cuda_unused_bytes",
    "fds",
    "threads",
)
"""Scalars that are followed over the whole run for growth."""

MINUTE, TEN_MINUTES = 6, 60
"""For `History.every`: windows of 10 s."""

_STEPS = 4096
_WINDOWS = 512
_STALLS = 64
_MOST_SCALARS = 96
_WARM_UP_STEPS = 200
_WARM_UP_S = 120.0
"""Seconds. Longer than this no warm-up lasts, however few steps it had."""
_BORDER = 2
"""The first steps of an epoch: workers start, or the prefetch window fills."""
_BASELINE = 256
"""Steps that say how long a step usually takes."""
_LEAST_BASELINE = 32
_FIRST_WINDOWS = 60
_MINUTE_S = 60.0
_LEVEL_STEPS = 1024
"""A window's level is that of its last steps, at most this many."""


@dataclass(frozen=True, slots=True)
class Context:
    """The monitor's data of the run beside its steps."""

    workers: int = 0
    is_native: bool = False  # the workers are threads of native code
    prefetch: int = 0  # batches that the loader is ahead
    epoch_steps: int = 0  # 0 if unknown
    # steps in which each named region ran, and its seconds
    regions: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    # by step: the function where the stack was sampled, and the library that logs which it had called; or empty
    functions: Mapping[int, tuple[str, str]] = field(default_factory=dict)


class History:
    """The detectors' memory of a run.

    A step counts without its named regions. The newest step is held back until the next one tells if it was
    the last of its epoch. The first 200 steps, or 120 s, are warm-up and leave no trace but in scalars.

    Attributes:
        windows: Windows so far.
        step: Number of the last step; -1 before the first one.
        usual_s: Median duration of the newest 256 steps; NaN before there are 32.
    """

    def __init__(self) -> None:
        self.windows = 0
        self.step = -1
        self.usual_s = math.nan
        self._steps = Ring(len(STEPS), _STEPS)
        self._stalls = Ring(len(STALLS), _STALLS)
        self._levels = Ring(len(LEVELS), _WINDOWS)
        self._scalars = Ring(_MOST_SCALARS, _WINDOWS)
        self._scalar_rows = {"monotonic_s": 0}
        self._all_levels = Trail(len(LEVELS), _WINDOWS, np.mean)
        self._minima = Trail(3 + len(FIGURES), _WINDOWS, np.fmin.reduce)
        self._minute = np.empty(0)
        self._held = np.empty((8, 0))
        self._epochs = np.full(_BORDER, -1.0)
        self._start_s = math.nan
        self._is_warm = False
        self._answers: dict[str, tuple[int, object]] = {}

    def add(self, window: Window) -> None:
        """Adds a window."""
        self.windows += 1
        self.step = window.step
        scalars = dict(window.scalars)
        scalars["monotonic_s"] = window.monotonic_s
        if "cuda_reserved_bytes" in scalars:
            allocated = scalars.get("cuda_allocated_bytes", math.nan)
            scalars["cuda_unused_bytes"] = scalars["cuda_reserved_bytes"] - allocated
        if "queued_s" in scalars and len(window.steps):
            scalars["queued_step_s"] = scalars["queued_s"] / len(window.steps)
        self._add_scalars(scalars)
        if len(window.steps):
            self._add_steps(window.steps)
        if self._is_warm:
            self._add_minimum(window.step, window.monotonic_s, scalars)

    def steps(self) -> dict[str, Floats]:
        """Returns the newest steps after the warm-up, by the names of `STEPS`, each of shape `(steps,)`.

        `border` is 1 for the first two steps of an epoch and for its last; `step_s` is the duration without regions.
        """
        view = self._steps.view()
        return {**dict(zip(STEPS, view, strict=True)), "step_s": _step_s(view)}

    def stalls(self) -> dict[str, Floats]:
        """Returns the newest stalls by the names of `STALLS`; `wait_s` and `gc_s` are parts of the excess."""
        return dict(zip(STALLS, self._stalls.view(), strict=True))

    def levels(self, *, is_whole: bool) -> dict[str, Floats]:
        """Returns the levels of the newest windows, or of the whole run, by the names of `LEVELS`."""
        ring = self._all_levels if is_whole else self._levels
        return dict(zip(LEVELS, ring.view(), strict=True))

    def minima(self) -> tuple[Floats, dict[str, Floats]]:
        """Returns step, monotonic clock and epoch of each minute, shape `(3, minutes)`, and its least figures."""
        view = self._minima.view()
        return view[:3], dict(zip(FIGURES, view[3:], strict=True))

    def scalar(self, name: str) -> Floats:
        """Returns a scalar of the newest windows, oldest first; NaN where it was absent."""
        row = self._scalar_rows.get(name)
        return np.full(len(self._scalars), np.nan) if row is None else self._scalars.view()[row]

    def every(self, windows: int, name: str, compute: Callable[[], T]) -> T:
        """Returns the cached result of this name; recomputes it after so many windows.

        In the first minutes a sixth of that is enough.
        """
        kept = self._answers.get(name)
        after = windows if self.windows > _FIRST_WINDOWS else windows // 6
        if kept is None or self.windows - kept[0] >= after:
            kept = self._answers[name] = (self.windows, compute())
        return cast("T", kept[1])

    def _add_scalars(self, scalars: Mapping[str, float]) -> None:
        column = np.full((_MOST_SCALARS, 1), np.nan)
        for name, value in scalars.items():
            row = self._scalar_rows.setdefault(name, len(self._scalar_rows))
            if row < _MOST_SCALARS:
                column[row, 0] = value
        self._scalars.extend(column)

    def _add_steps(self, steps: Steps) -> None:
        block = np.concatenate([self._held, [getattr(steps, name) for name in STEPS[:-1]]], axis=1)
        if math.isnan(self._start_s):
            self._start_s = float(block[1, 0])
        self._held = block[:, -1:]
        epochs = np.concatenate([self._epochs, block[7]])
        self._epochs = epochs[-1 - _BORDER : -1]
        block = block[:, :-1]
        this = epochs[_BORDER:-1]
        border = this != epochs[_BORDER + 1 :]
        for before in range(1, _BORDER + 1):
            border |= this != epochs[_BORDER - before : -1 - before]
        block = np.concatenate([block, border[None]])
        if not self._is_warm:
            warm = (block[0] >= _WARM_UP_STEPS) | (block[1] - self._start_s > _WARM_UP_S)
            block = block[:, warm]
            self._is_warm = bool(warm.any())
        if block.shape[1]:
            self._steps.extend(block)
            block = block[:, block[8] == 0]
        if block.shape[1]:
            step_s = _step_s(block)
            self._add_stalls(block, step_s)
            self._add_level(block[:, -_LEVEL_STEPS:], step_s[-_LEVEL_STEPS:])

    def _add_stalls(self, block: Floats, step_s: Floats) -> None:
        newest = self._steps.view()[:, -_BASELINE:]
        is_usual = newest[8] == 0
        usual_s = _step_s(newest)[is_usual]
        if len(usual_s) < _LEAST_BASELINE:
            return
        found = stalls(step_s, usual_s)
        self.usual_s = found.usual_s
        if not len(found.index):
            return
        stalled = block[:, found.index]
        wait_s = stalled[2] - np.median(newest[2, is_usual])
        self._stalls.extend(np.stack([stalled[0], stalled[1], found.excess_s, wait_s, stalled[4]]))

    def _add_level(self, block: Floats, step_s: Floats) -> None:
        typical_s, wait_s = trimmed_mean(step_s), trimmed_mean(block[2])
        level = np.array([block[1, -1], block[0, -1], typical_s, wait_s, block[6].mean()])
        self._levels.extend(level[:, None])
        self._all_levels.append(level)

    def _add_minimum(self, step: int, time_s: float, scalars: Mapping[str, float]) -> None:
        figures = [scalars.get(name, math.nan) for name in FIGURES]
        point = np.array([step, time_s, self._held[7, 0], *figures])
        if not len(self._minute):
            self._minute = point
        elif time_s - self._minute[1] < _MINUTE_S:
            self._minute = np.fmin(self._minute, point)
        else:
            self._minima.append(self._minute)
            self._minute = point


class Ring:
    """Keeps the newest values of several columns, `capacity` of each."""

    def __init__(self, columns: int, capacity: int) -> None:
        self._capacity = capacity
        self._data = np.full((columns, 2 * capacity), np.nan)  # takes its memory now
        self._end = 0

    def extend(self, values: Floats) -> None:
        """Appends values of shape `(columns, n)`."""
        values = values[:, -self._capacity :]
        count = values.shape[1]
        if self._end + count > self._data.shape[1]:
            kept = min(self._end, self._capacity)
            self._data[:, :kept] = self._data[:, self._end - kept : self._end]
            self._end = kept
        self._data[:, self._end : self._end + count] = values
        self._end += count

    def view(self) -> Floats:
        """Returns the values, oldest first, shape `(columns, up to capacity)`; valid until the next `extend`."""
        return self._data[:, max(0, self._end - self._capacity) : self._end]

    def __len__(self) -> int:
        return min(self._end, self._capacity)


class Trail:
    """Keeps a whole run in few points: when they are full, `merge` reduces each two neighbours to one.

    The capacity is even. All memory is written when it is allocated, as in a ring: pages that come with the run would
    be found as a leak of the training.
    """

    def __init__(self, columns: int, capacity: int, merge: Callable[..., Floats]) -> None:
        self._data = np.full((columns, capacity), np.nan)  # takes its memory now
        self._merge = merge
        self._end = 0
        self._stride = 1
        self._pending: list[Floats] = []

    def append(self, point: Floats) -> None:
        """Appends a point of shape `(columns,)`."""
        self._pending.append(point)
        if len(self._pending) < self._stride:
            return
        self._data[:, self._end] = self._merge(np.stack(self._pending), axis=0)
        self._pending.clear()
        self._end += 1
        columns, capacity = self._data.shape
        if self._end == capacity:
            self._end //= 2
            pairs = self._data.reshape(columns, self._end, 2)
            self._data[:, : self._end] = self._merge(pairs, axis=2)
            self._stride *= 2

    def view(self) -> Floats:
        """Returns the points, oldest first, shape `(columns, points)`; valid until the next `append`."""
        return self._data[:, : self._end]

    def __len__(self) -> int:
        return self._end


def _step_s(block: Floats) -> Floats:
    """Returns the durations of steps, without named regions."""
    return np.asarray(block[2] + block[3] - block[5])
