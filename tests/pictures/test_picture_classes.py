"""Ten classes of pictures as people write them: every batch is torch's, bit for bit."""

import random

import numpy as np
import pytest
import torch
from _picture_classes import CLASSES, write
from torch.utils.data import DataLoader

from fastload import Loader
from fastload.pictures import samples
from fastload.pictures.source import making
from fastload.pictures.waiting import Waiting
from tests.shared.compare import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:The image decoding and encoding:DeprecationWarning")

WAIT = sorted(set(CLASSES) - {"read_image, v2"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    write(root, 12)
    return root


def seed(number):
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_torchs(folder, name, workers):
    arguments = {"batch_size": 4, "shuffle": True, "num_workers": workers, "collate_fn": list}
    for number in range(3 if workers == 2 else 1):
        seed(number)
        expected = list(DataLoader(CLASSES[name](folder), **arguments))
        seed(number)
        assert_same(list(Loader(CLASSES[name](folder), **arguments)), expected)


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_give_the_same_with_and_without_waiting(folder, name):
    batches = []
    for lazy in (True, False):
        seed(7)
        loader = Loader(CLASSES[name](folder), 4, shuffle=True, lazy_images=lazy, collate_fn=list)
        batches.append(list(loader))
    assert_same(*batches)


@pytest.mark.parametrize("name", WAIT)
def test_their_pictures_wait(folder, name, monkeypatch):
    settled = []
    settle = Waiting.settle
    monkeypatch.setattr(Waiting, "settle", lambda self: (settled.append(1), settle(self)))
    dataset = CLASSES[name](folder)
    waited = samples.waited(dataset)
    opened = making().opened
    lists = waited.__getitems__
    sample = waited[2] if lists is None else lists([2])[0]
    assert making().opened > opened
    assert sample is not None
    assert not settled
