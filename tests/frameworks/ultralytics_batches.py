"""Compares the batches of Ultralytics' loader on top of torch's and of ours.

`python -m tests.frameworks.ultralytics_batches WORKERS`: a program of its own, because importing Ultralytics exchanges
`PIL.Image.open` and `torch.save`.
"""

import sys
from typing import Any

import torch
from torch.utils.data import Dataset
from ultralytics.data import build

import fastload


class Detections(Dataset[Any]):
    """Samples with a number of boxes each, as YOLO's, which its own function collates."""

    def __len__(self) -> int:
        return 22

    def __getitem__(self, index: int) -> Any:
        boxes = torch.full((index % 3, 4), float(index))
        return {"image": torch.full((3, 8, 8), index, dtype=torch.uint8), "boxes": boxes}

    @staticmethod
    def collate_fn(samples: list[Any]) -> Any:
        images = torch.stack([sample["image"] for sample in samples])
        return {"image": images, "boxes": torch.cat([sample["boxes"] for sample in samples])}


class Infinite(build.InfiniteDataLoader, fastload.Loader):  # type: ignore[misc]
    """What `build_dataloader` makes."""


def epochs(workers: int) -> tuple[Any, list[Any]]:
    """Returns a loader and the batches of three epochs."""
    torch.manual_seed(5)
    loader = build.build_dataloader(Detections(), 4, workers, shuffle=True, device="cpu")
    batches = [
        {name: value.tolist() for name, value in batch.items()}
        for _ in range(3)
        for batch in loader
    ]
    loader.close()
    return loader, batches


if __name__ == "__main__":
    _, want = epochs(int(sys.argv[1]))
    build.InfiniteDataLoader = Infinite
    loader, batches = epochs(int(sys.argv[1]))
    assert isinstance(loader, fastload.Loader)
    assert batches == want
    sys.stdout.write(f"equal {len(batches)}\n")
