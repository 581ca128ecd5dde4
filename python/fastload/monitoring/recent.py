"""`Recent`: the latest windows of a run, kept for its trace.

Owns arrays of fixed size, which are written once when they are made: memory that grew with each window would be reported
as a leak of the training.
"""

import math
import threading

import numpy as np

from fastload.monitoring.record import COLUMNS, Steps, Window

__all__ = ["Recent"]

_STEPS = 1 << 16
_WINDOWS = 1 << 12
_MOST_SCALARS = 96


class Recent:
    """The latest 4,096 windows, as far as their steps are among the latest 65,536."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the user's thread reads what the monitor's thread adds
        self._steps = np.full((len(COLUMNS), _STEPS), 0.0)
        self._marks = np.full((6, _WINDOWS), 0.0)  # step, times, rank, begin and end of its steps
        self._scalars = np.full((_MOST_SCALARS, _WINDOWS), math.nan)
        self._names: dict[str, int] = {}
        self._count = self._step_count = 0

    def add(self, window: Window) -> None:
        """Adds a window; of one with more than 65,536 steps, the latest are kept."""
        columns = [column[-_STEPS:] for column in window.steps.columns().values()]
        with self._lock:
            steps = self._step_count + len(columns[0])
            self._steps[:, np.arange(self._step_count, steps) % _STEPS] = columns
            at = self._count % _WINDOWS
            times = window.time_s, window.monotonic_s
            self._marks[:, at] = window.step, *times, window.rank, self._step_count, steps
            self._scalars[:, at] = math.nan
            for name, value in window.scalars.items():
                row = self._names.setdefault(name, len(self._names))
                if row < _MOST_SCALARS:
                    self._scalars[row, at] = value
            self._count, self._step_count = self._count + 1, steps

    def windows(self) -> list[Window]:
        """Returns the windows, the oldest first; a figure that was not finite is absent."""
        with self._lock:
            numbers = range(max(0, self._count - _WINDOWS), self._count)
            oldest = self._step_count - _STEPS
            return [
                self._window(at % _WINDOWS)
                for at in numbers
                if self._marks[4, at % _WINDOWS] >= oldest
            ]

    def _window(self, at: int) -> Window:
        step, time_s, monotonic_s, rank, begin, end = self._marks[:, at].tolist()
        columns = self._steps[:, np.arange(int(begin), int(end)) % _STEPS]
        figures = self._scalars[: len(self._names), at].tolist()
        named = zip(self._names, figures, strict=False)
        scalars = {name: value for name, value in named if math.isfinite(value)}
        steps = Steps(*map(np.ndarray.astype, columns, COLUMNS.values()))
        return Window(int(step), time_s, monotonic_s, int(rank), scalars, steps)
