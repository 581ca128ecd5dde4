"""A dataset of 1 GB and four workers: what the process tree takes above the dataset, and the first batch.

Contents: one array, one tensor, and a million small objects in lists, whose reference counts a worker
writes to. Every contestant runs in a process of its own and reads all samples once, in random order;
"extra" is the most that the process and its workers take above the process with its dataset before
`iter()`: proportional set sizes after every eighth batch, without pages of files, which other programs
share. Workers alone, over a dataset of nothing, take what an interpreter with torch takes: that is measured the
same way, and taken off.

The first batch of 32 is timed from `iter()` on, with two workers, over the array and over nothing.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _contest import Bench, interleave, isolated, median
from _starts import FIRST, first_batch
from torch.utils.data import DataLoader, Dataset

import fastload
from demo.meter import tree_own_bytes

BYTES, SAMPLES, BATCH_SIZE, WORKERS, LOOK_EVERY = 1 << 30, 4_096, 32, 4, 8
OBJECTS = 1_000_000
KINDS: dict[str, Callable[..., DataLoader]] = {"torch": DataLoader, "fastload": fastload.Loader}
CASES = {"an array": ("fork", "spawn"), "a tensor": ("fork", "spawn"), "objects": ("fork",)}
"""Start methods by what the dataset holds."""
STARTS = {"nothing": ("fork", "forkserver", "spawn"), "an array": ("fork", "spawn")}

PEAK, ABOVE, PART = "extra at most, MB", "above workers alone, MB", "% of the dataset"


class Held(Dataset[float]):
    """Samples of which each reads its share of what the dataset holds."""

    def __init__(self, what: str) -> None:
        if what == "an array":
            self.rows: Any = np.ones((SAMPLES, BYTES // SAMPLES // 4), np.float32)
        elif what == "a tensor":
            self.rows = torch.ones(SAMPLES, BYTES // SAMPLES // 4)
        elif what == "objects":
            each = OBJECTS // SAMPLES
            self.rows = [[str(number) for number in range(each)] for _ in range(SAMPLES)]
        else:
            self.rows = [[""]] * SAMPLES

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> float:
        row = self.rows[index]
        return float(sum(map(len, row)) if isinstance(row, list) else row.sum())


def load(kind: str, method: str, dataset: Held, workers: int) -> DataLoader:
    """Returns a loader."""
    return KINDS[kind](
        dataset, BATCH_SIZE, shuffle=True, num_workers=workers, multiprocessing_context=method
    )


def own_bytes() -> int:
    """Returns what this process and its workers take besides files."""
    return tree_own_bytes(os.getpid())


def extra_mb(kind: str, method: str, what: str) -> dict[str, float]:
    """Returns what an epoch takes at most above the process with its dataset, and the dataset."""
    empty_bytes = own_bytes()
    dataset = Held(what)
    before_bytes = most_bytes = own_bytes()
    for number, _ in enumerate(load(kind, method, dataset, WORKERS), 1):
        if number % LOOK_EVERY == 0 and number < len(dataset) // BATCH_SIZE:
            most_bytes = max(most_bytes, own_bytes())
    return {
        PEAK: (most_bytes - before_bytes) / 1e6,
        "dataset, MB": (before_bytes - empty_bytes) / 1e6,
    }


def first(kind: str, method: str, what: str) -> dict[str, float]:
    """Times the first batch, when a process that forks others is there already."""
    if method == "forkserver":
        first_batch(functools.partial(load, kind, method, Held("nothing"), 1))
    return first_batch(functools.partial(load, kind, method, Held(what), 2))


def memory(bench: Bench) -> None:
    """Measures what datasets take in workers."""
    alone = {
        (kind, method): isolated(extra_mb, kind, method, "nothing")[PEAK]
        for kind in KINDS
        for method in ("fork", "spawn")
    }
    for what, methods in CASES.items():
        figures = {}
        for method in methods:
            for kind in KINDS:
                account = isolated(extra_mb, kind, method, what)
                above = account[PEAK] - alone[kind, method]
                figures[f"{kind}, {method}"] = {
                    PEAK: [account[PEAK]],
                    ABOVE: [above],
                    PART: [100 * above / account["dataset, MB"]],
                }
        bench.show(f"{WORKERS} workers over 1 GB, {what}", figures)
        if what == "objects":
            continue  # nothing is promised: Python writes to what it looks at
        for method in methods:
            part = figures[f"fastload, {method}"][PART][0]
            limit = 10 if method == "fork" else 110  # the file that all workers map
            bench.claim(f"{what}, {method}: extra, % of the dataset", part, limit)


def starts(bench: Bench) -> None:
    """Times first batches."""
    for what, methods in STARTS.items():
        figures = interleave(
            {
                f"{kind}, {method}": functools.partial(isolated, first, kind, method, what)
                for method in methods
                for kind in KINDS
            },
            bench.rounds,
        )
        bench.show(f"First batch of two workers, dataset of {what}", figures, digits=0)
        for method in methods:
            ratio = median(figures, f"fastload, {method}", FIRST) / median(
                figures, f"torch, {method}", FIRST
            )
            bench.say(f"{method}: fastload / torch {ratio:.2f}")


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=2)
    memory(bench)
    starts(bench)
    bench.close()


if __name__ == "__main__":
    main()
