"""How a rate grows with threads: the Universal Scalability Law, fitted to what was measured.

    X(N) = rate * N / (1 + contention * (N - 1) + coherence * N * (N - 1))

N. J. Gunther, "Guerrilla Capacity Planning" (2007), chapter 4. Divided into N it is linear in 1, N - 1
and N (N - 1), so that the best fit of no negative coefficient is found exactly, among the few sets of
coefficients that are not 0. Knows only numbers.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Curve", "Law", "Point", "fit"]

_NEAR = 0.95
"""Of its highest rate, the part from which on more workers are hardly worth it."""

_FAR = 1024


@dataclass(frozen=True)
class Law:
    """A fit.

    Attributes:
        rate: Samples per second of one worker.
        contention: The part that workers do one after the other.
        coherence: What each pair of workers costs.
    """

    rate: float
    contention: float
    coherence: float

    def at(self, workers: float) -> float:
        """Returns the samples per second of so many workers."""
        beside = workers - 1
        return (
            self.rate * workers / (1 + self.contention * beside + self.coherence * workers * beside)
        )

    def peak(self, most: int = _FAR) -> int:
        """Returns how many workers, up to a number, have the highest rate."""
        if self.coherence <= 0:
            return most
        top = math.sqrt(max(0.0, 1 - self.contention) / self.coherence)
        near = {min(most, max(1, each)) for each in (math.floor(top), math.ceil(top))}
        return max(near, key=self.at)

    def knee(self, most: int) -> int:
        """Returns the fewest workers that come near the highest rate of up to `most`."""
        enough = _NEAR * self.at(self.peak(most))
        return next(n for n in range(1, most + 1) if self.at(n) >= enough)


@dataclass(frozen=True)
class Point:
    """What so many workers did.

    Attributes:
        workers: How many.
        rate: Samples per second.
        cpu_cores: Processors kept busy.
    """

    workers: int
    rate: float
    cpu_cores: float = 0.0


@dataclass(frozen=True)
class Curve:
    """A stage, or all of loading, at several numbers of workers.

    Attributes:
        name: The stage.
        points: What was measured.
        law: The fit; None for too few points.
        knee: Fewest workers that come near the highest rate.
    """

    name: str
    points: tuple[Point, ...]
    law: Law | None
    knee: int


def fit(name: str, points: Sequence[Point], most: int) -> Curve:
    """Returns the curve through some points, with the knee of up to `most` workers."""
    points = tuple(point for point in points if point.rate > 0)
    law = _fitted(points) if len({point.workers for point in points}) > 1 else None
    if law is not None:
        return Curve(name, points, law, law.knee(most))
    best = max(points, key=lambda point: point.rate, default=Point(1, 0.0))
    return Curve(name, points, None, best.workers)


def _fitted(points: Sequence[Point]) -> Law | None:
    """Minimises the squares of the relative errors of N / X, with coefficients of at least 0."""
    workers = np.array([point.workers for point in points], dtype=float)
    rates = np.array([point.rate for point in points])
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    rows = terms * (rates / workers)[:, None]
    best: tuple[float, np.ndarray] | None = None
    for used in itertools.chain.from_iterable(
        itertools.combinations((1, 2), count) for count in range(3)
    ):
        columns = [0, *used]
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
