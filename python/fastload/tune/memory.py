"""Memory: how much is used while a loader is measured, and how much a loader should use.

Owns the limits at which memory is called short, and the tiers of the recommendation.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fastload.tune.machine import memory_share, resident_bytes, worker_bytes

__all__ = ["REFUSE", "WARN", "MemoryPlan", "MemoryRefused", "Moment", "Watch", "plan_memory"]

WARN = 0.95
"""Used fraction of the memory from which a warning is given."""

REFUSE = 0.98
"""Used fraction of the memory from which nothing is measured."""

_EVERY_S = 1.0
_MOST_LOOKING = 0.01
"""Most of the time that is spent reading the memory."""

_GB = 10**9


class MemoryRefused(Exception):  # noqa: N818 (a decision)
    """So much memory is in use that measuring would endanger the machine."""

    def __init__(self, share: float) -> None:
        super().__init__(share)
        self.share = share

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} of the memory is in use, above {REFUSE:.0%} nothing is measured: "
            "close other programs, or use smaller batches"
        )


class Moment(NamedTuple):
    """Memory at one time.

    Attributes:
        at_s: Seconds since the watch began.
        used_bytes: Memory of this process and its children.
        share: Used fraction of all memory, by all programs.
        doing: What was measured.
    """

    at_s: float
    used_bytes: int
    share: float
    doing: str


class Watch:
    """Reads the memory about once in a second, in the consuming thread; has no thread of its own.

    Args:
        seen: Called after each reading.

    Attributes:
        moments: The readings.
        doing: What is measured now.
        worker_bytes: The most private memory of one worker process.
        peak_bytes: The most memory since `begin`.
    """

    def __init__(self, seen: Callable[[], None] | None = None) -> None:
        self._seen = seen
        self.moments: list[Moment] = []
        self.doing = ""
        self.worker_bytes = 0
        self.peak_bytes = 0
        self._began = time.perf_counter()
        self._next = 0.0

    def begin(self, doing: str) -> None:
        """Starts a measurement with a peak of its own.

        Raises:
            MemoryRefused: At least 98 % of the memory is in use.
        """
        self.doing = doing
        self.peak_bytes = 0
        self.look()

    def look(self) -> None:
        """Reads the memory if the last reading is a second old.

        Raises:
            MemoryRefused: At least 98 % of the memory is in use.
        """
        if time.perf_counter() >= self._next:
            self.see()

    def see(self) -> None:
        """Reads the memory.

        Raises:
            MemoryRefused: At least 98 % of the memory is in use.
        """
        began = time.perf_counter()
        workers = worker_bytes()
        used = resident_bytes() + sum(workers)
        share = memory_share()
        self.worker_bytes = max([self.worker_bytes, *workers])
        self.peak_bytes = max(self.peak_bytes, used)
        self.moments.append(Moment(began - self._began, used, share, self.doing))
        now = time.perf_counter()
        self._next = now + max(_EVERY_S, (now - began) / _MOST_LOOKING)
        if self._seen is not None:
            self._seen()
        if share >= REFUSE:
            raise MemoryRefused(share)


@dataclass(frozen=True)
class _Tier:
    """A recommendation from some amount of free memory on.

    Attributes:
        name: Its name.
        least_bytes: Free memory from which it holds.
        share: Fraction of the free memory for batches made ahead.
        most_bytes: Most bytes for batches made ahead.
        ahead: Batches ahead per worker.
        pins: Whether there is enough memory to lock some of it.
        evaluation: Size of an evaluation batch, in training batches.
    """

    name: str
    least_bytes: int
    share: float
    most_bytes: int
    ahead: int
    pins: bool
    evaluation: int


_TIERS = (
    _Tier("above 13 GB", 13 * _GB, 0.10, 2 << 30, 4, True, 4),
    _Tier("8 to 13 GB", 8 * _GB, 0.08, 1 << 30, 2, True, 2),
    _Tier("below 8 GB", 0, 0.05, 256 << 20, 1, False, 1),
)


@dataclass(frozen=True)
class MemoryPlan:
    """A recommendation for one rank.

    Attributes:
        tier: Name of its tier.
        available_bytes: Free memory of this rank.
        used_share: Fraction of all memory that is in use now.
        budget_bytes: Bytes of batches made ahead: `memory_budget`.
        depth: Most batches in flight.
        pin_memory: Whether batches should be page-locked.
        evaluation_batch_size: Samples per batch without gradients.
        needed_bytes: Memory of batches in flight and worker processes.
        share: Fraction of all memory that will be in use with them.
        verdict: `"fits"`, `"warns"` from 95 % on, `"refuses"` from 98 %.
    """

    tier: str
    available_bytes: int
    used_share: float
    budget_bytes: int
    depth: int
    pin_memory: bool
    evaluation_batch_size: int
    needed_bytes: int
    share: float
    verdict: str


def plan_memory(
    *,
    available_bytes: int,
    total_bytes: int,
    used_share: float,
    ranks: int,
    batch_bytes: int,
    batch_size: int,
    workers: int,
    worker_bytes: int,
    accelerators: int,
) -> MemoryPlan:
    """Returns the recommendation for the memory of one rank.

    Args:
        available_bytes: Free memory of this rank.
        total_bytes: Total memory of the host.
        used_share: Fraction of it that is in use.
        ranks: Processes that share it.
        batch_bytes: Bytes of a batch.
        batch_size: Samples per batch.
        workers: Threads or processes that make batches.
        worker_bytes: Private memory of one of them; 0 for threads.
        accelerators: Number of accelerators; without one, page-locked memory is useless.
    """
    tier = next(tier for tier in _TIERS if available_bytes >= tier.least_bytes)
    budget = max(1, min(tier.most_bytes, int(available_bytes * tier.share)))
    batch_bytes = max(1, batch_bytes)
    depth = max(1, min(max(2, tier.ahead * workers), budget // batch_bytes))
    times = tier.evaluation
    while times > 1 and 2 * times * batch_bytes > budget:  # two evaluation batches in flight
        times //= 2
    needed = depth * batch_bytes + workers * worker_bytes
    share = used_share + ranks * needed / max(1, total_bytes)
    return MemoryPlan(
        tier=tier.name,
        available_bytes=available_bytes,
        used_share=used_share,
        budget_bytes=budget,
        depth=depth,
        pin_memory=tier.pins and accelerators > 0,
        evaluation_batch_size=times * batch_size,
        needed_bytes=needed,
        share=share,
        verdict="refuses" if share >= REFUSE else "warns" if share >= WARN else "fits",
    )
