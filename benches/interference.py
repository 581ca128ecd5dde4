"""Interference: how much slower one core trains while a loader keeps the other one busy.

Training: one thread (`torch.set_num_threads(1)`), the same batch again and again; either twenty
Linear(64, 64) layers, whose many small operations take the interpreter up and give it back, or a
resnet18. Beside it: nothing; fastload with one native thread; torch with one worker process. Both
load the same photographs without end, in batches of 8.

Fairness: a loader is to be busy all the time, however fast it is. The training thread therefore
never waits for a batch and never lets the queue fill up: every 10 ms it takes all batches that are
ready, and finds out through the public `timeout=` argument (a millisecond: a batch that is not
there raises). "loader, cores" is the CPU time that the loading took per second: 1.0 is a
core. The faster loader thus delivers more batches to be taken; it is not given less to do. Rounds
are interleaved, and each loss is against the undisturbed window of its own round.

Then a class of pictures that is not recognised, through one worker process each, at equal rates: of
either loader no more than 150 samples are taken in a second, which both can deliver.
"""

import functools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
import torchvision
from _contest import Bench, Figures, interleave, median
from _picture_classes import CLASSES, write
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

import fastload
from demo.loaders import photograph_dataset
from demo.photographs import photographs

STEPS, LOADED, CORES, LOSS = "steps/s", "samples/s loaded", "loader, cores", "loss, %"
ALONE, NATIVE, PROCESS = "nothing", "fastload, 1 native thread", "torch, 1 worker process"
WAITING = "fastload, 1 worker process"
RATE_PER_S = 150
BATCH_SIZE = 8
WINDOW_S, WARM_UP_S, DRAIN_EVERY_S = 2.0, 0.4, 0.01


class Training:
    """A model that learns one batch by heart."""

    def __init__(self, model: nn.Module, inputs: torch.Tensor) -> None:
        self._model = model
        self._inputs = inputs
        self._optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(self) -> None:
        """Does one step, forth and back."""
        self._optimizer.zero_grad()
        self._model(self._inputs).square().mean().backward()
        self._optimizer.step()


class Nothing:
    """No loader at all."""

    samples = 0

    def drain(self) -> None:
        """Takes nothing."""

    def cpu_s(self) -> float:
        """Returns 0."""
        return 0.0

    def close(self) -> None:
        """Does nothing."""


class Busy:
    """A loader without end, whose batches are taken as soon as they are there.

    Args:
        kind: The loader's class.
        dataset: The dataset.
        most_per_s: No more samples are taken in a second; None without a limit.

    Attributes:
        samples: How many have been taken.
    """

    def __init__(
        self,
        kind: Callable[..., DataLoader],
        dataset: Dataset,
        *,
        most_per_s: float | None = None,
    ) -> None:
        self.samples = 0
        self._most_per_s = math.inf if most_per_s is None else most_per_s
        self._began_s = math.inf
        endless = RandomSampler(dataset, replacement=True, num_samples=1_000_000)
        loader = kind(
            dataset,
            BATCH_SIZE,
            sampler=endless,
            num_workers=1,
            prefetch_factor=8,
            timeout=1e-3,
        )
        self._batches: Iterator[Any] | None = iter(loader)
        while self.samples == 0:
            self.drain()
        self.samples, self._began_s = 0, time.perf_counter()

    def drain(self) -> None:
        """Takes the batches that are ready."""
        elapsed_s = max(0.0, time.perf_counter() - self._began_s)
        most = self._most_per_s * elapsed_s if elapsed_s else math.inf
        while self.samples < most:
            try:
                samples = next(self._batches)
            except RuntimeError as error:
                if "timed out" not in str(error):
                    raise
                return
            self.samples += len(samples[1])

    def cpu_s(self) -> float:
        """Returns the CPU seconds of all threads but this one, and of the workers."""
        workers = (child.cpu_times() for child in psutil.Process().children())
        threads_s = time.process_time() - time.thread_time()
        return threads_s + sum(times.user + times.system for times in workers)

    def close(self) -> None:
        """Ends the loading, and the workers."""
        self._batches = None


def window(training: Training, loading: Callable[[], Nothing | Busy]) -> dict[str, float]:
    """Trains for some seconds beside a loader; returns the pace of both."""
    loader = loading()
    _train(training, loader, WARM_UP_S)
    samples, cpu_before_s, began_s = loader.samples, loader.cpu_s(), time.perf_counter()
    steps = _train(training, loader, WINDOW_S)
    wall_s = time.perf_counter() - began_s
    account = {
        STEPS: steps / wall_s,
        LOADED: (loader.samples - samples) / wall_s,
        CORES: (loader.cpu_s() - cpu_before_s) / wall_s,
    }
    loader.close()
    return account


def _train(training: Training, loader: Nothing | Busy, seconds: float) -> int:
    """Steps for some seconds, and drains the loader on the way; returns how many steps."""
    steps = 0
    now_s = time.perf_counter()
    until_s, drain_s = now_s + seconds, now_s + DRAIN_EVERY_S
    while now_s < until_s:
        training.step()
        steps += 1
        now_s = time.perf_counter()
        if now_s >= drain_s:
            loader.drain()
            drain_s = time.perf_counter() + DRAIN_EVERY_S
    return steps


def small_operations() -> Training:
    """Returns twenty small layers: the interpreter is the bottleneck."""
    layers = [layer for _ in range(20) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return Training(nn.Sequential(*layers), torch.rand(16, 64))


def resnet18() -> Training:
    """Returns a resnet18 on two images of 128x128: arithmetic is the bottleneck."""
    return Training(torchvision.models.resnet18(num_classes=10), torch.rand(2, 3, 128, 128))


def named(model: Callable[[], Training]) -> str:
    """Returns the model's name in words."""
    return model.__name__.replace("_", " ")


def beside(
    bench: Bench,
    model: Callable[[], Training],
    loaders: dict[str, Callable[[], Nothing | Busy]],
    what: str,
) -> Figures:
    """Trains beside each loader in turn, the first of which is nothing; shows the pace of both."""
    training = model()
    _train(training, Nothing(), WARM_UP_S)
    figures = interleave(
        {who: functools.partial(window, training, loading) for who, loading in loaders.items()},
        bench.rounds,
    )
    alone = figures[ALONE][STEPS]
    for values in figures.values():
        values[LOSS] = [
            100 * (1 - pace / quiet) for pace, quiet in zip(values[STEPS], alone, strict=True)
        ]
    bench.show(f"Training thread beside {what}, {named(model)}", figures, digits=2)
    return figures


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = photographs()
    loaders: dict[str, Callable[[], Nothing | Busy]] = {
        ALONE: Nothing,
        NATIVE: functools.partial(Busy, fastload.Loader, photograph_dataset(root)),
        PROCESS: functools.partial(Busy, DataLoader, photograph_dataset(root)),
    }
    if len(os.sched_getaffinity(0)) < 2:
        bench.say("[red]One core only: nothing here can run beside the training thread.")
    for model in (small_operations, resnet18):
        figures = beside(bench, model, loaders, "a busy loader")
        bench.claim(
            f"{named(model)}: loss beside fastload - loss beside torch's worker, points",
            median(figures, NATIVE, LOSS) - median(figures, PROCESS, LOSS),
            2.0,
        )
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        pictures = CLASSES["subclassed folder"](Path(folder))
        loaders = {
            ALONE: Nothing,
            **{
                who: functools.partial(Busy, kind, pictures, most_per_s=RATE_PER_S)
                for who, kind in ((WAITING, fastload.Loader), (PROCESS, DataLoader))
            },
        }
        for model in (small_operations, resnet18):
            figures = beside(bench, model, loaders, f"{RATE_PER_S} pictures a second")
            bench.claim(
                f"{named(model)}, equal rates: loss beside fastload - loss beside torch's worker, points",
                median(figures, WAITING, LOSS) - median(figures, PROCESS, LOSS),
                2.0,
            )
    bench.close()


if __name__ == "__main__":
    main()
