"""Detects growth: a slope per batch with bounds that hold 19 times of 20.

Two ways, for two kinds of series. A `Series` is one long walk through time, whose neighbours resemble each
other: the Theil-Sen slope of its values, with the bounds of Kendall's statistic, widened by the
autocorrelation of what the slope leaves over. `Stretches` are separate runs that each begin anew: each
gives one slope, these are independent, and the median of them has the bounds of the sign test, which
assume nothing about their distribution. The measurement takes minima beforehand. Warm-up is left out
there, too: a first stretch, a first part of each.

Many figures are looked at many times while a soak runs, so one is called a failure in the midst of it only by
wider bounds, which hold 999 times of 1,000.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastload.monitoring.detect.estimates import autocorrelation, inflation

Z = 1.959964
"""Of a normal distribution, 95 % lie within so many deviations."""

Z_SURELY = 3.090232
"""Of a normal distribution, 0.1 % lie beyond so many deviations on one side."""

LEAST_POINTS = 20
MOST_POINTS = 400
LEAST_STRETCHES = 6
"""With fewer, the smallest and the largest slope are no bounds that hold 19 times of 20."""


class Slope(NamedTuple):
    """Growth per batch.

    Attributes:
        value: The estimate.
        low: The lower bound.
        high: The upper bound.
        points: Of how many points or stretches.
        surely: A lower bound that holds 999 times of 1,000.
    """

    value: float
    low: float
    high: float
    points: int
    surely: float = -math.inf

    def judge(self, limit: float) -> str:
        """Returns `"pass"`, `"FAIL"`, or `"not enough data yet"` where the bounds are on both sides."""
        if self.high < limit:
            return "pass"
        return "FAIL" if self.surely > limit else "not enough data yet"


UNKNOWN = Slope(math.nan, -math.inf, math.inf, 0)


def theil_sen(x: Sequence[float], y: Sequence[float]) -> float:
    """Returns the median of the slopes of all pairs; NaN for fewer than two places."""
    slopes = _slopes(np.asarray(x, float), np.asarray(y, float))
    return float(np.median(slopes)) if len(slopes) else math.nan


def of_series(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Returns the slope of one series, in the order of time."""
    xs, ys = _thinned(np.asarray(x, float), np.asarray(y, float))
    n = len(xs)
    slopes = np.sort(_slopes(xs, ys))
    if n < LEAST_POINTS or not len(slopes):
        return UNKNOWN._replace(points=n)
    value = float(np.median(slopes))
    left = ys - value * xs
    wider = inflation(autocorrelation(left - np.median(left)))
    variance = n * (n - 1) * (2 * n + 5) / 18 * wider
    reach = Z * math.sqrt(variance)
    low, high = (len(slopes) - reach) / 2, (len(slopes) + reach) / 2
    if low < 0 or high > len(slopes) - 1:
        return Slope(value, -math.inf, math.inf, n)
    least = math.floor((len(slopes) - Z_SURELY * math.sqrt(variance)) / 2)
    surely = float(slopes[least]) if least >= 0 else -math.inf
    return Slope(value, float(slopes[math.floor(low)]), float(slopes[math.ceil(high)]), n, surely)


def of_stretches(slopes: Sequence[float]) -> Slope:
    """Returns the median of independent slopes."""
    known = np.sort([slope for slope in slopes if not math.isnan(slope)])
    n = len(known)
    if n < LEAST_STRETCHES:
        return UNKNOWN._replace(points=n)
    rank, least = max(0, _rank(n, 0.025)), _rank(n, 0.001)
    surely = float(known[least]) if least >= 0 else -math.inf
    return Slope(float(np.median(known)), float(known[rank]), float(known[n - 1 - rank]), n, surely)


def _rank(n: int, share: float) -> int:
    """Returns the largest rank that at most this share of medians lies below, the sign test's; -1 for none."""
    below, rank = 0.0, -1
    for successes in range(n):
        below += math.comb(n, successes) / 2**n
        if below > share:
            break
        rank = successes
    return rank


def minima(x: Sequence[float], y: Sequence[float], windows: int) -> tuple[list[float], list[float]]:
    """Returns the smallest value of each of some windows, where it was."""
    kept = [
        part[np.argmin(np.asarray(y)[part])]
        for part in np.array_split(range(len(x)), windows)
        if len(part)
    ]
    return [x[at] for at in kept], [y[at] for at in kept]


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns minima of windows in place of more points than pairs can be made of."""
    if len(x) <= MOST_POINTS:
        return x, y
    xs, ys = minima(x.tolist(), y.tolist(), MOST_POINTS)
    return np.asarray(xs), np.asarray(ys)


def _slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(len(x), 1)
    apart = x[second] != x[first]
    first, second = first[apart], second[apart]
    return np.asarray((y[second] - y[first]) / (x[second] - x[first]))
