"""What a small batch costs on its way through a worker process: CPU time of all processes.

Datasets whose samples cost nothing: integers, rows of 16 floats, dicts of five numbers; batches of 32. Counted
from the second batch of an epoch to its end, of this process and its workers together; `num_workers=0` is the
work itself. Samples like these are native at defaults, so the worker is asked for by `lane="process"`.
"""

import functools
import os
from typing import Any

import psutil
import torch
from _contest import Bench, interleave, median
from torch.utils.data import DataLoader, Dataset

import fastload

WORKER = "fastload, one worker process"
CPU = "µs of CPU time for a batch"
SIZE, BATCHES = 32, 1_500


class Small(Dataset[Any]):
    """Samples that cost nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rows = torch.arange(16.0).expand(SIZE * BATCHES, 16)

    def __len__(self) -> int:
        return SIZE * BATCHES

    def __getitem__(self, index: int) -> Any:
        if self.kind == "integers":
            return index
        if self.kind == "rows":
            return self.rows[index]
        return {"a": index, "b": 0.5, "c": index + 1, "d": 2.5, "e": index % 2}


def spent_us() -> float:
    """Returns what this process and its children have computed."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes]
    return 1e6 * sum(each.user + each.system for each in times)


def epoch(kind: Any, case: str, **arguments: Any) -> dict[str, float]:
    """Takes an epoch."""
    batches = iter(kind(Small(case), SIZE, **arguments))
    next(batches)
    before, taken = spent_us(), 0
    for taken, _ in enumerate(batches, 1):
        if taken == BATCHES - 20:  # the workers are still there
            break
    return {CPU: (spent_us() - before) / taken}


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=5, cases=("integers", "rows", "dicts"))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for case in bench.cases:
        ours, torchs = fastload.Loader, DataLoader
        contestants = {
            **{
                f"torch, num_workers={n}": functools.partial(epoch, torchs, case, num_workers=n)
                for n in (0, 1)
            },
            "fastload, num_workers=0": functools.partial(epoch, ours, case, num_workers=0),
            WORKER: functools.partial(epoch, ours, case, num_workers=1, lane="process"),
            "fastload, defaults": functools.partial(epoch, ours, case, tune=False),
        }
        figures = interleave(contestants, bench.rounds)
        bench.show(f"Batches of {SIZE} {case}", figures, digits=0)
        if case == "integers":
            bench.claim("µs for a batch of integers", median(figures, WORKER, CPU), 120)
    bench.close()


if __name__ == "__main__":
    main()
