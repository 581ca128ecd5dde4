"""Start-up: from iter() to the first batch, and ten thousand iterators left after one batch.

The first batch of 32 photographs, and of 32 rows of a table; every loader is new each time, both files
and code are warm. An abandoned iterator is dropped as `next(iter(loader))` drops it. The pool's threads
are started when they are first needed and shared by all iterators: they are counted by themselves.
"""

import functools
import time
from collections.abc import Callable
from pathlib import Path

import torch
from _contest import Bench, interleave, isolated, median
from _starts import FIRST, first_batch, held
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fastload
from demo.loaders import photograph_dataset
from demo.photographs import photographs

ITERATORS = {"rows, batches of 32": 10_000, "photographs, batches of 4": 1_000}


def contestants(theirs: Dataset, ours: Dataset) -> dict[str, Callable[[], dict[str, float]]]:
    """Returns the loaders over one dataset in its two forms."""
    loaders = {
        "torch, num_workers=0": functools.partial(DataLoader, theirs, num_workers=0),
        "torch, num_workers=2": functools.partial(DataLoader, theirs, num_workers=2),
        "fastload, num_workers=1": functools.partial(fastload.Loader, ours, num_workers=1),
        "fastload, num_workers=2": functools.partial(fastload.Loader, ours, num_workers=2),
    }
    return {
        who: functools.partial(first_batch, functools.partial(loader, batch_size=32, shuffle=True))
        for who, loader in loaders.items()
    }


def abandon(what: str, root: Path) -> dict[str, dict[str, float]]:
    """Opens iterators and leaves each after one batch; returns what the process then holds."""
    if what.startswith("rows"):
        loader = fastload.Loader(
            fastload.Dataset((fastload.columns.Rows(torch.zeros(10_000, 32)),)), 32, shuffle=True
        )
    else:
        loader = fastload.Loader(photograph_dataset(root), 4, shuffle=True)
    for _ in range(ITERATORS[what] // 20):
        next(iter(loader))
    before = held()
    began_s = time.perf_counter()
    for _ in range(ITERATORS[what]):
        next(iter(loader))
    each_us = 1e6 * (time.perf_counter() - began_s) / ITERATORS[what]
    return {"before": before, "after": {**held(), "µs each": each_us}}


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=7)
    root = photographs()
    table, labels = torch.rand(100_000, 32), torch.arange(100_000)
    pairs = {
        "photographs": (photograph_dataset(root), photograph_dataset(root)),
        "rows (100,000 x 32)": (
            TensorDataset(table, labels),
            fastload.Dataset((fastload.columns.Rows(table), fastload.columns.Rows(labels))),
        ),
    }
    for what, (theirs, ours) in pairs.items():
        figures = interleave(contestants(theirs, ours), bench.rounds)
        bench.show(
            f"First batch of 32, {what}",
            figures,
            digits=2,
            ratio_of=FIRST,
            rivals=["torch, num_workers=2"],
        )
        bench.claim(
            f"first batch of {what}, fastload / torch with two workers",
            median(figures, "fastload, num_workers=2", FIRST)
            / median(figures, "torch, num_workers=2", FIRST),
            0.25,
        )
    permitted = int(fastload.Loader(pairs["photographs"][1]).num_workers)
    for what, count in ITERATORS.items():
        account = isolated(abandon, what, root)
        bench.show(
            f"{count:,} iterators left after one batch, {what}",
            {
                when: {measure: [value] for measure, value in values.items()}
                for when, values in account.items()
            },
        )
        for measure, limit in {"threads": 0, "descriptors": 0, "RSS, MB": 5}.items():
            growth = account["after"][measure] - account["before"][measure]
            bench.claim(f"growth of {measure} over {count:,} iterators", growth, limit)
        bench.claim("threads of the pool", account["after"]["threads of the pool"], permitted)
    bench.close()


if __name__ == "__main__":
    main()
