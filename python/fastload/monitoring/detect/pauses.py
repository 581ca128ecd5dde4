"""Stalls, single steps that take far longer than those before them; and periods, in steps or on the clock.

Owns two tests for periods. `stall_periods` folds the times of stalls, which are few and large. `dense_period` folds
every step, and finds what is smaller than the noise of one step.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import (
    autocorrelation,
    binomial_tail,
    inflation,
    median_and_mad,
    normal_tail,
    student_z,
)

__all__ = ["LONG_S", "LONG_STEPS", "Period", "Stalls", "dense_period", "stall_periods", "stalls"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hits = NDArray[np.bool_]

LONG_S = 5.0
LONG_STEPS = 20.0
"""A single stall of this many seconds and usual steps is reported by itself."""
_MADS = 9.0
_LEAST_FACTOR = 1.5
_SHORTEST_S = 1e-9

_CLOCK_PERIODS_S = (30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds after which loggers write, sinks flush and jobs of the machine run."""

_LEAST_STALLS = 5
_LEAST_SHARE = 0.8
_LEAST_COVERAGE = 0.6
"""Half of a period has a stall at half of its times."""
_MOST_PERIODS = 3
_COMMON_GAPS = 8
_PHASE_BIN = 0.02
_WIDEST_BIN = 0.1
_GAP_TRIALS = 100
"""A period estimated from the gaps counts as this many, because it was fitted."""

_LEAST_ROWS = 16
"""A phase is the mean of at least this many steps, so that it is nearly normal."""
_LONGEST_DENSE = 256
_CLIP = 3.0
_TREND = 1.3


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls among some steps."""

    index: Integers  # positions of the stalled steps
    excess_s: Floats  # by which each was longer than usual
    usual_s: float  # median of the usual steps
    threshold_s: float  # a step longer than this is a stall


def stalls(step_s: Floats, usual_s: Floats) -> Stalls:
    """Finds the steps that are longer than the median times the larger of 1.5 and e^(9 MAD).

    The MAD is that of the logarithms, because steps of batches whose lengths vary are log-normal. For small
    variation this is median + max(9 MAD, median / 2). Of log-normal steps, 6 in 10^10 exceed 9 MAD.

    Args:
        step_s: Durations of the steps to judge, shape `(steps,)`.
        usual_s: Durations of recent steps, those to judge included.
    """
    center, mad = median_and_mad(np.log(np.maximum(usual_s, _SHORTEST_S)))
    median_s = math.exp(center)
    threshold_s = median_s * max(_LEAST_FACTOR, math.exp(min(_MADS * mad, 700.0)))
    index = np.flatnonzero(step_s > threshold_s)
    return Stalls(index, step_s[index] - median_s, median_s, threshold_s)


@dataclass(frozen=True, slots=True)
class Period:
    """Something that repeats."""

    steps: int  # its period in steps; 0 if it follows the clock
    seconds: float  # its period in seconds; 0 if it follows the steps
    phase: float  # step number modulo `steps`, or monotonic clock modulo `seconds`
    excess_s: float  # by which a step is longer: the median of stalls, the mean of dense steps
    count: int  # number of times that it was seen
    p: float  # chance of this in steps without a period, over all periods that were tried
    trend: str  # "growing", "steady" or "fading"
    is_hit: Hits  # which of the given stalls or steps belong to it


def stall_periods(
    number: Floats,
    end_s: Floats,
    excess_s: Floats,
    usual_s: float,
    candidates: Iterable[int] = (),
    most_p: float = 1e-6,
) -> list[Period]:
    """Finds up to three periods of stalls, on the step number or on the clock.

    A period on the step number has its stalls at exactly one phase. On the clock they lie within 2 to 10 % of
    the period. It holds 80 % of the stalls, or has a stall at 80 % of the times it would; and at 60 % of
    them in any case. Chances are binomial, times the phases and the periods tried (Bonferroni).

    Args:
        number: Step numbers of the stalls, ascending.
        end_s: When they ended, on the monotonic clock.
        excess_s: The time by which they were longer than usual.
        usual_s: Duration of a usual step.
        candidates: Periods in steps that are likely; the commonest distances of stalls are tried besides.
        most_p: Chance that stalls without a period show one. A run looks once a minute.
    """
    if len(number) < _LEAST_STALLS:
        return []
    # several slow steps in a row are one stall, at the first
    left = np.concatenate([[True], np.diff(number) > 1])
    first = np.maximum.accumulate(np.where(left, np.arange(len(number)), 0))
    found: list[Period] = []
    while len(found) < _MOST_PERIODS:
        at = np.flatnonzero(left)
        if len(at) < _LEAST_STALLS:
            break
        fits = _on_steps(number[at].astype(np.int64), candidates)
        fits += _on_clock(end_s[at], usual_s)
        fits = [fit for fit in fits if fit[0] <= most_p]
        if not fits:
            break
        p, steps, seconds, phase, hit = min(fits, key=lambda fit: fit[0])
        is_hit = np.zeros(len(number), bool)
        is_hit[at[hit]] = True
        excess = excess_s[is_hit]
        count, middle = len(excess), float(np.median(excess))
        found.append(Period(steps, seconds, phase, middle, count, p, _trend(excess), is_hit[first]))
        left[is_hit] = False
    return found


def dense_period(
    number: Floats,
    step_s: Floats,
    usable: Hits,
    candidates: Iterable[int] = (),
    most_p: float = 1e-5,
) -> Period | None:
    """Finds the period in steps whose slowest phase stands out most (epoch folding: Leahy et al. 1983).

    Durations become logarithms, in deviations from the median, clipped at 3; an AR(1) is taken out of them.
    The mean of each phase, of each period from 2 to 256 steps and of each candidate, is compared with what
    chance gives: the tail of a normal value or of Student's t, whichever is larger, times the phases and periods
    tried.
    In 4,096 steps a phase of one step in 30 stands out if it is longer by 0.6 standard deviations of a step.

    Args:
        number: Step numbers, consecutive.
        step_s: Durations of the steps.
        usable: False for steps that do not count, such as those at the borders of epochs.
        candidates: Longer periods to try.
        most_p: Chance that steps without a period show one. A run of 10^6 steps looks a thousand times.
    """
    n = len(step_s)
    longest = min(n // _LEAST_ROWS, _LONGEST_DENSE)
    if longest < 2:
        return None
    logs = np.log(np.maximum(step_s, 1e-9))
    center, mad = median_and_mad(logs)
    if mad == 0.0 or not usable.any():
        return None
    values = np.clip((logs - center) / (1.4826 * mad), -_CLIP, _CLIP)
    values[~usable] = 0.0
    values -= values.mean()
    rest = values.copy()
    rest[1:] -= autocorrelation(values) * values[:-1]
    periods = [*range(2, longest + 1), *{p for p in candidates if longest < p <= n // _LEAST_ROWS}]
    ones = np.ones(n // 2)
    sums = [(float((ones[: n // one] @ _rows(rest, one)).max()), one) for one in periods]
    deviation = float(rest.std())
    z, period = max((peak / (deviation * math.sqrt(n // period)), period) for peak, period in sums)
    rows = _rows(rest, period)
    slowest = int(rows.sum(axis=0).argmax())
    left = rows - rows.mean(axis=0)
    # noise may be larger at some phases, and correlate from one period to the next
    own = rows[:, slowest]
    error = float(own.std(ddof=1)) / math.sqrt(len(own))
    own_z = student_z(float(own.mean()) / error, len(own) - 1) if error > 0.0 else z
    z = min(z, own_z) / math.sqrt(inflation(autocorrelation(left.T.ravel())))
    p = normal_tail(z) * sum(periods)
    if p > most_p:
        return None
    phase = (n % period + slowest) % period
    is_hit = np.zeros(n, bool)
    is_hit[phase::period] = True
    is_hit &= usable
    excess = step_s[is_hit] - float(np.median(step_s[~is_hit & usable]))
    return Period(
        steps=period,
        seconds=0.0,
        phase=float(number[phase] % period),
        excess_s=float(excess.mean()),
        count=len(excess),
        p=p,
        trend=_trend(excess),
        is_hit=is_hit,
    )


Fit = tuple[float, int, float, float, Hits]
"""Chance, period in steps, period in seconds, phase, and the stalls that belong to it."""


def _on_steps(at: Integers, candidates: Iterable[int]) -> list[Fit]:
    """Returns the periods on the step number that pass."""
    distances = (at[None, :] - at[:, None])[np.triu_indices(len(at), 1)]
    values, counts = np.unique(distances, return_counts=True)
    common = values[np.argsort(-counts, kind="stable")[:_COMMON_GAPS]].tolist()
    span, trials = int(at[-1] - at[0]), int(np.diff(at).max())
    fits: list[Fit] = []
    for period in {*common, *candidates}:
        if not 2 <= period <= span:
            continue
        phases = at % period
        phase = int(np.bincount(phases).argmax())
        is_hit = phases == phase
        count = int(is_hit.sum())
        if _is_regular(count, len(at), span / period + 1):
            p = trials * period * binomial_tail(count, len(at), 1 / period)
            fits.append((p, period, 0.0, float(phase), is_hit))
    return fits


def _on_clock(end_s: Floats, usual_s: float) -> list[Fit]:
    """Returns the periods on the clock that pass."""
    span = float(end_s[-1] - end_s[0])
    trials = len(_CLOCK_PERIODS_S) + _GAP_TRIALS
    fits: list[Fit] = []
    for period in (*_CLOCK_PERIODS_S, _fitted_gap(end_s)):
        if not 0.0 < period <= span / 2:
            continue
        width = max(_PHASE_BIN, 2 * usual_s / period)
        if width > _WIDEST_BIN:
            continue
        phases = end_s % period / period
        order = np.sort(phases)
        inside = np.searchsorted(np.concatenate([order, order + 1]), order + width, side="right")
        most = int((inside - np.arange(len(order))).argmax())
        is_hit = (phases - order[most]) % 1.0 <= width
        count, n = int(is_hit.sum()), len(end_s)
        if _is_regular(count, n, span / period + 1):
            p = trials * n * binomial_tail(count - 1, n - 1, width)
            fits.append((p, 0, period, float(order[most] * period), is_hit))
    return fits


def _is_regular(count: int, stalls: int, times: float) -> bool:
    """Returns true if enough stalls lie at the phase, and enough of its times have one."""
    coverage = count / times
    return (
        count >= _LEAST_STALLS
        and coverage >= _LEAST_COVERAGE
        and (count >= _LEAST_SHARE * stalls or coverage >= _LEAST_SHARE)
    )


def _fitted_gap(end_s: Floats) -> float:
    """Returns the median gap, refined by a line through the times over their multiples of it."""
    gap = float(np.median(np.diff(end_s)))
    if gap <= 0.0:
        return 0.0
    multiple = np.round((end_s - end_s[0]) / gap)
    spread = multiple - multiple.mean()
    return float(spread @ (end_s - end_s.mean()) / max(float(spread @ spread), 1.0))


def _rows(values: Floats, period: int) -> Floats:
    """Returns values as rows of one period each, the newest complete."""
    rows = len(values) // period
    return values[len(values) - rows * period :].reshape(rows, period)


def _trend(excess: Floats) -> str:
    """Compares the newer half with the older one: 1.3 times as much, at three standard errors."""
    older, newer = np.array_split(excess, 2)
    if len(older) < 3 or len(newer) < 3:
        return "steady"
    before, after = float(older.mean()), float(newer.mean())
    error = math.sqrt(older.var(ddof=1) / len(older) + newer.var(ddof=1) / len(newer))
    if abs(after - before) <= 3 * error:
        return "steady"
    if after > _TREND * before:
        return "growing"
    return "fading" if before > _TREND * after else "steady"
