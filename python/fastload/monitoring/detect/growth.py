"""Growth: memory, descriptors and threads that increase with every batch."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import Slope, slope, thinned

__all__ = ["Growth", "growth"]

Floats = NDArray[np.float64]

LEAST_BYTES = 16.0
"""Bytes per batch. Less takes a hundred million batches to fill 1.6 GB."""
_Z = 4.5
"""Standard deviations: each figure is looked at every ten minutes, as long as the run lasts."""
_LEAST_MINUTES = 24
_LEAST_S = 1_800.0
_LEAST_EPOCHS = 3
_WARM_UP = 0.1
_LEAST_IN_EPOCH = 5
_PARTS = 3
_STEADY = 0.5
"""Each third of the run must be able to have this part of the slope: warm-up and one-time steps have not."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a figure per batch.

    Attributes:
        per_batch: The estimate.
        low: Its lower 95 % bound; -inf where too little is known.
        high: Its upper 95 % bound.
        now: The newest minimum.
        since_step: Step number of the first minute that counts.
        since_s: Its monotonic clock.
        is_found: It grows by more than the least in all thirds of the run.
    """

    per_batch: float
    low: float
    high: float
    now: float
    since_step: int
    since_s: float
    is_found: bool

    def batches_to(self, limit: float) -> float:
        """Returns the batches until the figure reaches a limit."""
        return max(0.0, limit - self.now) / self.per_batch if self.per_batch > 0.0 else math.inf


def growth(
    step: Floats, time_s: Floats, epoch: Floats, values: Floats, least: float = LEAST_BYTES
) -> Growth | None:
    """Measures the growth of a figure per batch from its minimum in each minute.

    The first tenth is left out. Where epochs are long, pairs of minutes count within an epoch only, so a step
    between epochs is no growth (`estimates.slope` with groups). A leak goes on: no third of the run may rule
    out half of the slope.

    Args:
        step: Step number of each minute, shape `(minutes,)`.
        time_s: Monotonic clock of each minute.
        epoch: Epoch of each minute.
        values: The least value in the minute: bytes, or a count. NaN where it is unknown.
        least: Growth per batch that is worth telling.

    Returns:
        None before three epochs or half an hour, and for fewer than 24 minutes.
    """
    known = ~np.isnan(values)
    known[1:] &= np.diff(step) > 0
    known[: math.ceil(_WARM_UP * len(values))] = False
    step, time_s, epoch, values = step[known], time_s[known], epoch[known], values[known]
    n = len(step)
    if n < _LEAST_MINUTES:
        return None
    epochs, sizes = np.unique(epoch, return_counts=True)
    if time_s[-1] - time_s[0] < _LEAST_S and len(epochs) < _LEAST_EPOCHS:
        return None
    is_grouped = len(epochs) > 1 and bool(np.median(sizes) >= _LEAST_IN_EPOCH)
    whole = _slope(step, values, epoch if is_grouped else None)
    is_found = whole.low > least and whole.least > 0.0
    if is_found:
        for part in np.array_split(np.arange(n), _PARTS):
            one = _slope(step[part], values[part], epoch[part] if is_grouped else None)
            is_found &= one.high >= _STEADY * whole.value
    return Growth(
        per_batch=whole.value,
        low=whole.low,
        high=whole.high,
        now=float(values[-1]),
        since_step=int(step[0]),
        since_s=float(time_s[0]),
        is_found=is_found,
    )


def _slope(step: Floats, values: Floats, epoch: Floats | None) -> Slope:
    """Returns the slope of some minutes, with pairs within an epoch only if epochs are given."""
    if epoch is None:
        return slope(step, values, _Z)
    rows = [
        np.stack([thinned(column[epoch == one], most) for column in (step, values, epoch)])
        for most in [max(_LEAST_IN_EPOCH, 64 // len(np.unique(epoch)))]
        for one in np.unique(epoch)[-64 // _LEAST_IN_EPOCH :]
    ]
    points = np.concatenate(rows, axis=1)
    return slope(points[0], points[1], _Z, points[2].astype(np.int64))
