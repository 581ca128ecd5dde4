"""What a loader should take of the memory that there is.

Owns the tiers: below 8 GB, 8 to 13 GB, and above, of what is available to a rank. Knows only numbers, and
refuses what would leave less than a fiftieth of the memory free. Suggests; sets nothing.
"""

from dataclasses import dataclass

from fastload.tune.watch import REFUSE, WARN

__all__ = ["MemoryPlan", "plan_memory"]

_GB = 10**9


@dataclass(frozen=True)
class _Tier:
    """What is suggested from some amount of memory on."""

    name: str
    least_bytes: int
    part: float
    most_bytes: int
    ahead: int
    pins: bool
    evaluation: int


_TIERS = (
    _Tier("above 13 GB", 13 * _GB, 0.10, 2 << 30, 4, True, 4),
    _Tier("8 to 13 GB", 8 * _GB, 0.08, 1 << 30, 2, True, 2),
    _Tier("below 8 GB", 0, 0.05, 256 << 20, 1, False, 1),
)
"""The part of the memory for batches made ahead, and at most so much; batches ahead per worker; whether
page-locked memory can be spared; how many times the training's batch an evaluation may take."""


@dataclass(frozen=True)
class MemoryPlan:
    """A suggestion for one rank.

    Attributes:
        tier: Which of the three.
        available_bytes: What is free for this rank.
        used_share: Part of all memory that is in use now.
        budget_bytes: For batches made ahead: `memory_budget`.
        depth: Most batches in flight.
        pin_memory: Whether to lock their pages.
        evaluation_batch_size: Samples of a batch without gradients.
        needed_bytes: What batches in flight and worker processes will take.
        share: Part of all memory that will be in use with them.
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
    """Returns what suits the memory that is available to one rank.

    Args:
        available_bytes: Free memory for this rank.
        total_bytes: All memory that there is.
        used_share: Part of it that is in use.
        ranks: Processes that share it.
        batch_bytes: Bytes of a batch.
        batch_size: Samples of a batch.
        workers: Threads or processes that make batches.
        worker_bytes: What one of them holds besides; 0 for threads.
        accelerators: Accelerators: page-locked memory is of use to nothing else.
    """
    tier = next(tier for tier in _TIERS if available_bytes >= tier.least_bytes)
    budget = max(1, min(tier.most_bytes, int(available_bytes * tier.part)))
    batch_bytes = max(1, batch_bytes)
    depth = max(1, min(max(2, tier.ahead * workers), budget // batch_bytes))
    evaluation = _evaluation(tier, batch_size, batch_bytes, budget)
    needed = depth * batch_bytes + workers * worker_bytes
    share = used_share + ranks * needed / max(1, total_bytes)
    verdict = "refuses" if share >= REFUSE else "warns" if share >= WARN else "fits"
    return MemoryPlan(
        tier.name,
        available_bytes,
        used_share,
        budget,
        depth,
        tier.pins and accelerators > 0,
        evaluation,
        needed,
        share,
        verdict,
    )


def _evaluation(tier: _Tier, batch_size: int, batch_bytes: int, budget: int) -> int:
    """Returns as many times the training's batch as two of them in flight fit the budget."""
    sample_bytes = batch_bytes / max(1, batch_size)
    times = tier.evaluation
    while times > 1 and 2 * times * batch_size * sample_bytes > budget:
        times //= 2
    return times * batch_size
