"""The settings to use: computed from measurements, then measured beside their neighbours.

    X = min(C / cpu_s, 1 / serial_s, BW / file_bytes, 1 / held_s)

is operational analysis of a pipeline without branches: C cores, and for each sample its CPU seconds, its
seconds in the thread that takes batches, its bytes of a storage that reads BW bytes per second, and the
seconds for which it holds an interpreter that all workers share. The number of workers follows by Little's
law. The formula does not see locks, caches and the training's own need of cores; the runs after it do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fastload.tune.bench import Bench
from fastload.tune.lanes import ALIKE, best_of
from fastload.tune.measure import NOTHING_MS, Run
from fastload.tune.step import StandIn

_HEADROOM = 1.1  # rate of the workers, relative to the rate that is taken
_DEPTHS = (1, 2, 4, 8, 16)
_PASSED = 0.95  # a limit below this fraction of a measured rate was estimated too low
_LESS = 0.01  # smallest difference in the share of waiting that counts
_LEAST_DEPTH = 2  # with two batches in flight, one is made while the other is handed over


@dataclass(frozen=True)
class Costs:
    """The cost of a sample, in seconds."""

    cpu_s: float  # on CPUs
    work_s: float  # of a worker, computing or waiting
    serial_s: float = 0.0  # of the thread that takes batches
    held_s: float = 0.0  # holding the interpreter that all workers share; 0 where they share none
    file_bytes: float = 0.0  # encoded bytes
    bytes_per_s: float | None = (
        None  # speed of storage; None where it is unknown or does not matter
    )


@dataclass(frozen=True)
class Plan:
    """The settings to use."""

    lane: str  # how batches are made
    workers: int  # number of threads or processes
    depth: int  # most batches in flight
    predicted: int  # number of workers that the formula gives
    limits: Mapping[str, float]  # samples per second that each limit allows
    limit: str  # name of the lowest one
    rate: float  # samples per second that were measured
    waiting: float  # fraction of the time in which the training waits
    tried: tuple[Run, ...]  # runs of these settings and their neighbours


def limits(costs: Costs, cores: float, ranks: int) -> dict[str, float]:
    """Returns the samples per second that each limit allows one rank, the lowest first.

    A cost that is too small to be measured is not a limit.
    """
    least_s = NOTHING_MS / 1e3
    found: dict[str, float] = {}
    if costs.cpu_s >= least_s:
        found["cores"] = cores / costs.cpu_s
    if costs.serial_s >= least_s:
        found["handing batches over"] = 1 / costs.serial_s
    if costs.bytes_per_s and costs.file_bytes > 0:
        found["storage"] = costs.bytes_per_s / costs.file_bytes / ranks
    if costs.held_s >= least_s:
        found["the interpreter"] = 1 / costs.held_s
    return dict(sorted(found.items(), key=lambda item: item[1]))


def workers_for(costs: Costs, allowed: Mapping[str, float], wanted: float | None) -> int:
    """Returns how many workers reach the wanted rate (None: as high as possible) within the limits."""
    most = min(allowed.values(), default=0.0)
    rate = most if wanted is None else min(most, wanted * _HEADROOM)
    return max(1, math.ceil(rate * costs.work_s - 0.05))


def verified(
    bench: Bench,  # where to measure
    lane: str,  # how batches are made
    workers: int,  # the number that the formula gives
    allowed: Mapping[str, float],  # samples per second that each limit allows
    most: int,  # most workers to try
    *,
    known: Sequence[Run] = (),  # runs of this lane beside the same step
    start: int | None = None,  # first number to try; `workers` unless given
) -> Plan:
    """Measures numbers of workers beside their neighbours and returns the best."""
    tried = {run.workers: run for run in known if run.lane == lane}
    centre = min(max(1, start or workers), most)
    for _ in range(4):  # the best may be further than one step away
        for each in (centre, centre - 1, centre + 1):
            if 1 <= each <= most and each not in tried:
                share = bench.deadline.share(runs=8, most_s=4.0)
                tried[each] = bench.run(lane, each, share, step=bench.step)
        best = best_of(list(tried.values()), prefer_keeping_up=bench.step is not None)
        if best is None or best.workers == centre or bench.deadline.left_s <= 0:
            break
        centre = best.workers
    best = best or Run(lane, centre, 0)
    in_order = tuple(tried[each] for each in sorted(tried))
    return settled(best, workers, allowed, in_order)


def settled(
    best: Run, predicted: int, allowed: Mapping[str, float], tried: tuple[Run, ...]
) -> Plan:
    """Returns a run's settings, with the limits that no run has passed."""
    reached = max((run.rate for run in tried), default=0.0)
    allowed = {name: rate for name, rate in allowed.items() if rate >= _PASSED * reached}
    return Plan(
        lane=best.lane,
        workers=best.workers,
        depth=best.depth,
        predicted=predicted,
        limits=allowed,
        limit=next(iter(allowed), ""),
        rate=best.rate,
        waiting=best.waiting,
        tried=tried,
    )


def deepened(bench: Bench, plan: Plan) -> tuple[Plan, tuple[Run, ...]]:
    """Returns the settings with the fewest batches in flight that suffice, and the runs that show it.

    Without a step, batches are taken as fast as they are made. Native threads take any number of batches
    ahead; each Python worker makes at least one.
    """
    step = bench.step
    if step is None:
        step = StandIn(min(0.5, bench.target.batch_size / max(plan.rate, 1e-3)))
    made: list[Run] = []
    for each in _DEPTHS:
        depth = each if plan.lane == "native" else each * plan.workers
        if bench.deadline.left_s <= 0 and made:
            break
        share = bench.deadline.share(runs=4, most_s=3.0)
        made.append(bench.run(plan.lane, plan.workers, share, step=step, depth=depth))
        is_flat = len(made) > 2 and made[-1].waiting >= made[-2].waiting - _LESS
        if is_flat or (len(made) > 1 and made[-1].keeps_up):
            break
    top = max(run.steady_rate for run in made)
    least = min(run.waiting for run in made)
    enough = [
        run for run in made if run.steady_rate >= ALIKE * top and run.waiting <= least + 2 * _LESS
    ]
    enough = [run for run in enough if run.depth >= _LEAST_DEPTH] or enough
    best = enough[0] if enough else max(made, key=lambda run: run.steady_rate)
    rate = plan.rate if bench.step is None else best.rate
    return replace(plan, depth=best.depth, rate=rate, waiting=best.waiting), tuple(made)
