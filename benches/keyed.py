"""What it costs under AUTO that samples do not depend on their worker: seeding three generators per sample.

The generators of torch, numpy and random are seeded before each sample, as a worker process does it: what
each of them takes, and all with the key, in microseconds. Then what `next` costs a consumer that never waits,
with and without tuning.
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
from fastload.keyed import Key, seed_numpy, seed_process, seed_python

SEEDING, NEXT = "µs of processor time", "µs of processor time for one next"
CALLS = 20_000
BATCHES = 2_000
KEY = Key(1234567, 0, 3, 0)
SEEDS = KEY.of_sample(5, 1)

PARTS: dict[str, Callable[[], object]] = {
    "the key": lambda: KEY.of_sample(5, 1),
    "torch": lambda: torch.default_generator.manual_seed(SEEDS[0]),
    "numpy": lambda: seed_numpy(np.random.mtrand._rand, SEEDS[1]),
    "random": lambda: seed_python(random._inst, SEEDS[2]),
    "all": lambda: seed_process(KEY.of_sample(5, 1)),
}


class Numbers(Dataset[int]):
    """Samples that cost nothing."""

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> int:
        return index


def seeding(part: Callable[[], object]) -> dict[str, float]:
    """Times a part of the seeding."""
    began_s = time.thread_time()
    for _ in range(CALLS):
        part()
    return {SEEDING: 1e6 * (time.thread_time() - began_s) / CALLS}


def consuming(lane: str, tune: bool) -> dict[str, float]:  # noqa: FBT001
    """Takes batches of one sample, and counts what the consumer's thread computes."""
    loader = fastload.Loader(Numbers(), 1, workers=lane, tune=tune, prefetch_factor=16)
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
        {who: functools.partial(seeding, part) for who, part in PARTS.items()}, bench.rounds
    )
    bench.show("Seeding for one sample", figures, digits=2)
    bench.claim("µs for one sample", median(figures, "all", SEEDING), 10)
    contestants = {
        f"{lane}{', tuned' if tune else ''}": functools.partial(consuming, lane, tune)
        for lane in ("process", "threads")
        for tune in (False, True)
    }
    bench.show("One next", interleave(contestants, bench.rounds))
    bench.close()


if __name__ == "__main__":
    main()
