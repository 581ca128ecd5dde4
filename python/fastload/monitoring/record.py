"""The record of a run: windows of steps and findings, as the monitor, the detectors and the sinks share them.

Owns the fields, and how another clock is set against theirs. Times are in seconds; a unit is part of a name.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLUMNS", "Finding", "Steps", "Window", "ahead_ns"]

_READINGS = 9  # of two clocks, between which a thread may be interrupted


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a window: a batch is waited for, then the training works on it.

    All arrays have shape `(steps,)` and dtype float64 unless said otherwise.

    Attributes:
        number: Step number of this monitor, from 0, over all epochs; int64.
        end_s: Monotonic clock at the end of the step, when the next batch is asked for.
        wait_s: Time within `next()`.
        own_s: Time from the return of `next()` to the next call, regions and garbage collection included.
        gc_s: Part of `own_s` in garbage collection.
        region_s: Part of `own_s` in named regions.
        rows: Samples of the batch; 0 if unknown; int64.
        epoch: Epoch of the batch, from 0; int64.
        batch: Number of the batch in its epoch, from 0; -1 if unknown, as with `in_order=False`; int64.
    """

    number: NDArray[np.int64]
    end_s: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    own_s: NDArray[np.float64]
    gc_s: NDArray[np.float64]
    region_s: NDArray[np.float64]
    rows: NDArray[np.int64]
    epoch: NDArray[np.int64]
    batch: NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of steps."""
        return len(self.number)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays by their names, in the order of `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS: Mapping[str, type] = {
    each.name: np.int64 if each.name in ("number", "rows", "epoch", "batch") else np.float64
    for each in fields(Steps)
}
"""The dtypes of the arrays of `Steps`, by name."""


@dataclass(frozen=True, slots=True)
class Window:
    """The measurements of one interval of the monitor.

    Attributes:
        step: Number of the last step; -1 before the first one.
        time_s: Unix time at the end of the window.
        monotonic_s: Monotonic clock at the end of the window.
        rank: Rank of this process in a distributed job; 0 without one.
        scalars: Figures by name, with units in the names. What is unknown is absent.
        steps: The steps that ended in the window.
    """

    step: int
    time_s: float
    monotonic_s: float
    rank: int
    scalars: Mapping[str, float]
    steps: Steps


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a run.

    Attributes:
        kind: `"stall"`, `"period"`, `"drift"`, `"jump"`, `"starvation"`, `"leak"`, `"growth"`, `"memory"` or
            `"machine"`.
        what: One sentence, such as "every 30 steps the training pauses for 1.2 s, in optimal_sequence_search
            (search.py:41)".
        evidence: The numbers behind it.
        since_step: Step at which it began.
        since_s: Monotonic clock at which it began.
        cost_s: Cost in seconds per step.
        advice: One sentence.
        owner: `"data"`, `"own code"`, `"garbage collection"`, `"checkpoint"`, `"sink"`, `"machine"` or
            `"unknown"`.
        number: Number of the finding in the run, from 0; the same while it holds.
    """

    kind: str
    what: str
    evidence: str
    since_step: int
    since_s: float
    cost_s: float
    advice: str
    owner: str
    number: int = 0


def ahead_ns(clock: Callable[[], int]) -> int:
    """Returns how far the monotonic clock is ahead of another one, in nanoseconds, by the closest of several readings."""
    readings = []
    for _ in range(_READINGS):
        before_ns = time.monotonic_ns()
        other_ns = clock()
        after_ns = time.monotonic_ns()
        readings.append((after_ns - before_ns, (before_ns + after_ns) // 2 - other_ns))
    return min(readings)[1]
