"""The two contestants: the same dataset, order and number of workers."""

from collections.abc import Callable
from pathlib import Path

import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

import fastload

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

BATCH_SIZE = 32
WORKERS = 2


def photograph_dataset(root: Path) -> Dataset:
    """Returns the photographs as torchvision loads them: Pillow, then torchvision's transforms."""
    return torchvision.datasets.ImageFolder(
        root,
        transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        ),
    )


def torch_loader(root: Path) -> DataLoader:
    """Returns torch's DataLoader with two worker processes."""
    return DataLoader(
        photograph_dataset(root),
        BATCH_SIZE,
        shuffle=True,
        num_workers=WORKERS,
        generator=_generator(),
    )


def fastload_loader(root: Path) -> DataLoader:
    """Returns fastload's with two threads; only the class differs."""
    return fastload.Loader(
        photograph_dataset(root),
        BATCH_SIZE,
        shuffle=True,
        num_workers=WORKERS,
        generator=_generator(),
    )


CONTESTANTS: dict[str, Callable[[Path], DataLoader]] = {
    "torch DataLoader": torch_loader,
    "fastload Loader": fastload_loader,
}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(2026)
