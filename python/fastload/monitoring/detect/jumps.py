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

_LEAST_CHANGE = 0.05
_TOLERANCE = 0.5
_THRESHOLD = 8.0
"""Page and Hinkley's delta and lambda, in standard deviations of a window."""
_LEAST_SIDE = 12
"""Windows: two minutes of slower steps are no new level yet."""
_MOST_SIDE = 60
_MOST_ALARMS = 16
_MOST_WIDER = 6.0
_NO_NOISE = 1e-9
"""A standard error below this part of the level is rounding."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A lasting change of level."""

    index: int  # position of the first value of the new level
    before: float  # mean of up to 60 values before it
    after: float  # mean of the values since, up to 60
    z: float  # Student's t of their difference, as a normal deviate

    @property
    def change(self) -> float:
        """The change as a fraction of the old level."""
        return self.after / self.before - 1 if self.before > 0.0 else math.inf


def jump(values: Floats, least_z: float = 6.0) -> Jump | None:
    """Finds the newest rise to a higher level that still lasts.

    Page and Hinkley's cumulative sum (Page 1954, Hinkley 1971) raises an alarm and names the point; Welch's t-test
    of both sides, with the variances widened by the autocorrelation, decides. A rise counts from 5 % on.

    Args:
        values: Typical durations of the windows, shape `(windows,)`.
        least_z: Standard deviations of the t-test: many, because the point is chosen for being suspicious.
    """
    found, start, level_start = None, 0, 0
    for _ in range(_MOST_ALARMS):
        alarm = _alarm(values[start:])
        if alarm is None:
            break
        index, at = start + alarm[0], start + alarm[1]
        tested = _tested(values, level_start, index, least_z)
        if tested is None:
            start = at
        else:
            found, start, level_start = tested, index, index
    if found is None:
        return None
    newest = float(np.median(values[-_LEAST_SIDE:]))
    lasts = newest > (found.before + found.after) / 2
    return found if lasts else None


def _alarm(values: Floats) -> tuple[int, int] | None:
    """Returns the position of a suspected rise and of its alarm."""
    if len(values) < 2 * _LEAST_SIDE:
        return None
    deviation, wider = _noise(values)
    mean = np.cumsum(values) / np.arange(1, len(values) + 1)
    sums = np.cumsum(values - mean - _TOLERANCE * deviation)
    least = np.minimum.accumulate(sums)
    above = sums - least > _THRESHOLD * deviation * wider
    at = int(above.argmax())
    if not above[at]:
        return None
    # the mean already follows the rise: the sums turn where it begins
    return int(sums[: at + 1].argmin()) + 1, at


def _noise(values: Floats) -> tuple[float, float]:
    """Returns the standard deviation around the level, and the inflation by autocorrelation, at most sixfold.

    Both come from the differences of neighbours, in which a jump is a single outlier: of AR(1) noise, their
    variance is 2(1 - r) times that of the noise, and their lag-1 autocorrelation -(1 - r) / 2.
    """
    steps = np.diff(values)
    center, mad = median_and_mad(steps)
    spread = 1.4826 * mad
    if spread == 0.0:
        return 1e-6 * abs(float(np.median(values))) or 1.0, 1.0
    clipped = np.clip((steps - center) / spread, -3.0, 3.0)
    beside = float(clipped[1:] @ clipped[:-1]) / float(clipped @ clipped)
    correlation = min(max(1 + 2 * beside, 0.0), 0.95)
    return spread / math.sqrt(2 * (1 - correlation)), min(inflation(correlation), _MOST_WIDER)


def _tested(values: Floats, start: int, index: int, least_z: float) -> Jump | None:
    """Returns the jump near an alarm if the difference between both sides is significant."""
    index = _refined(values, start, index)
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
    if high <= (1 + _LEAST_CHANGE) * low:
        return None
    if error <= (_NO_NOISE * low) ** 2:
        return Jump(index, low, high, math.inf)
    # Welch and Satterthwaite's degrees of freedom
    freedom = error**2 / (low_error**2 / max(low_n - 1, 0.5) + high_error**2 / max(high_n - 1, 0.5))
    z = student_z((high - low) / math.sqrt(error), freedom)
    return Jump(index, low, high, z) if z >= least_z else None


def _refined(values: Floats, start: int, index: int) -> int:
    """Returns the point near `index` that splits its surroundings best by least squares (Hinkley 1970)."""
    begin, end = max(start, index - _MOST_SIDE), min(len(values), index + _MOST_SIDE)
    near = values[begin:end]
    n = len(near)
    if n < 2 * _LEAST_SIDE:
        return index
    before = np.arange(_LEAST_SIDE, n - _LEAST_SIDE + 1)
    sums = np.cumsum(near)
    risen = (sums[-1] - sums[before - 1]) / (n - before) - sums[before - 1] / before
    gain = np.sign(risen) * risen**2 * before * (n - before)
    return begin + int(before[gain.argmax()])
