"""What it costs under AUTO that samples do not depend on their worker: keying three generators per sample.

The generators of torch, numpy and random are keyed before each sample, as a worker process does it: in
microseconds, for samples that draw nothing and for samples that draw from all three, whose draws alone are
taken off; what lending the training process's own takes for a batch; and, to compare, seeding them anew. Then
what `next` costs a consumer that never waits, with and without tuning.
"""

import functools
import random
import time
from collections.abc import Callable

import numpy as np
import torch
from _contest import Bench, interleave, median
from torch.utils.data import Dataset

import fastload
from fastload.draws import keyed

KEYING, NEXT = "µs of CPU time", "µs of CPU time for one next"
CALLS = 640
SIZE = 32
BATCHES = 2_000
KEY = keyed.Key(1234567, 0, 3, 0)
INDICES = list(range(SIZE))
IDLE, DRAWING = "keyed, and nothing drawn", "keyed, and drawn from all three"


def draw() -> None:
    """Draws from all three generators."""
    torch.rand(1), np.random.rand(), random.random()


def keyed_and_drawn() -> None:
    """Makes a batch whose samples draw."""
    for _ in keyed.follow(INDICES, KEY):
        draw()


def borrowed() -> None:
    """Lends the generators, and takes them back."""
    with keyed.borrowed():
        pass


def seeded() -> None:
    """Seeds each generator anew for every sample."""
    for index in INDICES:
        torch.default_generator.manual_seed(index)
        np.random.seed(index)
        random.seed(index)


PARTS: dict[str, Callable[[], object]] = {
    IDLE: lambda: [None for _ in keyed.follow(INDICES, KEY)],
    DRAWING: keyed_and_drawn,
    "drawn alone": lambda: [draw() for _ in INDICES],
    "seeded": seeded,
    "lent, a batch's share": borrowed,
}


class Numbers(Dataset[int]):
    """Samples that cost nothing."""

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> int:
        return index


def keying(part: Callable[[], object]) -> dict[str, float]:
    """Times what is done for the samples of a batch."""
    began_s = time.thread_time()
    for _ in range(CALLS):
        part()
    return {KEYING: 1e6 * (time.thread_time() - began_s) / CALLS / SIZE}


def consuming(lane: str, tune: bool) -> dict[str, float]:  # noqa: FBT001
    """Takes batches of one sample, and counts what the consumer's thread computes."""
    loader = fastload.Loader(Numbers(), 1, lane=lane, tune=tune, prefetch_factor=16)
    batches = iter(loader)
    next(batches)
    began_s = time.thread_time()
    for _ in batches:
        pass
    return {NEXT: 1e6 * (time.thread_time() - began_s) / (BATCHES - 1)}


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__)
    figures = interleave(
        {who: functools.partial(keying, part) for who, part in PARTS.items()}, bench.rounds
    )
    bench.show("Keying for one sample", figures, digits=2)
    idle, drawing, alone = (median(figures, who, KEYING) for who in (IDLE, DRAWING, "drawn alone"))
    bench.claim("µs for a sample that draws nothing", idle, 2)
    bench.claim("µs for one that draws from all three", drawing - alone, 6)
    contestants = {
        f"{lane}{', tuned' if tune else ''}": functools.partial(consuming, lane, tune)
        for lane in ("process", "threads")
        for tune in (False, True)
    }
    bench.show("One next", interleave(contestants, bench.rounds))
    bench.close()


if __name__ == "__main__":
    main()
