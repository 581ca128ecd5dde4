"""What padding wastes, and what planning costs: random batches, batches by length, packed rows.

200,000 token lists, log-normal with mean 50, at most 2048. Random batches of 32 beside a
`TokenBatchSampler` of about as many tokens in a batch, and rows of 2048 that a `PackBatchSampler` fills.
Then how long plans of 1,000,000 lengths take.
"""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _contest import Bench, Figures, interleave, median
from padding import LISTS, LONGEST, MEAN

from fastload import BucketBatchSampler, PackBatchSampler, TokenBatchSampler

BATCH_SIZE, MAX_TOKENS, MANY = 32, 4096, 1_000_000
WASTE, STEPS, MEDIAN, PEAK, MOST = (
    "waste, %",
    "batches",
    "tokens, median",
    "tokens, most",
    "samples, most",
)
PLAN = "s"


def lengths(count: int) -> np.ndarray:
    """Returns how long texts are: most short, few long."""
    drawn = np.random.default_rng(0).lognormal(np.log(MEAN) - 0.5, 1.0, count)
    return np.clip(drawn.round(), 1, LONGEST).astype(np.int64)


def rectangles(lists: np.ndarray) -> dict[str, float]:
    """Returns what random batches of a fixed size come to."""
    order = np.random.default_rng(1).permutation(lists)
    batches = [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]
    sizes = np.array([len(batch) * batch.max() for batch in batches])
    return {
        WASTE: 100 * (1 - order.sum() / sizes.sum()),
        STEPS: len(batches),
        MEDIAN: float(np.median(sizes)),
        PEAK: float(sizes.max()),
        MOST: BATCH_SIZE,
    }


def planned(sampler: Any) -> dict[str, float]:
    """Returns what a sampler's coming epoch comes to."""
    stats = sampler.plan_stats()
    return {
        WASTE: 100 * stats["waste"],
        STEPS: stats["steps"],
        MEDIAN: stats["tokens_p50"],
        PEAK: stats["tokens_max"],
        MOST: stats["samples_max"],
    }


def table() -> dict[str, dict[str, float]]:
    """Returns each way of making batches, and what they come to."""
    lists = lengths(LISTS)
    ways: dict[str, dict[str, float]] = {f"random, {BATCH_SIZE} samples": rectangles(lists)}
    buckets = BucketBatchSampler(lists, BATCH_SIZE, window=2048)
    ways[f"BucketBatchSampler({BATCH_SIZE}, window=2048)"] = planned(buckets)
    for budget, window in itertools.product((MAX_TOKENS, 2 * MAX_TOKENS), (256, 2048, 16384)):
        sampler = TokenBatchSampler(lists, budget, window=window)
        ways[f"TokenBatchSampler({budget}, window={window})"] = planned(sampler)
    for strategy in ("best_fit", "first_fit", "concat_split"):
        packer = PackBatchSampler(lists, LONGEST, strategy, rows=2)  # type: ignore[arg-type]
        ways[f"PackBatchSampler({LONGEST}, {strategy!r}, rows=2)"] = planned(packer)
    return ways


def plan(make: Callable[[], Any]) -> dict[str, float]:
    """Returns how long it takes to make a sampler and to plan its first epoch."""
    began_s = time.perf_counter()
    len(make())
    return {PLAN: time.perf_counter() - began_s}


def plans(bench: Bench) -> Figures:
    """Times plans of many lengths."""
    many = lengths(MANY)
    contestants: dict[str, Callable[[], Any]] = {
        "TokenBatchSampler": functools.partial(TokenBatchSampler, many, MAX_TOKENS),
        "TokenBatchSampler, 8 ranks": functools.partial(
            TokenBatchSampler, many, MAX_TOKENS, num_replicas=8, rank=0
        ),
        "BucketBatchSampler": functools.partial(BucketBatchSampler, many, BATCH_SIZE),
    }
    for strategy in ("best_fit", "first_fit", "concat_split"):
        pack = functools.partial(PackBatchSampler, many, LONGEST, strategy)
        contestants[f"PackBatchSampler, {strategy}"] = pack
    return interleave(
        {who: functools.partial(plan, make) for who, make in contestants.items()}, bench.rounds
    )


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    ways = table()
    shown = {who: {name: [value] for name, value in way.items()} for who, way in ways.items()}
    bench.show(f"{LISTS:,} token lists in batches", shown)
    random, *_ = ways.values()
    chosen = ways[f"TokenBatchSampler({MAX_TOKENS}, window=2048)"]
    bench.claim("waste, window 2048 / random", chosen[WASTE] / random[WASTE], 1 / 8)
    figures = plans(bench)
    bench.show(f"Planning an epoch of {MANY:,} lengths", figures, digits=3)
    bench.claim("s to plan batches", median(figures, "TokenBatchSampler", PLAN), 0.5)
    bench.claim("s to pack rows", median(figures, "PackBatchSampler, best_fit", PLAN), 1)
    packed = PackBatchSampler(lengths(MANY), LONGEST).plan_stats()["waste"]
    bench.claim("waste of packed rows, %", 100 * packed, 1)
    bench.close()


if __name__ == "__main__":
    main()
