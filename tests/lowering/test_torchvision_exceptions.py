"""Corners in which torchvision does otherwise than its arguments let expect: left to it, or the same."""

import numpy as np
import pytest
import torch
import torchvision.datasets
from torch.utils.data import DataLoader, StackDataset
from torchvision import transforms as v1
from torchvision.transforms import v2

from fastload import Loader, lanes
from tests.shared.compare import assert_same

from .torchvision_files import COUNT, cifar10, mnist, write_folder


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    root = write_folder(tmp_path_factory.mktemp("squares"), size=(48, 48))
    return torchvision.datasets.ImageFolder(root)


@pytest.mark.parametrize(
    "steps",
    [
        [v1.Pad(3, fill=(7, 7, 7)), v1.ToTensor()],
        [v1.RandomRotation((30, 30), fill=(5, 5, 5)), v1.ToTensor()],
        [v2.ToImage(), v2.Pad(3, fill=[9, 9, 9])],
        [v1.PILToTensor(), v1.Grayscale(3)],
        [v1.ToTensor(), None],
    ],
    ids=str,
)
def test_what_torchvision_does_otherwise_to_grey_images_is_python(steps, tmp_path):
    dataset = mnist("MNIST")(tmp_path, transform=v1.Compose(steps))
    assert lanes.choose(Loader(dataset, num_workers=1)).lane == "process"


@pytest.mark.parametrize("make", [np.int32, np.int64, torch.tensor])
def test_targets_that_are_no_list_are_not_made_ints(make, tmp_path):
    dataset = cifar10(tmp_path, transform=v1.ToTensor())
    dataset.targets = make(dataset.targets)
    loader = Loader(dataset, batch_size=4, num_workers=1)
    assert "its targets are a" in lanes.choose(loader).why
    assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))


def test_a_method_replaced_in_one_transform_is_noticed(squares, monkeypatch):
    crop = v1.RandomCrop(8)
    monkeypatch.setattr(squares, "transform", v1.Compose([crop, v1.ToTensor()]))
    crop.get_params = lambda image, size: (0, 0, 8, 8)
    assert "a get_params of its own" in lanes.choose(Loader(squares, num_workers=1)).why


def test_two_images_of_a_sample_draw_each_for_itself(squares, monkeypatch):
    flip = v1.Compose([v1.RandomHorizontalFlip(), v1.PILToTensor()])
    monkeypatch.setattr(squares, "transform", flip)
    pair = StackDataset(squares, squares)
    [[(one, _), (other, _)]] = Loader(pair, COUNT, num_workers=1, lane="native")
    flipped = [not torch.equal(a, b) for a, b in zip(one, other, strict=True)]
    assert 0 < sum(flipped) < COUNT
