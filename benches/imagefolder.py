"""torchvision's ImageFolder with its transforms, unchanged: an epoch of training and of evaluation.

480 JPEG files of 400 to 600 pixels on the longer side, quality 75 to 95, mixed chroma subsampling, in
batches of 64. Training: RandomResizedCrop(224), RandomHorizontalFlip, ToTensor, Normalize, shuffled,
and the same as transforms v2 of uint8 tensors. Evaluation: Resize(256), CenterCrop(224), ToTensor,
Normalize, in v1 and v2. The seams: a chain that ends in a lambda, and MixUp in `collate_fn`. "decode
only" is what decoding the whole files costs on the same two threads.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from _contest import OURS, SPEED, Bench, Figures, against_torch, median
from torch.utils.data import default_collate
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import fastload
from demo.photographs import photographs

COUNT = 480
BATCH_SIZE = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DECODE = "decode only, fastload, num_workers=2"


def negate(image: torch.Tensor) -> torch.Tensor:
    """A user's own transform, unknown to fastload."""
    return -image


def mix_up(samples: list[Any]) -> list[torch.Tensor]:
    """Collates, and blends each image with its neighbour."""
    images, labels = default_collate(samples)
    weight = torch.distributions.Beta(0.2, 0.2).sample((len(images), 1, 1, 1))
    return [torch.lerp(images, images.roll(1, 0), weight), labels]


def load(kind: Any, workers: int, *, root: Path, transform: Any, **arguments: Any) -> Iterable[Any]:
    """Makes a loader as anyone would."""
    dataset = ImageFolder(root, transform)
    return kind(dataset, BATCH_SIZE, num_workers=workers, **arguments)


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__)
    root = photographs(COUNT)
    paths = sorted(root.rglob("*.jpg"))
    decode = functools.partial(
        fastload.Loader, fastload.columns.Image(paths), batch_size=None, num_workers=2
    )
    for _ in decode():  # fills the page cache
        pass

    def race(title: str, transform: Any, promised: float, **arguments: Any) -> Figures:
        loader = functools.partial(load, root=root, transform=transform, **arguments)
        return against_torch(
            bench, title, loader, COUNT, promised=promised, limits={DECODE: decode}
        )

    train = [v1.RandomResizedCrop(224), v1.RandomHorizontalFlip()]
    floats = [v1.ToTensor(), v1.Normalize(MEAN, STD)]
    tensors = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    evaluate = [v1.Resize(256), v1.CenterCrop(224)]

    figures = race("training, v1", v1.Compose([*train, *floats]), 2.8, shuffle=True)
    share = median(figures, OURS, SPEED) / median(figures, DECODE, SPEED)
    bench.claim("training, v1: samples/s by decoding alone", share, 0.9, at_least=True)
    crops = [v2.ToImage(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    race("training, v2 on tensors", v2.Compose([*crops, *tensors]), 2.0, shuffle=True)
    race("evaluation, v1", v1.Compose([*evaluate, *floats]), 2.5)
    middle = [v2.ToImage(), v2.Resize(256, antialias=True), v2.CenterCrop(224)]
    race("evaluation, v2 on tensors", v2.Compose([*middle, *tensors]), 2.0)
    race(
        "training that ends in a lambda",
        v1.Compose([*train, *floats, v1.Lambda(negate)]),
        1.5,
        shuffle=True,
    )
    race(
        "training with MixUp in collate_fn",
        v1.Compose([*train, *floats]),
        1.5,
        shuffle=True,
        collate_fn=mix_up,
    )
    bench.close()


if __name__ == "__main__":
    main()
