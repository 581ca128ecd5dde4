"""Tensors that are ready: batches of 64x3x224x224 float32 through two workers, and collation alone.

The dataset returns rows of a tensor; all that a loader does is to collate and to hand over 38.5 MB per
batch. Every contestant runs in a process of its own; time, page faults and CPU time are the slope
between a short and a long epoch, so that starts cancel out, workers' shares count. A consumer takes
batches only, or reads all of each. Limit: copying as many bytes in two threads, into memory that was
used before.

Collation alone is one call after the other, of which each result is dropped: steady state. torch's
threads are one, as in its workers, and as many as it takes by itself.
"""

import functools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from _contest import Bench, best, interleave, isolated, median
from sequences import BATCH, call, per_batch
from torch.utils.data import DataLoader, Dataset, default_collate

import fastload
from demo.meter import cpu_s, page_faults

BATCH_SIZE, SHAPE, ROWS = 64, (3, 224, 224), 256
SHORT, LONG = 8, 40
SPEED, FAULTS, CPU = "batches/s", "page faults per batch", "CPU ms/batch"
OURS, THEIRS = "fastload, num_workers=2", "torch, num_workers=2"
TAKEN, READ = "taken", "taken and read"
LIMIT = "the same bytes, copied in two threads"
CALLS, SMALL_CALLS = 20, 2_000


class Ready(Dataset[torch.Tensor]):
    """Rows of a tensor, round and round."""

    def __init__(self, rows: torch.Tensor, batches: int) -> None:
        self.rows = rows
        self.count = BATCH_SIZE * batches

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index % ROWS]


def consume(batches: Iterable[torch.Tensor], how: str) -> None:
    """Takes all batches, or reads each number of them, too."""
    for batch in batches:
        if how == READ:
            batch.sum().item()


def passed_on(
    kind: Callable[..., DataLoader], arguments: dict[str, Any], how: str
) -> dict[str, float]:
    """Returns what a batch costs in steady state."""
    costs, rows = {}, torch.rand(ROWS, *SHAPE)
    torch.set_num_threads(1)
    for batches in (SHORT, SHORT, LONG):  # the first warms up, and is forgotten
        loader = kind(Ready(rows, batches), BATCH_SIZE, **arguments)
        before = np.array([time.perf_counter(), page_faults(), cpu_s()])
        consume(loader, how)
        costs[batches] = np.array([time.perf_counter(), page_faults(), cpu_s()]) - before
    wall_s, faults, busy_s = (costs[LONG] - costs[SHORT]) / (LONG - SHORT)
    return {SPEED: 1 / wall_s, FAULTS: max(0.0, faults), CPU: 1e3 * busy_s}


def copied() -> dict[str, float]:
    """Returns what the bytes of a batch cost when two threads do nothing but copy batches."""
    rows = np.ones((BATCH_SIZE, *SHAPE), np.float32)
    places = [np.empty_like(rows) for _ in range(2)]

    def copy(place: np.ndarray, times: int) -> None:
        for _ in range(times):
            np.copyto(place, rows)

    for place in places:
        copy(place, 1)
    threads = [threading.Thread(target=copy, args=(place, LONG)) for place in places]
    busy_s, began_s = cpu_s(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s, count = time.perf_counter() - began_s, LONG * len(places)
    return {SPEED: count / wall_s, CPU: 1e3 * (cpu_s() - busy_s) / count}


def loaded(bench: Bench) -> None:
    """Races loaders."""
    torchs = [f"torch, num_workers={workers}" for workers in (0, 1, 2, 4)]
    kinds: dict[str, tuple[Callable[..., DataLoader], dict[str, Any]]] = {
        who: (DataLoader, {"num_workers": int(who[-1])}) for who in torchs
    }
    kinds[OURS] = fastload.Loader, {"num_workers": 2}
    kinds["fastload, threads, num_workers=2"] = (
        fastload.Loader,
        {"num_workers": 2, "lane": "threads"},
    )
    for how in (TAKEN, READ):
        contestants: dict[str, Callable[[], dict[str, float]]] = {
            who: functools.partial(isolated, passed_on, *what, how) for who, what in kinds.items()
        }
        if how == TAKEN:
            contestants[LIMIT] = functools.partial(isolated, copied)
        figures = interleave(contestants, bench.rounds)
        title = f"64x3x224x224 float32 (38.5 MB) from ready tensors, {how}"
        bench.show(title, figures, ratio_of=SPEED, rivals=torchs, more_is_better=True)
        ours = median(figures, OURS, SPEED)
        of_torch = ours / median(figures, THEIRS, SPEED)
        bench.claim(f"{how}: batches/s by torch's with two workers", of_torch, 2, at_least=True)
        of_best = ours / best(figures, SPEED, torchs, more_is_better=True)
        bench.say(f"by the best of torch's: {of_best:.2f}")
        if how == TAKEN:
            bench.say(f"of the limit: {ours / median(figures, LIMIT, SPEED):.2f}")


def alone(
    bench: Bench, title: str, batch: list[Any], calls: int, promised: float, threads: int
) -> None:
    """Races the collate functions alone."""
    torch.set_num_threads(threads)
    contestants = {
        "torch": default_collate,
        "fastload": fastload.collate.default_collate,
    }
    figures = interleave(
        {
            who: functools.partial(
                per_batch, functools.partial(call, function, [batch] * calls), calls
            )
            for who, function in contestants.items()
        },
        3 * bench.rounds,
    )
    title = f"default_collate of 64 {title}, torch's threads: {threads}"
    bench.show(title, figures)
    ratio = median(figures, "torch", BATCH) / median(figures, "fastload", BATCH)
    bench.claim(f"{title}: torch / fastload", ratio, promised, at_least=True)


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    tensors = list(torch.rand(BATCH_SIZE, *SHAPE))
    numbers = [{"id": each, "score": each / 7, "label": each % 10} for each in range(BATCH_SIZE)]
    for threads in dict.fromkeys((1, torch.get_num_threads())):
        alone(bench, "tensors of 3x224x224", tensors, CALLS, 3, threads)
    alone(bench, "dicts of three numbers", numbers, SMALL_CALLS, 2, 1)
    del tensors
    loaded(bench)
    bench.close()


if __name__ == "__main__":
    main()
