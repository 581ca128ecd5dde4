"""Growth: memory, descriptors and threads that increase with every batch; and the findings on them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.detect.estimates import MOST_POINTS, Slope, slope, thinned
from fastload.monitoring.detect.history import FIGURES, History
from fastload.monitoring.record import Finding
from fastload.units import size

__all__ = ["Growth", "growth", "memory_findings"]

Floats = NDArray[np.float64]

_LEAST_BYTES = 16.0
"""Bytes per batch. Less takes a hundred million batches to fill 1.6 GB."""
_LEAST_WHOLE_BYTES = 2.0**20
"""Bytes over the whole run. Pages that are first written and logs that fill up are less, and end by themselves."""
_Z = 4.5
"""Standard deviations: each figure is looked at every ten minutes, as long as the run lasts."""
_LEAST_MINUTES = 24
_LEAST_S = 1_800.0
_LEAST_EPOCHS = 3
_WARM_UP = 0.1
_SHORT_EPOCH = 2
_LONG_EPOCH = 5
"""Minutes."""
_PARTS = 3
_STEADY = 0.5
"""Each third of the run must be able to have this part of the slope: warm-up and one-time steps have not."""
_KEPT = 0.25
"""This part of the growth must remain: workers that are started anew for each epoch give theirs back."""
_LEAST_COUNT = 1e-4
"""Descriptors or threads per batch."""
_WORDS = {
    "rss_bytes": (
        "leak",
        "the memory of the training process",
        "own code",
        "Look for lists that grow with the steps: losses kept as tensors, caches in the dataset.",
    ),
    "children_written_bytes": (
        "leak",
        "the private memory of the workers",
        "data",
        "Keep the dataset's lists as arrays: reference counts copy shared pages.",
    ),
    "pinned_bytes": (
        "growth",
        "page-locked memory",
        "data",
        "Batches of one size let torch reuse its page-locked blocks.",
    ),
    "cuda_allocated_bytes": (
        "leak",
        "allocated CUDA memory",
        "own code",
        "Keep metrics as numbers, not as tensors: loss.item() or detach().",
    ),
    "cuda_unused_bytes": (
        "growth",
        "CUDA memory that is reserved and not used (fragmentation)",
        "own code",
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or use fewer different shapes.",
    ),
    "fds": (
        "growth",
        "the number of open file descriptors",
        "own code",
        "Close files, sockets and loaders.",
    ),
    "threads": (
        "growth",
        "the number of threads",
        "own code",
        "End threads and executors that are done.",
    ),
}
"""By figure: the kind of the finding, its subject, its owner, the advice."""
_LIMITS = {
    "fds": ("fd_limit", "the limit of open files"),
    "cuda_allocated_bytes": ("cuda_limit_bytes", "the limit of CUDA memory"),
}
"""By figure: the scalar that it cannot exceed, and its name."""
_HOST_MEMORY = ("rss_bytes", "children_written_bytes", "pinned_bytes")


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a figure per batch."""

    per_batch: float
    low: float  # its lower 95 % bound; -inf where too little is known
    high: float
    now: float  # the newest minimum
    since_step: int  # of the first minute that counts
    since_s: float  # its monotonic clock
    is_found: bool  # it grows by more than the least in all thirds of the run

    def batches_to(self, limit: float) -> float:
        """Returns the batches until the figure reaches a limit."""
        return max(0.0, limit - self.now) / self.per_batch if self.per_batch > 0.0 else math.inf


def growth(
    step: Floats,
    time_s: Floats,
    epoch: Floats,
    values: Floats,
    least: float = _LEAST_BYTES,
    least_whole: float = _LEAST_WHOLE_BYTES,
) -> Growth | None:
    """Measures the growth of a figure per batch from its minimum in each minute.

    The first tenth is left out. Where an epoch lasts for five minutes or more, only pairs of minutes of one epoch
    count, so a step between epochs is no growth (`estimates.slope` with groups); in shorter epochs, such pairs
    must not rule the growth out. A leak goes on, so no third of the run may rule out half of the slope; and it
    stays, so the last third is above the first.

    Args:
        step: Step number of each minute, shape `(minutes,)`.
        time_s: Monotonic clock of each minute.
        epoch: Epoch of each minute.
        values: The least value in the minute: bytes, or a count. NaN where it is unknown.
        least: Growth per batch that is worth telling.
        least_whole: Growth over all minutes that is worth telling.

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
    usual = float(np.median(sizes)) if len(epochs) > 1 else 0.0
    groups = epoch if usual >= _LONG_EPOCH else np.zeros(n)
    whole = _slope(step, values, groups)
    grown = whole.value * (step[-1] - step[0])
    is_found = whole.low > least and whole.least > 0.0 and grown >= least_whole
    if is_found:
        parts = np.array_split(np.arange(n), _PARTS)
        slopes = [_slope(step[part], values[part], groups[part]) for part in parts]
        if _SHORT_EPOCH <= usual < _LONG_EPOCH:
            slopes.append(_slope(step, values, epoch))
        middles = [(float(np.median(step[part])), float(np.median(values[part]))) for part in parts]
        (begin, low), *_, (end, high) = middles
        is_found = all(
            one.high >= _STEADY * whole.value for one in slopes
        ) and high - low >= _KEPT * whole.value * (end - begin)
    return Growth(
        per_batch=whole.value,
        low=whole.low,
        high=whole.high,
        now=float(values[-1]),
        since_step=int(step[0]),
        since_s=float(time_s[0]),
        is_found=is_found,
    )


def _slope(step: Floats, values: Floats, groups: Floats) -> Slope:
    """Returns the slope of some minutes, of pairs within the newest groups only if there are several."""
    names = np.unique(groups)
    if len(names) == 1:
        return slope(step, values, _Z)
    names = names[-MOST_POINTS // _SHORT_EPOCH :]
    most = max(_SHORT_EPOCH, MOST_POINTS // len(names))
    columns = step, values, groups
    parts = [
        np.stack([thinned(column[groups == name], most) for column in columns]) for name in names
    ]
    x, y, within = np.concatenate(parts, axis=1)
    return slope(x, y, _Z, within.astype(np.int64))


def memory_findings(history: History) -> list[Finding]:
    """Returns the findings on growth over the whole run, or over its newer half."""
    (step, time_s, epoch), values = history.minima()
    newer = slice(len(step) // 2, None)
    found = []
    for name in FIGURES:
        least = (
            (_LEAST_BYTES, _LEAST_WHOLE_BYTES) if name.endswith("_bytes") else (_LEAST_COUNT, 0.0)
        )
        one = growth(step, time_s, epoch, values[name], *least)
        if one is None or not one.is_found:
            one = growth(step[newer], time_s[newer], epoch[newer], values[name][newer], *least)
        if one is not None and one.is_found:
            found.append(_finding(history, name, one))
    return found


def _finding(history: History, name: str, found: Growth) -> Finding:
    kind, words, owner, advice = _WORDS[name]
    if name.endswith("_bytes"):
        what = f"{words} grows by {size(found.per_batch)} per batch"
        bounds = f"95 % bounds {size(found.low)} to {size(found.high)}; now {size(found.now)}"
    else:
        what = f"{words} grows by {1000 * found.per_batch:.3g} per 1,000 batches"
        bounds = (
            f"95 % bounds {1000 * found.low:.3g} to {1000 * found.high:.3g}; now {found.now:.0f}"
        )
    seconds = found.batches_to(_limit(history, name, found.now)) * history.usual_s
    limit = _LIMITS[name][1] if name in _LIMITS else "the limit of memory"
    ends = ""
    if math.isfinite(seconds):
        ends = f"; at this rate {limit} is reached in {_hours(seconds)}"
    return Finding(
        kind=kind,
        what=what + ends,
        evidence=f"minima of each minute, {bounds}",
        since_step=found.since_step,
        since_s=found.since_s,
        cost_s=0.0,
        advice=advice,
        owner=owner,
    )


def _limit(history: History, name: str, now: float) -> float:
    """Returns the value at which a figure ends; infinity if it is unknown."""
    if name in _HOST_MEMORY:
        return now + _newest(history, "free_bytes")
    return _newest(history, _LIMITS[name][0]) if name in _LIMITS else math.inf


def _newest(history: History, name: str) -> float:
    values = history.scalar(name)
    return float(values[-1]) if len(values) and not math.isnan(values[-1]) else math.inf


def _hours(seconds: float) -> str:
    if seconds >= 172_800:
        return f"{seconds / 86_400:.0f} days"
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"
