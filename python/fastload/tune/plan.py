"""The settings to use: in closed form from what was measured, then against their neighbours.

X* = min(C / sum s, 1 / s_serial, BW / bytes, 1 / g), operational analysis of a pipeline without branches: C
processors, s processor seconds of a sample, s_serial its seconds in the thread that takes batches, BW the
bytes that storage gives in a second, g the seconds for which a sample holds an interpreter that all
workers share. Workers by Little's law. What this does not see (locks, caches, the training's own need of
processors) the runs see that follow.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fastload.tune.bench import Bench
from fastload.tune.findings import Plan
from fastload.tune.lanes import ALIKE, best_of
from fastload.tune.measure import Run
from fastload.tune.step import StandIn

__all__ = ["Costs", "deepened", "inline", "limits", "verified", "workers_for"]

_HEADROOM = 1.1
"""What workers should be able to make, above what is taken."""

_DEPTHS = (1, 2, 4, 8, 16)

_PASSED = 0.95
"""A limit below this part of a rate that was reached is none."""

_LESS = 0.01
"""Waiting of which this part of the time less is no less."""

_LEAST = 2
"""Batches in flight with which one is made while another is handed over."""


@dataclass(frozen=True)
class Costs:
    """What a sample takes, in seconds.

    Attributes:
        cpu_s: On processors.
        work_s: Of a worker, computing or waiting.
        serial_s: Of the thread that takes batches.
        held_s: Holding the interpreter that all workers share; 0 where they share none.
        file_bytes: Encoded bytes.
        bytes_per_s: What storage gives; None where that is unknown or of no matter.
    """

    cpu_s: float
    work_s: float
    serial_s: float = 0.0
    held_s: float = 0.0
    file_bytes: float = 0.0
    bytes_per_s: float | None = None


def limits(costs: Costs, cores: float, ranks: int) -> dict[str, float]:
    """Returns the samples per second that each limit allows one rank, the least first."""
    found: dict[str, float] = {}
    if costs.cpu_s > 0:
        found["processors"] = cores / costs.cpu_s
    if costs.serial_s > 0:
        found["handing batches over"] = 1 / costs.serial_s
    if costs.bytes_per_s and costs.file_bytes > 0:
        found["storage"] = costs.bytes_per_s / costs.file_bytes / ranks
    if costs.held_s > 0:
        found["the interpreter"] = 1 / costs.held_s
    return dict(sorted(found.items(), key=lambda item: item[1]))


def workers_for(costs: Costs, allowed: Mapping[str, float], wanted: float | None) -> int:
    """Returns how many workers make what is wanted, or what the limits allow if that is less.

    Args:
        costs: What a sample takes.
        allowed: The limits.
        wanted: Samples per second that the training takes; None for as many as possible.
    """
    most = min(allowed.values(), default=0.0)
    target = most if wanted is None else min(most, wanted * _HEADROOM)
    return max(1, math.ceil(target * costs.work_s - 0.05))


def verified(
    bench: Bench,
    lane: str,
    workers: int,
    allowed: Mapping[str, float],
    most: int,
    *,
    known: tuple[Run, ...] = (),
    start: int | None = None,
    runs: int = 6,
) -> Plan:
    """Measures settings beside their neighbours and returns the best of them.

    Args:
        bench: Where to measure.
        lane: How batches are made.
        workers: By how many, as the costs have it.
        allowed: Samples per second that each limit allows.
        most: Most workers that are worth trying.
        known: Runs of this lane beside the same step.
        start: Where to begin instead, if runs have shown better.
        runs: How many runs of this length the time has to suffice for.
    """
    predicted, tried = workers, {run.workers: run for run in known if run.lane == lane}
    centre = min(max(1, start or workers), most)
    for _ in range(4):  # the best may lie further than one step away
        for each in (centre, centre - 1, centre + 1):
            if 1 <= each <= most and each not in tried:
                share = bench.deadline.share(runs, 4.0)
                tried[each] = bench.run(lane, each, share, step=bench.step)
        best = _chosen(bench, list(tried.values()))
        if best is None or best.workers == centre or bench.deadline.left_s <= 0:
            break
        centre = best.workers
    best = _chosen(bench, list(tried.values()))
    allowed = _unrefuted(allowed, list(tried.values()))
    limit = next(iter(allowed), "")
    return Plan(
        lane=lane,
        workers=best.workers if best else centre,
        depth=best.depth if best else 0,
        predicted=predicted,
        limits=allowed,
        limit=limit,
        rate=best.rate if best else 0.0,
        waiting=best.waiting if best else 1.0,
        tried=tuple(tried[each] for each in sorted(tried)),
    )


def _chosen(bench: Bench, runs: list[Run]) -> Run | None:
    """Returns the smallest setting at which a training never waits; without one, the best rate."""
    if bench.step is not None:
        enough = [run for run in runs if run.keeps_up]
        top = max((run.steady_rate for run in runs), default=0.0)
        enough = [run for run in enough if run.steady_rate >= ALIKE * top]
        if enough:
            return min(enough, key=lambda run: run.workers)
    return best_of(runs)


def _unrefuted(allowed: Mapping[str, float], runs: list[Run]) -> dict[str, float]:
    """Returns the limits that no run has passed: an estimate that one has was wrong."""
    reached = max((run.rate for run in runs), default=0.0)
    return {name: rate for name, rate in allowed.items() if rate >= _PASSED * reached}


def deepened(bench: Bench, plan: Plan, runs: int) -> tuple[Plan, tuple[Run, ...]]:
    """Returns the settings with how far ahead is enough, and the runs that say so.

    Where nobody said what the training takes, it is one that takes batches as fast as they are made. Native
    threads take any number of batches; of Python workers each makes one at least.
    """
    step = bench.step
    if step is None:
        step = StandIn(min(0.5, bench.target.batch_size / max(plan.rate, 1e-3)))
    made: list[Run] = []
    for each in _DEPTHS:
        depth = each if plan.lane == "native" else each * plan.workers
        if bench.deadline.left_s <= 0 and made:
            break
        share = bench.deadline.share(runs, 3.0)
        made.append(bench.run(plan.lane, plan.workers, share, step=step, depth=depth))
        flat = len(made) > 2 and made[-1].waiting >= made[-2].waiting - _LESS
        if flat or (len(made) > 1 and made[-1].keeps_up):
            break
    top = max(run.steady_rate for run in made)
    least = min(run.waiting for run in made)
    enough = [
        run for run in made if run.steady_rate >= ALIKE * top and run.waiting <= least + 2 * _LESS
    ]
    enough = [run for run in enough if run.depth >= _LEAST] or enough
    best = enough[0] if enough else max(made, key=lambda run: run.steady_rate)
    rate = plan.rate if bench.step is None else best.rate
    return replace(plan, depth=best.depth, rate=rate, waiting=best.waiting), tuple(made)


def inline(run: Run, allowed: Mapping[str, float]) -> Plan:
    """Returns the settings where no worker does better than none."""
    allowed = _unrefuted(allowed, [run])
    limit = next(iter(allowed), "")
    return Plan("inline", 0, 0, 0, allowed, limit, run.rate, run.waiting, (run,))
