"""Robust estimates and the tests behind them, in numpy alone.

Owns the formulas that the detectors share. Series come in the order of time. A value that resembles the
one before it carries less news than an independent one, so variances are widened by the lag-1
autocorrelation.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MOST_POINTS",
    "Slope",
    "autocorrelation",
    "binomial_tail",
    "inflation",
    "is_usually",
    "median_and_mad",
    "normal_tail",
    "slope",
    "student_t",
    "student_z",
    "thinned",
    "trimmed_mean",
]

Floats = NDArray[np.float64]

_Z95 = 1.959964
"""95 % of a normal distribution lie within this many standard deviations."""
MOST_POINTS = 64
"""A slope looks at all pairs of points: 2,016 pairs of 64."""
_LEAST_POINTS = 8
_LEAST_EFFECTIVE = 6.0
"""With fewer independent points than this, a slope has no bounds."""
_WALKS = 3.0
"""A series that changes by more standard deviations than this is no random walk."""
_WALKED = 32
"""Points of such a walk: means of more, so that noise does not count as steps."""
_WALK = 1.2
"""The variance of the slope of a random walk, by that of its end (Durlauf and Phillips 1988)."""


_LEAST_WINDOWS = 14
_MOST_P = 1e-4
"""Of a sign test: windows, and the chance of half of them or fewer."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A Theil-Sen slope with its bounds."""

    value: float  # units of y per unit of x
    low: float  # the lower 95 % bound; -inf where there are too few independent points
    high: float
    least: float  # the lower bound at the number of deviations that `slope` was asked for


def median_and_mad(values: Floats) -> tuple[float, float]:
    """Returns the median, and the median absolute deviation from it, unscaled."""
    center = _median(values)
    return center, _median(np.abs(values - center))


def trimmed_mean(values: Floats) -> float:
    """Returns the mean of the central 80 %, so that one stall in ten steps does not count."""
    n = len(values)
    cut = n // 10
    if cut == 0:
        return _median(values)
    return float(np.partition(values, (cut, n - 1 - cut))[cut : n - cut].mean())


def thinned(values: Floats, most: int = MOST_POINTS) -> Floats:
    """Returns means of blocks of equal length, at most `most` of them; the oldest remainder is dropped."""
    size = -(-len(values) // most)
    if size <= 1:
        return values
    blocks = len(values) // size
    kept = values[len(values) - blocks * size :]
    return np.asarray(kept.reshape(blocks, size).mean(axis=1))


def slope(
    x: Floats,
    y: Floats,
    z: float,
    groups: NDArray[np.int64] | None = None,
    *,
    may_bend: bool = False,
) -> Slope:
    """Returns the median slope of all pairs of points (Sen 1968), with bounds from Kendall's statistic.

    The variance of Kendall's S is n(n - 1)(2n + 5) / 18 (Mann 1945, Kendall 1975), times the inflation
    that the autocorrelation of the residuals asks for. With `groups`, only pairs within a group count,
    and the variances of the groups add up (the seasonal Kendall test: Hirsch, Slack and Smith 1982).

    Args:
        x: Increasing.
        y: As long as x. Both are thinned to 64 points; with groups there must be no more.
        z: Standard deviations of the bound `least`.
        groups: The group of each point, in ascending order.
        may_bend: Take the residuals of a parabola where the series changes by more than a random walk would:
            around a line those of a curve resemble each other, and nothing would be known of the slope.
    """
    if groups is None:
        x, y = thinned(x), thinned(y)
    n = len(x)
    if n < _LEAST_POINTS:
        return Slope(math.nan, -math.inf, math.inf, -math.inf)
    first, second = _pairs(n)
    if groups is None:
        sizes = np.array([n])
    else:
        within = groups[first] == groups[second]
        first, second = first[within], second[within]
        sizes = np.bincount(np.unique(groups, return_inverse=True)[1])
    if not len(first):
        return Slope(math.nan, -math.inf, math.inf, -math.inf)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    pairs = len(slopes)
    value = float(slopes[pairs // 2] + slopes[(pairs - 1) // 2]) / 2
    rest = y - value * x
    if groups is not None:
        rest = rest - _group_medians(rest, groups)
    elif may_bend and abs(value) * (x[-1] - x[0]) > _walk_error(y, _WALKS):
        rest = y - np.polynomial.Polynomial.fit(x, y, 2)(x)
    wider = inflation(autocorrelation(rest - _median(rest)))
    if n / wider < _LEAST_EFFECTIVE:
        return Slope(value, -math.inf, math.inf, -math.inf)
    deviation = math.sqrt(float((sizes * (sizes - 1) * (2 * sizes + 5)).sum()) / 18 * wider)
    # Gilbert 1987, section 16.5: of N slopes, the ((N - C) / 2)th and the ((N + C) / 2 + 1)th
    ranks = [math.floor((pairs - bound * deviation) / 2) for bound in (_Z95, z)]
    low, least = (float(slopes[rank - 1]) if rank > 0 else -math.inf for rank in ranks)
    high = float(slopes[pairs - ranks[0]]) if ranks[0] > 0 else math.inf
    return Slope(value, low, high, least)


def _walk_error(y: Floats, z: float) -> float:
    """Returns the change over a random walk that z deviations allow; it may go along a parabola.

    Its increments resemble each other only a little once those of the parabola are gone from them; what is
    left of that counts as autocorrelation. Infinite where they count as fewer than two.
    """
    steps = np.diff(thinned(y, _WALKED))
    n = len(steps)
    place = np.arange(n) - (n - 1) / 2
    rest = steps - steps.mean() - place * float(place @ steps) / float(place @ place)
    wider = inflation(autocorrelation(rest))
    freedom = n / wider - 2
    if freedom < 2:
        return math.inf
    error = math.sqrt(_WALK * n * float(rest @ rest) / (n - 2) * wider)
    return error * student_t(z, freedom)


def autocorrelation(rest: Floats) -> float:
    """Returns the lag-1 autocorrelation of residuals, from 0 to 0.95.

    An estimate from n residuals of a line is too low by about (1 + 4r) / n (Kendall 1954): corrected.
    """
    n, power = len(rest), float(rest @ rest)
    if power == 0.0 or n <= 4:
        return 0.0
    found = float(rest[1:] @ rest[:-1]) / power
    return min(0.95, max(0.0, (found * n + 1) / (n - 4)))


def inflation(correlation: float) -> float:
    """Returns the factor by which AR(1) noise widens a variance: n values count as n(1 - r)/(1 + r)."""
    return (1 + correlation) / (1 - correlation)


def normal_tail(z: float) -> float:
    """Returns the probability that a standard normal value exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def student_z(t: float, freedom: float) -> float:
    """Returns the normal deviate whose tail is that of Student's t, to 5 % from two degrees of freedom on (Wallace 1959)."""
    z = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.copysign(z, t)


def student_t(z: float, freedom: float) -> float:
    """Returns the Student's t whose tail is that of a normal deviate: the inverse of `student_z`."""
    normal = z * (8 * freedom + 3) / (8 * freedom + 1)
    return math.copysign(math.sqrt(freedom * math.expm1(normal * normal / freedom)), z)


def binomial_tail(successes: int, trials: int, p: float) -> float:
    """Returns the probability of at least so many successes."""
    return math.fsum(
        math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)
    )


def is_usually(holds: NDArray[np.bool_]) -> bool:
    """Returns true if something holds in more than half of 14 windows or more, and not by chance (sign test)."""
    n, count = len(holds), int(holds.sum())
    return n >= _LEAST_WINDOWS and 2 * count > n and binomial_tail(count, n, 0.5) <= _MOST_P


_SECOND, _FIRST = np.tril_indices(MOST_POINTS, -1)  # by their second point: those of n come first


def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns the positions of the first and the second point of each pair of n points, at most 64."""
    count = n * (n - 1) // 2
    return _FIRST[:count], _SECOND[:count]


def _median(values: Floats) -> float:
    """Returns the median; np.median takes several times as long for some hundred values."""
    n = len(values)
    half = n // 2
    if n % 2:
        return float(np.partition(values, half)[half])
    part = np.partition(values, (half - 1, half))
    return float(part[half - 1] + part[half]) / 2


def _group_medians(values: Floats, groups: NDArray[np.int64]) -> Floats:
    """Returns for each value the median of its group."""
    medians = np.empty_like(values)
    for group in np.unique(groups):
        members = groups == group
        medians[members] = _median(values[members])
    return medians
