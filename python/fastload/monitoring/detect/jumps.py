"""Jumps: from some step on, every step takes longer."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import (
    autocorrelation,
    inflation,
    median_and_mad,
    student_z,
)

__all__ = ["Jump", "jump"]

Floats = NDArray[np.float64]

LEAST_CHANGE = 0.05
_Z = 6.0
"""Standard deviations of the t-test, after Page and Hinkley have chosen the most suspicious point."""
_TOLERANCE = 0.5
_THRESHOLD = 8.0
"""Page and Hinkley's delta and lambda, in standard deviations of a window."""
_LEAST_SIDE = 6
_MOST_SIDE = 60
_MOST_ALARMS = 4


@dataclass(frozen=True, slots=True)
class Jump:
    """A lasting change of level.

    Attributes:
        index: Position of the first value of the new level.
        before: Mean of up to 60 values before it.
        after: Mean of the values since, up to 60.
        z: Student's t of their difference, as a normal deviate.
    """

    index: int
    before: float
    after: float
    z: float

    @property
    def change(self) -> float:
        """The change as a fraction of the old level."""
        return self.after / self.before - 1 if self.before > 0.0 else math.inf


def jump(values: Floats) -> Jump | None:
    """Finds the newest rise to a higher level that still lasts.

    Page and Hinkley's cumulative sum (Page 1954, Hinkley 1971) raises an alarm and names the point; Welch's t-test
    of both sides, with the variances widened by the autocorrelation, decides. A rise counts from 5 % on.

    Args:
        values: Typical durations of the windows, shape `(windows,)`.
    """
    found, start = None, 0
    for _ in range(_MOST_ALARMS):
        alarm = _alarm(values[start:])
        if alarm is None:
            break
        index, at = start + alarm[0], start + alarm[1]
        tested = _tested(values, start, index)
        if tested is not None:
            found = tested
            start = index
        else:
            start = at
    if found is None:
        return None
    newest = float(np.median(values[-_LEAST_SIDE:]))
    lasts = newest > (found.before + found.after) / 2
    return found if lasts else None


def _alarm(values: Floats) -> tuple[int, int] | None:
    """Returns the position of a suspected rise and of its alarm."""
    if len(values) < 2 * _LEAST_SIDE:
        return None
    # neighbours differ by noise alone, but for the jump itself
    _, mad = median_and_mad(np.diff(values))
    deviation = 1.4826 * mad / math.sqrt(2)
    if deviation == 0.0:
        deviation = 1e-6 * abs(float(np.median(values))) or 1.0
    mean = np.cumsum(values) / np.arange(1, len(values) + 1)
    sums = np.cumsum(values - mean - _TOLERANCE * deviation)
    least = np.minimum.accumulate(sums)
    above = sums - least > _THRESHOLD * deviation
    at = int(above.argmax())
    if not above[at]:
        return None
    # the mean already follows the rise: the sums turn where it begins
    return int(sums[: at + 1].argmin()) + 1, at


def _tested(values: Floats, start: int, index: int) -> Jump | None:
    """Returns the jump if both sides differ by what chance does not give."""
    before = values[max(start, index - _MOST_SIDE) : index]
    after = values[index : index + _MOST_SIDE]
    if min(len(before), len(after)) < _LEAST_SIDE:
        return None
    sides = []
    for side in (before, after):
        mean = float(side.mean())
        wider = inflation(autocorrelation(side - mean))
        sides.append((mean, float(side.var(ddof=1)) * wider / len(side), len(side) / wider))
    (low, low_error, low_n), (high, high_error, high_n) = sides
    error = low_error + high_error
    if high <= (1 + LEAST_CHANGE) * low:
        return None
    if error == 0.0:
        return Jump(index, low, high, math.inf)
    # Welch and Satterthwaite's degrees of freedom
    freedom = error**2 / (low_error**2 / max(low_n - 1, 0.5) + high_error**2 / max(high_n - 1, 0.5))
    z = student_z((high - low) / math.sqrt(error), freedom)
    return Jump(index, low, high, z) if z >= _Z else None
