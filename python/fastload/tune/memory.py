"""Memory: how much is used while a loader is measured, and how much a loader should use.

Owns the limits at which memory is called short, and the tiers of the recommendation.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import psutil

from fastload.machine import memory
from fastload.machine.memory import REFUSE, WARN
from fastload.tune.machine import worker_bytes

_EVERY_S = 1.0
_MOST_LOOKING = 0.01  # most of the time that is spent reading the memory
_GB = 10**9


class MemoryRefused(Exception):  # noqa: N818 (a decision)
    """So much memory is in use that measuring would endanger the machine."""

    def __init__(self, share: float) -> None:
        super().__init__(
            f"{share:.1%} of the memory is in use, above {REFUSE:.0%} nothing is measured: "
            "close other programs, or use smaller batches"
        )
        self.share = share


class Moment(NamedTuple):
    """Memory at one time."""

    at_s: float  # seconds since the watch began
    used_bytes: int  # memory of this process and its children
    share: float  # used fraction of all memory, by all programs
    doing: str  # what was measured


class Watch:
    """Reads the memory about once in a second, in the consuming thread; has no thread of its own."""

    def __init__(self, seen: Callable[[], None] | None = None) -> None:
        self._seen = seen  # called after each reading
        self.moments: list[Moment] = []  # the readings
        self.doing = ""  # what is measured now
        self.worker_bytes = 0  # the most private memory of one worker process
        self.peak_bytes = 0  # the most memory since `begin`
        self._began = time.perf_counter()
        self._next = 0.0

    def begin(self, doing: str) -> None:
        """Starts a measurement with a peak of its own."""
        self.doing = doing
        self.peak_bytes = 0
        self.look()

    def look(self) -> None:
        """Reads the memory if the last reading is a second old."""
        if time.perf_counter() >= self._next:
            self.see()

    def see(self) -> None:
        """Reads the memory."""
        began = time.perf_counter()
        workers = worker_bytes()
        used = psutil.Process().memory_info().rss + sum(workers)
        share = memory.read().share
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
    """A recommendation from some amount of free memory on."""

    name: str  # its name
    least_bytes: int  # free memory from which it holds
    share: float  # fraction of the free memory for batches made ahead
    most_bytes: int  # most bytes for batches made ahead
    ahead: int  # batches ahead per worker
    pins: bool  # true if there is enough memory to lock some of it
    evaluation: int  # size of an evaluation batch, in training batches


_TIERS = (
    _Tier("above 13 GB", 13 * _GB, 0.10, 2 << 30, 4, True, 4),
    _Tier("8 to 13 GB", 8 * _GB, 0.08, 1 << 30, 2, True, 2),
    _Tier("below 8 GB", 0, 0.05, 256 << 20, 1, False, 1),
)


@dataclass(frozen=True)
class MemoryPlan:
    """A recommendation for one rank."""

    tier: str  # name of its tier
    available_bytes: int  # free memory of this rank
    used_share: float  # fraction of all memory that is in use now
    budget_bytes: int  # bytes of batches made ahead: `memory_budget`
    depth: int  # most batches in flight
    pin_memory: bool  # true if batches should be page-locked
    evaluation_batch_size: int  # samples per batch without gradients
    needed_bytes: int  # memory of batches in flight and worker processes
    share: float  # fraction of all memory that will be in use with them
    verdict: str  # `"fits"`, `"warns"` from 95 % on, `"refuses"` from 98 %


def plan_memory(
    *,
    available_bytes: int,  # free memory of this rank
    total_bytes: int,  # total memory of the host
    used_share: float,  # fraction of it that is in use
    ranks: int,  # processes that share it
    batch_bytes: int,  # bytes of a batch
    batch_size: int,  # samples per batch
    workers: int,  # threads or processes that make batches
    worker_bytes: int,  # private memory of one of them; 0 for threads
    accelerators: int,  # number of accelerators; without one, page-locked memory is useless
) -> MemoryPlan:
    """Returns the recommendation for the memory of one rank."""
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
