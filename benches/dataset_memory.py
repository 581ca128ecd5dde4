"""A dataset of 1 GB and four workers: what the process tree takes above the dataset, and the first batch.

Contents: one array, one tensor, and a million small objects in lists, whose reference counts a worker
writes to. Every contestant runs in a process of its own and reads all samples once, in random order;
"extra" is the most that the process and its workers take (proportional set sizes, sampled from outside)
above the process with its dataset before `iter()`. Workers alone, over a dataset of nothing, take what
an interpreter with torch takes: that is measured the same way, and taken off.

The first batch of 32 is timed from `iter()` on, with two workers, over the array and over nothing.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _contest import Bench, interleave, isolated, median
from startup import FIRST, first_batch
from torch.utils.data import DataLoader, Dataset

import fastload
from demo.meter import PeakMemory, tree_pss_bytes

BYTES, SAMPLES, BATCH_SIZE, WORKERS = 1 << 30, 4_096, 32, 4
OBJECTS = 1_000_000
KINDS: dict[str, Callable[..., DataLoader]] = {"torch": DataLoader, "fastload": fastload.Loader}
CASES = {"an array": ("fork", "spawn"), "a tensor": ("fork", "spawn"), "objects": ("fork",)}
"""Start methods by what the dataset holds."""
METHODS = ("fork", "forkserver", "spawn")

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


def extra_mb(kind: str, method: str, what: str) -> dict[str, float]:
    """Returns what an epoch takes at most above the process with its dataset, and the dataset."""
    empty_bytes = tree_pss_bytes(os.getpid())
    dataset = Held(what)
    loader = load(kind, method, dataset, WORKERS)
    before_bytes = tree_pss_bytes(os.getpid())
    with PeakMemory(os.getpid(), every_s=0.1) as memory:
        for _ in loader:
            pass
    return {
        PEAK: (memory.peak_bytes - before_bytes) / 1e6,
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
            bench.claim(f"{what}, {method}: extra, % of the dataset", part, 10)


def starts(bench: Bench) -> None:
    """Times first batches."""
    for what in ("nothing", "an array"):
        figures = interleave(
            {
                f"{kind}, {method}": functools.partial(isolated, first, kind, method, what)
                for method in METHODS
                for kind in KINDS
            },
            bench.rounds,
        )
        bench.show(f"First batch of two workers, dataset of {what}", figures, digits=0)
        for method in METHODS:
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
