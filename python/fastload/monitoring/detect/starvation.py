"""Starvation: the training waits for batches, or its accelerator does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import is_usually

__all__ = ["Starvation", "starvation"]

Floats = NDArray[np.float64]

_LEAST_SHARE = 0.1
_WINDOWS = 30


@dataclass(frozen=True, slots=True)
class Starvation:
    """The share of the time in which the training, or its accelerator, has no data.

    Attributes:
        share: Median of the newest windows, 0 to 1.
        windows: Number of windows.
        index: Position of the first window since which the share is as high, within what was given.
        is_starved: The accelerator had no work, rather than the training thread.
    """

    share: float
    windows: int
    index: int
    is_starved: bool


def starvation(wait_share: Floats, starved_share: Floats) -> Starvation | None:
    """Finds that a tenth of the time or more is spent without data, in the newest 30 windows.

    While an accelerator has work queued, a wait of the training thread costs nothing. So where it is known how
    long the accelerator had none, that decides, whatever its utilisation says.

    Args:
        wait_share: Share of each window in which the training waited for batches, shape `(windows,)`.
        starved_share: Share of each window in which the accelerator had no work because of that; NaN if unknown.

    Returns:
        None where the median is below a tenth, or could be by chance (sign test).
    """
    is_starved = len(starved_share) > 0 and not bool(np.isnan(starved_share[-_WINDOWS:]).all())
    shares = starved_share if is_starved else wait_share
    known = np.flatnonzero(~np.isnan(shares))
    newest = shares[known[-_WINDOWS:]]
    if not is_usually(newest >= _LEAST_SHARE):
        return None
    low = np.flatnonzero(shares[known] < _LEAST_SHARE / 2)
    index = int(known[low[-1] + 1]) if len(low) and low[-1] + 1 < len(known) else int(known[0])
    return Starvation(float(np.median(newest)), len(newest), index, is_starved)
