"""Datasets in Python: samples/s of an epoch, and what a training step loses beside their workers, by lane.

Photographs through Pillow, augmented with NumPy; texts cut into tokens by a loop in Python. Epochs are
timed from before the loader is made, so that the start of workers counts. Ours is `Loader(dataset,
batch_size=64)`, every default, and the threads lane, which is not taken by itself where there is an
interpreter lock; torch's are `num_workers` 0, 1, 2 and 4.

The training step is that of `interference.py`: one thread, beside one busy worker of each kind. What
the threads lane costs it is printed, whatever it is; that its samples are those of torch's processes
and that it leaves the global generators alone is looked at here, too.
"""

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _contest import CPU, SPEED, Bench, best, interleave, median, pace
from _python import Photographs, Texts
from interference import (
    ALONE,
    LOSS,
    PROCESS,
    Busy,
    Nothing,
    beside,
    named,
    resnet18,
    small_operations,
)
from torch.utils.data import DataLoader, Dataset, Subset

import fastload
from demo.photographs import photographs

BATCH_SIZE, COMPARED = 64, 256
PHOTOGRAPHS, TEXTS = 768, 4_096
DEFAULTS, THREADS = "fastload, defaults", "fastload, threads, num_workers=2"
OURS, THREAD = "fastload, 1 worker process", "fastload, 1 worker thread"


def epochs(bench: Bench, title: str, dataset: Dataset) -> None:
    """Races epochs."""
    torchs = {f"torch, num_workers={workers}": workers for workers in (0, 1, 2, 4)}
    loaders: dict[str, Callable[[], DataLoader]] = {
        who: functools.partial(DataLoader, dataset, BATCH_SIZE, num_workers=workers)
        for who, workers in torchs.items()
    }
    loaders[DEFAULTS] = functools.partial(fastload.Loader, dataset, batch_size=BATCH_SIZE)
    loaders[THREADS] = functools.partial(
        fastload.Loader, dataset, BATCH_SIZE, num_workers=2, lane="threads"
    )
    assert "lane: process" in loaders[DEFAULTS]().explain()
    figures = interleave(
        {who: functools.partial(pace, loader, len(dataset)) for who, loader in loaders.items()},
        bench.rounds,
    )
    bench.show(title, figures, digits=2, ratio_of=SPEED, rivals=[*torchs], more_is_better=True)
    fastest = best(figures, SPEED, [*torchs], more_is_better=True)
    bench.claim(
        f"{title}: samples/s by torch's best",
        median(figures, DEFAULTS, SPEED) / fastest,
        1,
        at_least=True,
    )
    ratio = median(figures, DEFAULTS, CPU) / median(figures, "torch, num_workers=2", CPU)
    bench.say(f"CPU time per sample / torch's with two workers: {ratio:.2f}")


def steps(bench: Bench, title: str, dataset: Dataset) -> None:
    """Trains beside one worker of each kind."""
    threads = functools.partial(fastload.Loader, lane="threads")
    loaders: dict[str, Callable[[], Nothing | Busy]] = {
        ALONE: Nothing,
        PROCESS: functools.partial(Busy, DataLoader, dataset),
        OURS: functools.partial(Busy, fastload.Loader, dataset),
        THREAD: functools.partial(Busy, threads, dataset),
    }
    for model in (small_operations, resnet18):
        figures = beside(bench, model, loaders, title)
        losses = {who: median(figures, who, LOSS) for who in (PROCESS, OURS, THREAD)}
        bench.claim(
            f"{title}, {named(model)}: loss beside our worker process - beside torch's, points",
            losses[OURS] - losses[PROCESS],
            2,
        )
        bench.say(f"the threads lane costs this step {losses[THREAD]:.1f} %")


def from_one_seed(
    load: Callable[[], DataLoader],
) -> tuple[list[list[torch.Tensor]], tuple[float, ...]]:
    """Returns the batches of an epoch, and what the global generators give after it."""
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    batches = list(load())
    return batches, (torch.rand(1).item(), np.random.rand(), random.random())


def likeness(bench: Bench, title: str, dataset: Dataset) -> None:
    """Compares the threads lane with torch's worker processes, sample by sample."""
    load: Callable[..., Any] = functools.partial(
        fastload.Loader, dataset, BATCH_SIZE, num_workers=2
    )
    want, after = from_one_seed(
        functools.partial(DataLoader, dataset, BATCH_SIZE, shuffle=True, num_workers=2)
    )
    for lane in ("process", "threads"):
        got, generators = from_one_seed(functools.partial(load, shuffle=True, lane=lane))
        differing = sum(
            not all(map(torch.equal, ours, theirs)) for ours, theirs in zip(got, want, strict=True)
        )
        bench.claim(f"{title}, {lane}: batches of {len(want)} that differ", differing, 0)
        moved = sum(ours != theirs for ours, theirs in zip(generators, after, strict=True))
        bench.claim(f"{title}, {lane}: global generators that differ afterwards", moved, 0)


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    torch.manual_seed(0)
    contents = {
        "Pillow and NumPy": Photographs(photographs(), PHOTOGRAPHS),
        "pure Python": Texts(TEXTS),
    }
    for title, dataset in contents.items():
        epochs(bench, title, dataset)
        likeness(bench, title, Subset(dataset, range(COMPARED)))
    torch.set_num_threads(1)
    for title, dataset in contents.items():
        steps(bench, title, dataset)
    bench.close()


if __name__ == "__main__":
    main()
