"""Makes a few samples of a dataset whose code only reads memory, to see if workers could pay.

So that nothing is seen of that: not what the dataset holds, no generator, and no time to speak of.
"""

import time
from typing import Any

from fastload.sizes import length_of

__all__ = ["why_too_quick"]

_QUICK_S = 150e-6
"""Seconds. A batch whose samples take less to make costs more to hand over."""
_SHORT_S = 75e-3
"""Seconds. An epoch whose samples take less is over before workers have started."""


def why_too_quick(dataset: Any, batch_size: int, batches: int | None) -> str | None:
    """Returns why workers cannot pay for a map-style dataset whose code only reads memory; None if they may.

    Args:
        dataset: The dataset.
        batch_size: The number of samples of a batch; 1 if only its sampler knows.
        batches: The number of batches of an epoch, if it is known.
    """
    limit_s = max(_QUICK_S, _SHORT_S / batches if batches else 0.0) / batch_size
    mean_s = _mean_time(dataset, limit_s)
    if mean_s is None or mean_s > limit_s:
        return None
    return f"its code only reads memory, {1e6 * mean_s:.1f} µs a sample: less than handing samples over"


def _mean_time(dataset: Any, limit_s: float) -> float | None:
    """Returns the seconds of some samples; None if they raise, or the first one takes far longer."""
    length = length_of(dataset)
    if not length:
        return None
    indices = (0, length // 2, length - 1)
    try:
        start = time.perf_counter()
        dataset[0]
        if time.perf_counter() - start > 10 * limit_s:
            return None
        for index in indices[1:]:  # what is done for the first time takes longer
            dataset[index]
        start = time.perf_counter()
        for index in indices:
            dataset[index]
    except Exception:  # whatever a user's class raises: it may have other indices
        return None
    return (time.perf_counter() - start) / len(indices)
