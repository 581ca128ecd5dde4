"""The stages of loading: what each costs, and how its rate grows with workers.

    X(N) = rate * N / (1 + contention * (N - 1) + coherence * N * (N - 1))

is the Universal Scalability Law (N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapter 4). N / X is
linear in 1, N - 1 and N (N - 1), so the best fit without negative coefficients is found exactly, among
the few sets of coefficients that are not 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fastload.tune.lanes import Making
from fastload.tune.measure import NOTHING_MS, STAGES, Run

WHOLE = "all of loading"  # name of the row and the curve of all stages together
_NEAR = 0.95  # fraction of the highest rate at which more workers bring little
# Shares of the work from which a stage dominates, and below which it is negligible
_LARGE, _SMALL = 0.5, 0.1
_LEAST_SHARE = 0.001  # a native stage with a smaller share of the work is left out
# Stages in which workers wait for storage: any number of workers can wait at once
_WAITING = ("read", "sample, waiting")


@dataclass(frozen=True)
class Law:
    """A fit."""

    rate: float  # samples per second of one worker
    contention: float  # fraction of the work that workers do one after the other
    coherence: float  # cost of each pair of workers

    def at(self, workers: float) -> float:
        """Returns the samples per second of some workers."""
        others = workers - 1
        slowdown = 1 + self.contention * others + self.coherence * workers * others
        return self.rate * workers / slowdown

    def peak(self, most: int) -> int:
        """Returns the number of workers, up to `most`, with the highest rate."""
        if self.coherence <= 0:
            return most
        top = math.sqrt(max(0.0, 1 - self.contention) / self.coherence)
        near = {min(most, max(1, each)) for each in (math.floor(top), math.ceil(top))}
        return max(near, key=self.at)

    def knee(self, most: int) -> int:
        """Returns the fewest workers, up to `most`, that come within 5 % of the highest rate."""
        enough = _NEAR * self.at(self.peak(most))
        return next(n for n in range(1, most + 1) if self.at(n) >= enough)


@dataclass(frozen=True)
class Point:
    """A measured rate."""

    workers: int  # number of workers
    rate: float  # samples per second
    cpu_cores: float = 0.0  # cores kept busy


@dataclass(frozen=True)
class Curve:
    """A stage, or all of loading, with several numbers of workers."""

    name: str  # the stage
    points: tuple[Point, ...]  # what was measured
    law: Law | None  # the fit; None for too few points
    knee: int  # fewest workers that come near the highest rate


@dataclass(frozen=True)
class Stage:
    """A row of the table."""

    name: str  # the stage
    ms: float  # milliseconds per sample
    cores: float  # workers that are busy with it at the rate that is wanted
    readiness: float  # fraction of that rate that the machine could reach if it did nothing else
    verdict: str  # what it means, in words


def fit(name: str, points: Sequence[Point], most: int) -> Curve:
    """Returns the curve through some points, with the knee of up to `most` workers."""
    points = tuple(point for point in points if point.rate > 0)
    law = _fitted(points) if len({point.workers for point in points}) > 1 else None
    if law is not None:
        return Curve(name, points, law, law.knee(most))
    best = max(points, key=lambda point: point.rate, default=Point(1, 0.0))
    return Curve(name, points, None, best.workers)


def _fitted(points: Sequence[Point]) -> Law | None:
    """Minimises the squared relative errors of N / X, with coefficients of at least 0."""
    workers = np.array([point.workers for point in points], dtype=float)
    rates = np.array([point.rate for point in points])
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    rows = terms * (rates / workers)[:, None]
    best: tuple[float, np.ndarray] | None = None
    for columns in ([0], [0, 1], [0, 2], [0, 1, 2]):
        found, *_ = np.linalg.lstsq(rows[:, columns], np.ones(len(points)), rcond=None)
        if (found < 0).any() or found[0] <= 0:
            continue
        error = float(((rows[:, columns] @ found - 1) ** 2).sum())
        if best is None or error < best[0] - 1e-12:
            values = np.zeros(3)
            values[columns] = found
            best = error, values
    if best is None:
        return None
    one, contention, coherence = (float(value) for value in best[1])
    return Law(1 / one, contention / one, coherence / one)


def curves(runs: Sequence[Run], most: int) -> tuple[Curve, ...]:
    """Returns the curves of all of loading and of each native stage that takes measurable time."""
    whole = fit(WHOLE, [Point(run.workers, run.rate, run.cpu_cores) for run in runs], most)
    each = [
        fit(
            name,
            [
                Point(run.workers, 1e3 * run.workers / run.work_ms[name])
                for run in runs
                if name in native(run) and run.work_ms[name] >= NOTHING_MS
            ],
            most,
        )
        for name in STAGES
    ]
    return tuple(curve for curve in (whole, *each) if curve.points)


def native(run: Run) -> dict[str, float]:
    """Returns the milliseconds per sample of native threads, by stage, without negligible stages."""
    least = _LEAST_SHARE * run.busy_ms
    return {name: ms for name, ms in run.work_ms.items() if ms > least}


def python(making: Making) -> dict[str, float]:
    """Returns the milliseconds per sample of Python code, by stage."""
    waits_ms = max(0.0, making.sample_ms - making.sample_cpu_ms)
    stages = {"sample": making.sample_cpu_ms}
    if waits_ms > _SMALL * making.sample_ms:
        stages["sample, waiting"] = waits_ms
    return stages | {"collate": making.collate_ms}


def table(
    work_ms: Mapping[str, float], *, cores: float, wanted: float | None, best: Run
) -> tuple[Stage, ...]:
    """Returns a row for each stage, from its milliseconds per sample, and one for all of loading.

    The rows hold for the rate that the training takes, or for the best run's where `wanted` is None.
    """
    whole = sum(work_ms.values())
    rate = best.rate if wanted is None else wanted
    rows = []
    for name, ms in work_ms.items():
        needs, share = rate * ms / 1e3, ms / whole if whole else 0.0
        waits = name in _WAITING or needs <= 0
        rows.append(
            Stage(
                name,
                ms,
                needs,
                1.0 if waits else min(1.0, cores / needs),
                _verdict(name, share, needs, cores, best.cpu_cores),
            )
        )
    if best.keeps_up:
        verdict = "the training never waits"
    elif wanted is not None:
        verdict = f"the training waits {best.waiting:.0%} of its time"
    else:
        verdict = "batches are taken as fast as they are made"
    whole = best.cpu_ms or whole
    return (*rows, Stage(WHOLE, whole, rate * whole / 1e3, best.ready, verdict))


def _verdict(name: str, share: float, needs: float, cores: float, busy_cores: float) -> str:
    if name in _WAITING and share > _LARGE:
        return f"{share:.0%} of the work is waiting: more workers than cores help"
    if needs > cores:
        return f"needs {needs:.1f} of {cores:g} cores"
    if share > _LARGE:
        busy = busy_cores > 0.85 * cores
        return f"{share:.0%} of the work" + (", and all cores are busy" if busy else "")
    return "negligible" if share < _SMALL else f"{share:.0%} of the work"
