"""Drift: steps that get longer little by little; and the statement that they do not."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import Slope, slope
from fastload.units import duration

__all__ = ["Drift", "drift"]

Floats = NDArray[np.float64]

_LEAST_CHANGE = 0.02
"""A run whose steps got longer by less than this has no drift worth telling: 1 % an hour, for two hours."""
_Z = 4.5
"""Standard deviations: 3 in 10^6 on one side, because a run of a million steps is looked at a thousand times."""
_MOST_UNCERTAIN = 0.2
"""A statement needs bounds that are at most this far apart."""
_DATA_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Drift:
    """The change of the duration of a step over some time."""

    change: float  # from the begin to the end, as a fraction of the usual step
    low: float  # its lower 95 % bound; -inf where too little is known
    high: float
    usual_s: float  # median duration of a step
    since_s: float  # monotonic clock at the begin
    span_s: float  # from begin to end
    since_step: int
    steps: int  # from begin to end
    owner: str  # "data" if waiting for batches has most of the change; else "own code"
    is_found: bool  # steps get longer: by 2 % or more, at 4.5 standard deviations

    def statement(self) -> str:
        """Returns one sentence: a drift, none within bounds, or that too little is known."""
        over = f"over {duration(self.span_s)} ({self.steps:,} steps)"
        bounds = f"95 % bounds {self.low:+.1%} to {self.high:+.1%}"
        if self.is_found:
            return f"The steps get longer: {self.change:+.1%} {over}, {bounds}."
        if not self.high - self.low <= _MOST_UNCERTAIN:
            return f"Too little is known of drift: {self.change:+.1%} {over}, {bounds}."
        usually = f"a step usually takes {duration(self.usual_s)}"
        if self.low > 0.0 and self.change >= _LEAST_CHANGE:
            return f"Perhaps a drift, too small to be sure: {self.change:+.1%} {over}, {bounds}."
        if self.high < 0.0:
            return (
                f"No drift, the steps get shorter: {self.change:+.1%} {over}, {bounds}; {usually}."
            )
        return f"No drift: {self.change:+.1%} {over}, {bounds}; {usually}."


def drift(
    time_s: Floats, step: Floats, step_s: Floats, wait_s: Floats, rows: Floats
) -> Drift | None:
    """Measures the change of the duration of steps over some time.

    The slope is Theil and Sen's over typical durations of 10 s, with the bounds of Kendall's statistic, the
    autocorrelation counted (`estimates.slope`), around a curve if the steps get longer along one. If batches
    vary in size, steps must get longer per batch and per sample: a larger batch is no drift.

    Args:
        time_s: Monotonic clock of each window, shape `(windows,)`.
        step: Number of its last step.
        step_s: Typical duration of its steps.
        wait_s: Typical wait of its steps, part of `step_s`.
        rows: Mean samples of its batches; 0 if unknown.

    Returns:
        None for fewer than eight windows.
    """
    if len(time_s) < 8:
        return None
    span_s = float(time_s[-1] - time_s[0])
    usual_s = float(np.median(step_s))
    if span_s <= 0.0 or usual_s <= 0.0:
        return None
    measured = [step_s / usual_s]
    if rows.min() > 0 and rows.max() > rows.min():
        per_row = step_s / rows
        measured.append(per_row / np.median(per_row))
    part = (time_s - time_s[0]) / span_s
    slopes = [slope(part, values, _Z, may_bend=True) for values in measured]
    least = min(slopes, key=lambda one: one.least if math.isfinite(one.least) else one.value)
    waiting, own = (
        slope(part, each / usual_s, _Z, may_bend=True) for each in (wait_s, step_s - wait_s)
    )
    return Drift(
        change=least.value,
        low=least.low,
        high=least.high,
        usual_s=usual_s,
        since_s=float(time_s[0]),
        span_s=span_s,
        since_step=int(step[0]),
        steps=int(step[-1] - step[0]),
        owner="data" if _is_main(waiting, own) else "own code",
        is_found=least.least > 0.0 and least.value >= _LEAST_CHANGE,
    )


def _is_main(one: Slope, rest: Slope) -> bool:
    """Returns true if a slope is at least 80 % of both, or at least half and the rest may be noise."""
    share = one.value / max(one.value + rest.value, 1e-12)
    return share >= _DATA_SHARE or (share >= 0.5 and one.least > 0.0 >= rest.least)
