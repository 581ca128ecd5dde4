"""Findings on memory, descriptors and threads that grow with the batches."""

import math

from fastload.monitoring.detect.growth import LEAST_BYTES, LEAST_WHOLE_BYTES, Growth, growth
from fastload.monitoring.detect.history import FIGURES, History
from fastload.monitoring.record import Finding

__all__ = ["memory_findings"]

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
_LIMITS = {"fds": "fd_limit", "cuda_allocated_bytes": "cuda_limit_bytes"}
_HOST_MEMORY = ("rss_bytes", "children_written_bytes", "pinned_bytes")


def memory_findings(history: History) -> list[Finding]:
    """Returns the findings on growth over the whole run, or over its newer half."""
    (step, time_s, epoch), values = history.minima()
    newer = slice(len(step) // 2, None)
    found = []
    for name in FIGURES:
        least = (LEAST_BYTES, LEAST_WHOLE_BYTES) if name.endswith("_bytes") else (_LEAST_COUNT, 0.0)
        one = growth(step, time_s, epoch, values[name], *least)
        if one is None or not one.is_found:
            one = growth(step[newer], time_s[newer], epoch[newer], values[name][newer], *least)
        if one is not None and one.is_found:
            found.append(_finding(history, name, one))
    return found


def _finding(history: History, name: str, found: Growth) -> Finding:
    kind, words, owner, advice = _WORDS[name]
    if name.endswith("_bytes"):
        what = f"{words} grows by {_bytes(found.per_batch)} per batch"
        bounds = f"95 % bounds {_bytes(found.low)} to {_bytes(found.high)}; now {_bytes(found.now)}"
    else:
        what = f"{words} grows by {1000 * found.per_batch:.3g} per 1,000 batches"
        bounds = (
            f"95 % bounds {1000 * found.low:.3g} to {1000 * found.high:.3g}; now {found.now:.0f}"
        )
    seconds = found.batches_to(_limit(history, name, found.now)) * history.usual_s
    ends = f"; it ends in {_hours(seconds)}" if math.isfinite(seconds) else ""
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
    return _newest(history, _LIMITS.get(name, ""))


def _newest(history: History, name: str) -> float:
    values = history.scalar(name)
    return float(values[-1]) if len(values) and not math.isnan(values[-1]) else math.inf


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"


def _hours(seconds: float) -> str:
    if seconds >= 172_800:
        return f"{seconds / 86_400:.0f} days"
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"
