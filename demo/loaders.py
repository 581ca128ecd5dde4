"""The two contestants: the same photographs, transforms, order and number of workers."""

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


def torch_dataset(root: Path) -> Dataset:
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


def native_dataset(root: Path) -> Dataset:
    """Returns the same photographs and labels as columns, which fastload's threads read."""
    folder = torchvision.datasets.ImageFolder(root)
    return fastload.Dataset(
        (
            fastload.columns.Image(
                [path for path, _ in folder.samples],
                transform=[
                    fastload.transforms.Resize(256),
                    fastload.transforms.CenterCrop(224),
                    fastload.transforms.ToTensor(),
                    fastload.transforms.Normalize(MEAN, STD),
                ],
            ),
            fastload.columns.Rows(torch.tensor(folder.targets)),
        )
    )


def torch_loader(root: Path) -> DataLoader:
    """Returns torch's DataLoader with two worker processes."""
    return DataLoader(
        torch_dataset(root), BATCH_SIZE, shuffle=True, num_workers=WORKERS, generator=_generator()
    )


def fastload_loader(root: Path) -> DataLoader:
    """Returns fastload's with two threads; of the arguments, only the dataset differs."""
    return fastload.Loader(
        native_dataset(root), BATCH_SIZE, shuffle=True, num_workers=WORKERS, generator=_generator()
    )


CONTESTANTS: dict[str, Callable[[Path], DataLoader]] = {
    "torch DataLoader": torch_loader,
    "fastload Loader": fastload_loader,
}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(2026)
