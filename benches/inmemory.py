"""Data sets that lie in memory: torch's TensorDataset, and CIFAR10's images through transforms.

TensorDataset: 1,000,000 x 32 float32 and their labels, shuffled, batches of 1024, a whole epoch timed
from before `iter()`. The limit is what no loader can avoid: one `randperm`, and the `index_select`s of
its batches. CIFAR10: 50,000 x 32 x 32 x 3 bytes, RandomCrop(32, padding=4), RandomHorizontalFlip, ToTensor,
Normalize, batches of 128.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from _contest import OURS, SPEED, Bench, against_torch, interleave, median, pace
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from torchvision import transforms
from torchvision.datasets import CIFAR10

import fastload

ROWS, WIDTH, BATCH_SIZE = 1_000_000, 32, 1024
IMAGES, IMAGE_BATCH = 10_000, 128
BATCHED = "torch, batched form"
LIMIT = "one randperm, and index_select"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def select(dataset: TensorDataset) -> Iterator[list[torch.Tensor]]:
    """Yields the batches of an epoch by torch's fastest means."""
    for indices in torch.randperm(len(dataset)).split(BATCH_SIZE):
        yield [tensor.index_select(0, indices) for tensor in dataset.tensors]


def batched(kind: Any, dataset: TensorDataset) -> Iterable[Any]:
    """Makes a loader that indexes the dataset once per batch."""
    order = BatchSampler(RandomSampler(dataset), BATCH_SIZE, drop_last=False)
    return kind(dataset, sampler=order, batch_size=None)


def cifar10() -> CIFAR10:
    """Returns CIFAR10's dataset with random pixels in place of a download."""
    random = np.random.default_rng(0)
    dataset = CIFAR10.__new__(CIFAR10)
    dataset.data = random.integers(0, 256, (IMAGES, 32, 32, 3), np.uint8)
    dataset.targets = random.integers(0, 10, IMAGES).tolist()
    dataset.transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    dataset.target_transform = None
    return dataset


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    rows = TensorDataset(torch.randn(ROWS, WIDTH), torch.randint(0, 10, (ROWS,)))
    figures = against_torch(
        bench,
        "TensorDataset",
        lambda kind, workers: kind(rows, BATCH_SIZE, shuffle=True, num_workers=workers),
        ROWS,
        promised=30,
    )
    contestants = {
        OURS: lambda: fastload.Loader(rows, BATCH_SIZE, shuffle=True, num_workers=2),
        "fastload, batched form": lambda: batched(fastload.Loader, rows),
        BATCHED: lambda: batched(DataLoader, rows),
        LIMIT: lambda: select(rows),
    }
    figures = interleave(
        {who: functools.partial(pace, load, ROWS) for who, load in contestants.items()},
        3 * bench.rounds,
    )
    bench.show(
        "TensorDataset beside the limit",
        figures,
        digits=0,
        ratio_of=SPEED,
        rivals=[BATCHED],
        more_is_better=True,
    )
    ours = median(figures, OURS, SPEED)
    promises = ((BATCHED, 5.0), (LIMIT, 0.6))
    for rival, promised in promises:
        ratio = ours / median(figures, rival, SPEED)
        bench.claim(f"TensorDataset: samples/s by {rival}", ratio, promised, at_least=True)
    images = cifar10()
    against_torch(
        bench,
        "CIFAR10",
        lambda kind, workers: kind(images, IMAGE_BATCH, shuffle=True, num_workers=workers),
        IMAGES,
        promised=15,
    )
    bench.close()


if __name__ == "__main__":
    main()
