"""Makes a few samples of a dataset whose code only reads memory, to see if workers could pay.

Nothing is seen of that: the dataset holds what it held, and generators are where they were.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from fastload.draws import keyed
from fastload.iterators.cost import BESIDE
from fastload.sizes import length_of

__all__ = ["why_too_quick"]

_START_S = 0.1
"""Seconds that starting workers takes."""
_TAKING_S = 100e-6
"""Seconds that the consumer needs for a batch of a worker."""
_HANDING_S = 120e-6
"""Seconds of CPU time, of all processes, for handing a small batch over."""
_LONG_S = 5e-3
"""Seconds. After a first sample that takes longer, nothing more is tried."""
_APART = 4
"""How many times quicker others may be than two samples that make workers pay; else more are tried."""
_TRYING_S = 2e-3
"""Seconds after which no further round is begun: quick samples are easily delayed, by other processes and cold caches."""


def why_too_quick(
    dataset: Any, collate_fn: Any, batch_size: int, batches: int | None, workers: int
) -> str | None:
    """Returns why workers cannot pay for a map-style dataset whose code only reads memory; None if they may.

    Args:
        dataset: The dataset.
        collate_fn: A function of the user's whose code only reads memory, too; None for a quick one.
        batch_size: The number of samples of a batch; 1 if only its sampler knows.
        batches: The number of batches of an epoch, if it is known.
        workers: How many there would be.
    """

    def may_pay(sample_s: float) -> bool:
        batch_s = sample_s * batch_size
        saved_s = batch_s - max(_TAKING_S, (BESIDE * batch_s + _HANDING_S) / workers)
        return saved_s > 0 and (batches is None or batches * saved_s > _START_S)

    with keyed.borrowed():
        mean_s = _mean_time(dataset, collate_fn, may_pay)
    if mean_s is None or may_pay(mean_s):
        return None
    return "its code only reads memory, and some samples showed that workers would save no time"


def _mean_time(dataset: Any, collate_fn: Any, may_pay: Callable[[float], bool]) -> float | None:
    """Returns the seconds that a sample takes, in the quickest round.

    None if one raises, if one takes far too long, or if two of them show that workers pay.
    """
    length = length_of(dataset)
    if not length:
        return None
    indices = (0, length // 2, length - 1)
    try:
        quick_s = math.inf
        for index in indices[:2]:
            start = time.perf_counter()
            dataset[index]
            quick_s = min(quick_s, time.perf_counter() - start)
            if quick_s > _LONG_S:
                return None
        if may_pay(quick_s / _APART):
            return None
        rounds: list[float] = []
        while len(rounds) < 2 or sum(rounds) < _TRYING_S:  # the first one takes longer
            start = time.perf_counter()
            samples = [dataset[index] for index in indices]
            if collate_fn is not None:
                collate_fn(samples)
            rounds.append(time.perf_counter() - start)
            if not may_pay(_APART * rounds[-1] / len(indices)):
                break  # not even if others take so much longer
    except Exception:  # whatever a user's class raises: it may have other indices
        return None
    return min(rounds) / len(indices)
