"""Accelerator: how fast batches reach a CUDA device, and how far a training stays below what the device can do.

Copies: 4,096 images of 3x224x224 bytes in memory, in random order, 256 in a batch, each copied to the device with
`non_blocking=True`; GB/s of an epoch, until the last copy is done. The limit copies one page-locked batch as often.

Training: residual networks learn from 480 JPEG files (76 kB each, drawn with replacement) through
RandomResizedCrop(224), a flip, ToTensor and Normalize, in batches of 256, page-locked, under bfloat16. The limit
trains on one batch that lies on the device; what a loader stays below it, the device copied or had no batch.

Each contestant keeps its loader over all rounds, torch's with persistent workers; an epoch before the first round is
not timed. torch has 4, 8, ... workers, to as many as there are cores.
"""

import functools
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torchvision
from _contest import SPEED, Bench, Figures, best, interleave, median
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset
from torchvision import transforms

import fastload
from demo.loaders import MEAN, STD
from demo.meter import tree_cpu_s
from demo.photographs import photographs

IMAGES, SHAPE, BATCH = 4096, (3, 224, 224), 256
FILES, DRAWN = 480, 5120
OURS = "fastload, at defaults"
RATE, CPU, BELOW = "GB/s", "CPU ms/sample", "below, %"
LIMIT = "limit"
DEVICE = torch.device("cuda")


def contestants(make: Callable[..., Iterable[Any]]) -> dict[str, Iterable[Any]]:
    """Returns the loaders, page-locked: torch's with several numbers of workers, and fastload's at defaults."""
    cores = len(os.sched_getaffinity(0))
    workers = [count for count in (4, 8, 16, 32) if count <= cores]
    torchs = {
        f"torch, num_workers={count}": make(DataLoader, num_workers=count, persistent_workers=True)
        for count in workers
    }
    return torchs | {OURS: make(fastload.Loader)}


def copied(loader: Iterable[Any]) -> dict[str, float]:
    """Copies an epoch to the device; returns the rate."""
    begun_s, copied_bytes = time.perf_counter(), 0
    for (images,) in loader:
        copied_bytes += images.to(DEVICE, non_blocking=True).nbytes
    torch.cuda.synchronize()
    return {RATE: copied_bytes / (time.perf_counter() - begun_s) / 1e9}


def copies(bench: Bench) -> None:
    """Races loaders of images in memory."""
    dataset = TensorDataset(torch.randint(0, 256, (IMAGES, *SHAPE), dtype=torch.uint8))
    make = functools.partial(_made, dataset, shuffle=True)
    loaders = {
        "torch, num_workers=0": make(DataLoader),
        "torch, num_workers=0, pageable": make(DataLoader, pin_memory=False),
        **contestants(make),
        "fastload, pageable": make(fastload.Loader, pin_memory=False),
    }
    batch = torch.zeros((BATCH, *SHAPE), dtype=torch.uint8).pin_memory()
    loaders[LIMIT] = [(batch,)] * (IMAGES // BATCH)
    figures = _raced(loaders, copied, bench.rounds)
    _judged(bench, "Copies to the device", figures, RATE)


class Training:
    """A residual network that learns on the device.

    Args:
        name: Its name in torchvision.
    """

    def __init__(self, name: str) -> None:
        self._model = torchvision.models.get_model(name, num_classes=2)
        self._model.to(DEVICE, memory_format=torch.channels_last)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)

    def epoch(self, loader: Iterable[Any]) -> dict[str, float]:
        """Trains for an epoch; returns samples/s and what a sample cost the CPUs."""
        begun_s, cpu_before_s, samples = time.perf_counter(), tree_cpu_s(), 0
        for images, labels in loader:
            inputs = images.to(DEVICE, non_blocking=True, memory_format=torch.channels_last)
            wanted = labels.to(DEVICE, non_blocking=True)
            self._optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = nn.functional.cross_entropy(self._model(inputs), wanted)
            loss.backward()
            self._optimizer.step()
            samples += len(labels)
        torch.cuda.synchronize()
        wall_s = time.perf_counter() - begun_s
        return {SPEED: samples / wall_s, CPU: 1e3 * (tree_cpu_s() - cpu_before_s) / samples}


def trained(bench: Bench, name: str) -> None:
    """Races loaders of photographs beside a training."""
    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(SHAPE[1]),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    dataset = torchvision.datasets.ImageFolder(photographs(FILES), transform)
    sampler = RandomSampler(dataset, replacement=True, num_samples=DRAWN)
    loaders = contestants(functools.partial(_made, dataset, sampler=sampler))
    images = torch.zeros((BATCH, *SHAPE), device=DEVICE).to(memory_format=torch.channels_last)
    labels = torch.zeros(BATCH, dtype=torch.int64, device=DEVICE)
    loaders[LIMIT] = [(images, labels)] * (DRAWN // BATCH)
    figures = _raced(loaders, Training(name).epoch, bench.rounds)
    limit = median(figures, LIMIT, SPEED)
    for who in loaders:
        figures[who][BELOW] = [max(0.0, 100 - 100 * rate / limit) for rate in figures[who][SPEED]]
    _judged(bench, f"Training {name}", figures, SPEED)


def main() -> None:
    """Runs the bench."""
    if not torch.cuda.is_available():
        print("no CUDA device: nothing is measured")
        return
    torch.backends.cudnn.benchmark = True
    cases = {
        "copies": copies,
        **{name: functools.partial(trained, name=name) for name in ("resnet18", "resnet50")},
    }
    bench = Bench(__doc__, cases=list(cases))
    bench.say(torch.cuda.get_device_name())
    for name in bench.cases:
        cases[name](bench)
    bench.close()


def _made(dataset: Any, kind: Callable[..., Iterable[Any]], **settings: Any) -> Iterable[Any]:
    return kind(dataset, BATCH, **{"pin_memory": True, "drop_last": True, **settings})


def _raced(
    loaders: dict[str, Iterable[Any]],
    epoch: Callable[[Iterable[Any]], dict[str, float]],
    rounds: int,
) -> Figures:
    for loader in loaders.values():
        epoch(loader)
    return interleave(
        {who: functools.partial(epoch, loader) for who, loader in loaders.items()}, rounds
    )


def _judged(bench: Bench, title: str, figures: Figures, measure: str) -> None:
    rivals = [who for who in figures if who.startswith("torch")]
    bench.show(title, figures, digits=2, ratio_of=measure, rivals=rivals, more_is_better=True)
    ratio = median(figures, OURS, measure) / best(figures, measure, rivals, more_is_better=True)
    bench.claim(f"{title}: {measure} by torch's best", ratio, 1, at_least=True)


if __name__ == "__main__":
    main()
