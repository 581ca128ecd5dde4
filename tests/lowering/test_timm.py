"""Chains of timm's `create_transform`: native, and torch's batches."""

import pytest
import torch
import torchvision.datasets

from fastload import Loader, lanes
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import SIZES

from .test_torchvision import assert_native
from .torchvision_files import write_folder

pytestmark = MANY_WORKERS

timm = pytest.importorskip("timm.data")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return torchvision.datasets.ImageFolder(write_folder(tmp_path_factory.mktemp("images")))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("mode", ["center", "squash"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_evaluation(mode, interpolation, normalize, images, monkeypatch):
    arguments = {"crop_mode": mode, "interpolation": interpolation, "normalize": normalize}
    transform = timm.create_transform(32, is_training=False, **arguments)
    monkeypatch.setattr(images, "transform", transform)
    assert_native(images)


def test_certain_crops(images, monkeypatch):
    crop = timm.transforms.RandomResizedCropAndInterpolation(24, (2.0, 2.0), (1e-3, 1e3), "bicubic")
    transform = timm.create_transform(24, is_training=True, no_aug=True)
    transform.transforms[0] = crop  # never fits, so that it is always the whole image
    monkeypatch.setattr(images, "transform", transform)
    assert_native(images)


@pytest.mark.parametrize("interpolation", ["random", "bicubic"])
def test_training(interpolation, images, monkeypatch):
    transform = timm.create_transform(32, is_training=True, interpolation=interpolation)
    monkeypatch.setattr(images, "transform", transform)
    loader = Loader(images, 10, **SIZES)
    assert lanes.choose(loader).lane == "native", lanes.choose(loader).why

    def run(seed):
        torch.manual_seed(seed)
        return next(iter(loader))[0]

    assert run(1).shape == (10, 3, 32, 32)
    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_a_prefetch_loader_takes_a_loader(images, monkeypatch):
    monkeypatch.setattr(images, "transform", None)
    made = [
        timm.create_loader(
            images, 32, 4, num_workers=1, persistent_workers=False, device=torch.device("cpu")
        )
        for _ in range(2)
    ]
    ours, theirs = made
    ours.loader = Loader.from_torch(ours.loader)
    assert type(ours) is type(theirs) is timm.loader.PrefetchLoader
    assert len(ours) == len(theirs)
    for got, want in zip(ours, theirs, strict=True):
        assert all(map(torch.equal, got, want))
