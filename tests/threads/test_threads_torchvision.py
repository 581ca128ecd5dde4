"""Random transforms of torchvision, in worker threads as in worker processes."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms as v1
from torchvision.transforms import v2

from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import assert_as_processes

pytestmark = MANY_WORKERS


class Pictures(Dataset[Any]):
    def __init__(self, transform: Any) -> None:
        pixels = np.arange(3 * 40 * 30, dtype=np.uint8).reshape(30, 40, 3)
        self.image = Image.fromarray(pixels)
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.image)


V1 = [
    v1.Compose(
        [
            v1.RandomResizedCrop(16),
            v1.RandomHorizontalFlip(),
            v1.ColorJitter(0.4, 0.4, 0.4, 0.1),
            v1.RandomChoice([v1.RandomRotation(20), v1.RandomAffine(20, (0.1, 0.1))]),
            v1.RandomOrder([v1.RandomGrayscale(), v1.GaussianBlur(3)]),
            v1.ToTensor(),
            v1.RandomErasing(1.0, value="random"),
        ]
    ),
    v1.Compose([v1.RandAugment(), v1.RandomCrop(16), v1.RandomPerspective(), v1.PILToTensor()]),
    v1.Compose([v1.AutoAugment(), v1.RandomApply([v1.CenterCrop(20)], 1.0), v1.PILToTensor()]),
    v1.Compose([v1.TrivialAugmentWide(), v1.AugMix(), v1.PILToTensor()]),
]
V2 = [
    v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(32, antialias=True),
            v2.RandomPhotometricDistort(),
            v2.RandomChoice([v2.RandomInvert(1.0), v2.RandomSolarize(100, 1.0)]),
            v2.RandomOrder([v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]),
            v2.ToDtype(torch.float32, scale=True),
            v2.GaussianNoise(),
            v2.ElasticTransform(),
            v2.RandomErasing(1.0),
        ]
    ),
    v2.Compose([v2.ToImage(), v2.RandAugment(), v2.RandomZoomOut(p=1.0), v2.Resize((9, 9))]),
    v2.Compose([v2.ToImage(), v2.AugMix(), v2.ScaleJitter((20, 20)), v2.Resize((9, 9))]),
]


@pytest.mark.parametrize("transform", V1 + V2, ids=range(len(V1 + V2)))
def test_random_transforms(transform):
    assert_as_processes(Pictures(transform))


def mix(samples: list[Any]) -> Any:
    images = torch.stack(samples)
    labels = torch.arange(len(samples))
    return v2.RandomChoice([v2.MixUp(num_classes=9), v2.CutMix(num_classes=9)])(images, labels)


def test_mixtures_of_batches():
    assert_as_processes(Pictures(v1.ToTensor()), collate_fn=mix)
