"""Stalls: single steps that take far longer than the steps before them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import median_and_mad

__all__ = ["Stalls", "stalls"]

LONG_S = 5.0
LONG_STEPS = 20.0
"""A single stall of this many seconds and usual steps is reported by itself."""
_MADS = 9.0
_LEAST_FACTOR = 1.5
_SHORTEST_S = 1e-9


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls among some steps.

    Attributes:
        index: Positions of the stalled steps; int64.
        excess_s: The time by which each was longer than usual, as long as `index`.
        usual_s: Median of the usual steps.
        threshold_s: A step longer than this is a stall.
    """

    index: NDArray[np.int64]
    excess_s: NDArray[np.float64]
    usual_s: float
    threshold_s: float


def stalls(step_s: NDArray[np.float64], usual_s: NDArray[np.float64]) -> Stalls:
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
