"""`Pace`: what the consumer and the workers of an iterator did, where the batches are made in Python.

Owns the counters of one window. Reads clocks and nothing else; a stream of the native lane counts for itself.
"""

import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.iterators.cost import Cost

__all__ = ["Pace", "batch_bytes"]

_STEPS = 64
"""Steps of the consumer of which the median is known."""


class Pace:
    """Counters since somebody last asked."""

    def __init__(self) -> None:
        self._returned_s: float | None = None
        self._restart()

    def _restart(self) -> None:
        self._since_s = time.perf_counter()
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._stepped_s = 0.0
        self._longest_s = 0.0
        self._ready: list[int] = []
        self._batches = 0
        self._asked, self._asked_samples = 0, 0
        self._made, self._spent = 0, Cost()
        self._bytes = 0

    def asked(self, samples: int) -> None:
        """Counts a batch that a worker is asked for."""
        self._asked += 1
        self._asked_samples += samples

    def made(self, cost: Cost) -> None:
        """Counts a batch that a worker has made."""
        self._made += 1
        self._spent = Cost(*map(sum, zip(self._spent, cost, strict=True)))

    def weighed(self, size: int) -> None:
        """Notes the bytes of a batch."""
        self._bytes = max(self._bytes, size)

    def called(self, ready: int) -> None:
        """Notes that the consumer came for a batch, and found so many."""
        self._called_s = time.perf_counter()
        self._ready.append(ready)
        if self._returned_s is not None:
            step_s = self._called_s - self._returned_s
            self._steps.append(step_s)
            self._stepped_s += step_s
            self._returned_s = None

    def returned(self) -> None:
        """Notes that the consumer goes with a batch."""
        self._returned_s = time.perf_counter()
        self._longest_s = max(self._longest_s, self._returned_s - self._called_s)
        self._batches += 1

    def window(
        self, *, worker_bytes: float, memory_share: float, free_share: float = 1.0
    ) -> _lib.Window:
        """Returns what was measured, and begins anew.

        Args:
            worker_bytes: Memory that a worker takes by itself.
            memory_share: Part of the memory that is used, 0 to 1.
            free_share: The part of the time that a worker did not compute in which it could have, 0 to 1;
                the rest it waited for the interpreter.
        """
        elapsed_s = time.perf_counter() - self._since_s
        batches, made = self._batches, max(1, self._made)
        wait_s = max(0.0, elapsed_s - self._stepped_s) / max(1, batches)
        wall_s, cpu_s, queued_s = (seconds / made for seconds in self._spent)
        waited_s = max(0.0, wall_s - cpu_s)
        window = _lib.Window(
            elapsed_s=elapsed_s,
            batches=batches,
            samples=batches * self._asked_samples / max(1, self._asked),
            step_s=statistics.median(self._steps) if self._steps else 0.0,
            wait_s=wait_s,
            work_s=cpu_s + waited_s * free_share,
            cpu_s=cpu_s,
            queued_s=queued_s,
            tail_s=max(0.0, self._longest_s - wait_s),
            least_ready=min(self._ready, default=0),
            most_ready=max(self._ready, default=0),
            batch_bytes=self._bytes,
            worker_bytes=worker_bytes,
            memory_share=memory_share,
        )
        self._restart()
        return window


def batch_bytes(batch: Any) -> int:
    """Returns the bytes of the tensors and arrays of a batch, in dicts and sequences."""
    if isinstance(batch, torch.Tensor | np.ndarray):
        return batch.nbytes
    if isinstance(batch, Mapping):
        return sum(map(batch_bytes, batch.values()))
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return sum(map(batch_bytes, batch))
    return 0
