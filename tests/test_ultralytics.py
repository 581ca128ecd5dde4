"""Ultralytics: its infinite loader on top of ours has the batches of its own, epoch after epoch."""

from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

import fastload

from ._compare import MANY_WORKERS

pytest.importorskip("ultralytics")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore"),
]


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


@pytest.mark.parametrize("workers", [0, 2])
def test_its_infinite_loader(workers, monkeypatch):
    from ultralytics.data import build

    class Infinite(build.InfiniteDataLoader, fastload.Loader):  # type: ignore[misc]
        """What `build_dataloader` makes."""

    def epochs() -> tuple[Any, list[Any]]:
        torch.manual_seed(5)
        loader = build.build_dataloader(Detections(), 4, workers, shuffle=True, device="cpu")
        batches = [
            {name: value.tolist() for name, value in batch.items()}
            for _ in range(3)
            for batch in loader
        ]
        loader.close()
        return loader, batches

    _, want = epochs()
    monkeypatch.setattr(build, "InfiniteDataLoader", Infinite)
    loader, batches = epochs()
    assert isinstance(loader, fastload.Loader)
    assert batches == want
    assert len(batches) == 18
    assert batches[:6] != batches[6:12]
