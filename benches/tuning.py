"""Tuning: AUTO from cold, beside every setting of a grid of workers and batches ahead.

Photographs behind a step of 0, 20 and 80 ms; a Python dataset of which one sample in a hundred takes
fifty times as long; one that waits 10 ms for each sample; and rows in memory. A step sleeps, as one that
waits for an accelerator does. The grid is one of AUTO's loaders whose number of workers is set: AUTO seeds
each sample of a Python dataset, and a given number does not; that one is beside it, too. Its best is the
setting that takes the fewest CPUs of those within 2 % of the most samples/s; a machine is not equally
fast all the time, so it is measured again in turn with the others, and that counts. AUTO runs until it says
that it has settled, a minute at most, and is measured then; so are the defaults that it begins with, left
alone. "change" lets a step become longer and shorter in mid-run, and takes the time until the tuner rests
again.

All cases take about half an hour, one of them four minutes; `--case` picks some.
"""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from _contest import SPEED, Bench, Figures, median
from torch.utils.data import Dataset, RandomSampler, TensorDataset

import fastload
from demo.loaders import photograph_dataset
from demo.meter import tree_cpu_s
from demo.photographs import photographs
from fastload.machine.auto import Auto

CORES = "cores"
AUTO, DEFAULTS = "AUTO, tuned", "AUTO, tune=False"
WARM_UP_S, WINDOW_S, SETTLE_S = 1.0, 4.0, 60.0
ENDLESS = 1 << 40
ROWS, WIDTH = 1_000_000, 32


class Case(NamedTuple):
    """What is loaded, behind which step, and the grid that it is tried on."""

    dataset: Callable[[], Dataset[Any]]
    batch_size: int
    step_s: float
    workers: tuple[int, ...]
    ahead: tuple[int, ...] = (1, 2, 4)

    def loader(self, **options: Any) -> fastload.Loader[Any]:
        """Makes a loader without end."""
        dataset = self.dataset()
        order = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
        return fastload.Loader(dataset, self.batch_size, sampler=order, **options)

    def fixed(self, workers: int, ahead: int) -> fastload.Loader[Any]:
        """Makes AUTO's loader with a number of workers that stays, and batches ahead for each."""
        loader = self.loader(prefetch_factor=ahead, tune=False)
        loader.num_workers = Auto(workers)
        return loader


class Bursts(Dataset[torch.Tensor]):
    """Samples that take 0.4 ms of CPU time, but for one in a hundred, which takes 20."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        until_s = time.thread_time() + (0.02 if index % 100 == 0 else 0.0004)
        while time.thread_time() < until_s:
            pass
        return torch.full((64,), index)


class Latency(Dataset[torch.Tensor]):
    """Samples that are waited for: 10 ms each, as from a store."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        return torch.full((64,), index)


@functools.cache
def images() -> Dataset[Any]:
    """Returns the photographs."""
    return photograph_dataset(photographs())


@functools.cache
def rows() -> Dataset[Any]:
    """Returns rows in memory."""
    return TensorDataset(torch.randn(ROWS, WIDTH), torch.randint(0, 10, (ROWS,)))


CASES = {
    "photographs, 0 ms": Case(images, 32, 0.0, (1, 2, 3, 4)),
    "photographs, 20 ms": Case(images, 32, 0.02, (1, 2, 3, 4)),
    "photographs, 80 ms": Case(images, 32, 0.08, (1, 2, 3, 4)),
    "bursts": Case(Bursts, 32, 0.0, (1, 2, 3, 4)),
    "latency": Case(Latency, 16, 0.0, (1, 2, 4, 8, 16, 24, 32), (1, 2)),
    "rows": Case(rows, 1024, 0.0, (1, 2, 3, 4)),
}
CHANGE = "change"
STEPS_S = (0.02, 0.2, 0.005)


def train(batches: Iterator[Any], step_s: float, seconds: float) -> dict[str, float]:
    """Trains for some seconds; returns the pace of it, and the CPUs that all of it took."""
    cpu_before_s, began_s, samples = tree_cpu_s(), time.perf_counter(), 0
    while time.perf_counter() < began_s + seconds:
        samples += len(_first(next(batches)))
        time.sleep(step_s)
    wall_s = time.perf_counter() - began_s
    return {SPEED: samples / wall_s, CORES: (tree_cpu_s() - cpu_before_s) / wall_s}


def measured(loader: fastload.Loader[Any], step_s: float) -> dict[str, float]:
    """Trains on a loader that is not tuned."""
    batches = iter(loader)
    train(batches, step_s, WARM_UP_S)
    return train(batches, step_s, WINDOW_S)


def tuned(case: Case) -> dict[str, float]:
    """Trains on AUTO from cold until it has settled, then measures."""
    loader = case.loader()
    batches, began_s = iter(loader), time.perf_counter()
    while time.perf_counter() < began_s + SETTLE_S and not is_settled(loader):
        train(batches, case.step_s, 0.5)
    settled_s = time.perf_counter() - began_s
    figures = train(batches, case.step_s, WINDOW_S)
    if loader.tuner is None:
        return figures
    chosen = {"workers": loader.tuner.workers, "ahead": loader.tuner.depth}
    return figures | chosen | {"settled, s": settled_s}


def is_settled(loader: fastload.Loader[Any]) -> bool:
    """Returns true if a loader's tuner rests; one that is not tuned never does."""
    history = loader.tuner.history if loader.tuner is not None else []
    return bool(history) and history[-1].reason.startswith("settled")


def contest(bench: Bench, name: str, case: Case) -> None:
    """Puts AUTO beside a grid."""
    figures: Figures = {}

    def note(who: str, values: dict[str, float]) -> None:
        for measure, value in values.items():
            figures.setdefault(who, {}).setdefault(measure, []).append(value)

    grid = {
        f"{workers} workers, {workers * ahead} ahead": (workers, ahead)
        for workers in case.workers
        for ahead in case.ahead
    }
    for who, (workers, ahead) in grid.items():
        note(who, measured(case.fixed(workers, ahead), case.step_s))
    most = max(median(figures, who, SPEED) for who in grid)
    enough = [who for who in grid if median(figures, who, SPEED) >= 0.98 * most]
    found = min(enough, key=lambda who: median(figures, who, CORES))
    best = f"the best again: {found}"
    workers, ahead = grid[found]
    for _ in range(bench.rounds):
        note(best, measured(case.fixed(workers, ahead), case.step_s))
        given = case.loader(num_workers=workers, prefetch_factor=ahead, tune=False)
        note("the same, num_workers given", measured(given, case.step_s))
        note(DEFAULTS, measured(case.loader(tune=False), case.step_s))
        note(AUTO, tuned(case))
    bench.show(name, figures, digits=2)
    ours = median(figures, AUTO, SPEED)
    bench.claim(
        f"{name}: AUTO's samples/s by the best's",
        ours / median(figures, best, SPEED),
        0.92,
        at_least=True,
    )
    bench.claim(
        f"{name}: AUTO's cores by the best's",
        median(figures, AUTO, CORES) / median(figures, best, CORES),
        1.1,
    )
    spread = max(max(figures[who][SPEED]) - min(figures[who][SPEED]) for who in (DEFAULTS, AUTO))
    bench.claim(
        f"{name}: how far AUTO's samples/s are below the defaults', by the spread of the runs",
        (median(figures, DEFAULTS, SPEED) - ours) / max(spread, 1e-9),
        1.0,
    )


def change(bench: Bench) -> None:
    """Changes a step in mid-run."""
    figures: Figures = {}
    for _ in range(bench.rounds):
        loader = Case(images, 32, 0.0, ()).loader()
        batches = iter(loader)
        for step_s in STEPS_S:
            began_s = time.perf_counter()
            known = len(loader.tuner.history) if loader.tuner is not None else 0
            while time.perf_counter() < began_s + SETTLE_S:
                train(batches, step_s, 0.5)
                assert loader.tuner is not None
                if len(loader.tuner.history) > known and is_settled(loader):
                    break
            values = {
                "settled, s": time.perf_counter() - began_s,
                **train(batches, step_s, WINDOW_S),
                "workers": loader.tuner.workers,
                "ahead": loader.tuner.depth,
            }
            for measure, value in values.items():
                who = f"a step of {1e3 * step_s:g} ms"
                figures.setdefault(who, {}).setdefault(measure, []).append(value)
    bench.show("A step that changes", figures, digits=2)
    for who in list(figures)[1:]:
        bench.claim(f"{who}: seconds until settled again", median(figures, who, "settled, s"), 30)


def _first(batch: Any) -> Any:
    return batch[0] if isinstance(batch, list | tuple) else batch


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, cases=(*CASES, CHANGE))
    for name in bench.cases:
        if name == CHANGE:
            change(bench)
        else:
            contest(bench, name, CASES[name])
    bench.close()


if __name__ == "__main__":
    main()
