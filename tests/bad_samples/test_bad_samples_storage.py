"""Failures of the storage: tried again, then raised; a sample that passes is the one it would have been.

Reading the memory of a process at address 0 through /proc fails with EIO: a real error, without a mount.
"""

import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset

from fastload import Loader, OnError
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.processes import LINUX

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = [LINUX, MANY_WORKERS, pytest.mark.timeout(240)]

UNREADABLE = "/proc/self/mem"

NATIVE = {"native, 1 thread": {"num_workers": 1}, "native, 8 threads": {"num_workers": 8}}
PYTHON = {
    "inline": {"num_workers": 0},
    "processes": {"num_workers": 2},
    "AUTO processes": {"lane": "process"},
    "threads": {"num_workers": 2, "lane": "threads"},
    "AUTO threads": {"lane": "threads"},
}


def images(root):
    """Images of one colour each, in files; the colour is the number of the sample."""
    (root / "images").mkdir()
    for number in range(32):
        Image.new("L", (4, 4), number).save(root / f"images/{number:02}.png")
    return ImageFolder(root, transforms.PILToTensor())


def broken(dataset, numbers):
    """Makes files of an `ImageFolder` unreadable."""
    paths = [Path(dataset.samples[number][0]) for number in numbers]
    for path in paths:
        path.rename(path.with_suffix(".whole"))
        path.symlink_to(UNREADABLE)
    return paths


def repair(paths):
    for path in paths:
        path.with_suffix(".whole").replace(path)


class Files(Dataset):
    """Reads files in Python, after a draw."""

    def __init__(self, root):
        self.root = root

    def __len__(self):
        return 32

    def __getitem__(self, index):
        drawn = torch.rand(2)
        with open(f"{self.root}/{index}", "rb") as file:  # noqa: PTH123
            return drawn, index, len(file.read(8))


def files(root, unreadable=()):
    for number in range(32):
        path = root / str(number)
        path.unlink(missing_ok=True)
        if number in unreadable:
            path.symlink_to(UNREADABLE)
        else:
            path.write_bytes(bytes(8))
    return Files(root)


@pytest.mark.own_sizes
@pytest.mark.parametrize("lane", NATIVE | PYTHON)
@pytest.mark.parametrize("retries", [0, 1])
def test_storage_that_stays_broken_is_raised_in_its_place(tmp_path, lane, retries):
    if lane in NATIVE:
        dataset = images(tmp_path)
        broken(dataset, range(8, 16))
    else:
        dataset = files(tmp_path, unreadable=range(8, 16))
    on_error = OnError("replace", retries=retries, quarantine=tmp_path / "bad.jsonl")
    loader = Loader(dataset, 8, on_error=on_error, **(NATIVE | PYTHON)[lane])
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(OSError, match="Input/output error") as raised:
        next(iterator)
    if lane in NATIVE:
        assert raised.value.errno == errno.EIO
        assert raised.value.filename == dataset.samples[8][0]
    assert len(list(iterator)) == 2
    assert loader.bad == []
    assert not (tmp_path / "bad.jsonl").exists()


@pytest.mark.own_sizes
@pytest.mark.parametrize("lane", NATIVE)
def test_a_storm_of_errors_ends(tmp_path, lane):
    dataset = images(tmp_path)
    broken(dataset, range(32))
    loader = Loader(dataset, 4, on_error=OnError("replace", retries=1), **NATIVE[lane])
    iterator = iter(loader)
    for _ in range(8):
        with pytest.raises(OSError, match="Input/output error"):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.own_sizes
@pytest.mark.parametrize("lane", NATIVE)
def test_native_storage_that_recovers_is_tried_again(tmp_path, lane):
    """A file that is missing beside broken ones stays bad."""
    dataset = images(tmp_path)
    whole = list(Loader(dataset, 8, **NATIVE[lane]))
    paths = broken(dataset, [3, 9])
    Path(dataset.samples[10][0]).unlink()
    loader = Loader(dataset, 8, on_error=OnError("replace", retries=3, max_share=1), **NATIVE[lane])
    iterator = iter(loader)
    time.sleep(1)  # the first attempts are over; the next one is made while the batch is awaited
    repair(paths)
    batches = list(iterator)
    pixels = torch.cat([batch[0] for batch in batches])
    assert [bad.index for bad in loader.bad] == [10]
    assert loader.stats()["bad_samples"]["retried"] >= 1
    assert torch.equal(pixels[10], pixels[11])
    good = [number for number in range(32) if number != 10]
    assert torch.equal(pixels[good], torch.cat([batch[0] for batch in whole])[good])


class Recovers(Files):
    """Storage that fails once for each of some samples, in whichever process."""

    def __getitem__(self, index):
        drawn = torch.rand(2), np.random.rand()
        marker = Path(self.root) / f"tried {index}"
        if index in (3, 9, 10) and not marker.exists():
            marker.touch()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return drawn, index


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("lane", ["AUTO processes", "AUTO threads"])
def test_a_sample_that_is_tried_again_has_its_own_draws(tmp_path, lane, wrapped):
    def batches():
        dataset = Subset(Recovers(tmp_path), range(32)) if wrapped else Recovers(tmp_path)
        generator = torch.Generator().manual_seed(0)
        loader = Loader(dataset, 8, on_error="replace", generator=generator, **PYTHON[lane])
        return list(loader), loader

    first, loader = batches()
    assert loader.bad == []
    assert (
        loader.stats()["bad_samples"]["retried"] >= 1
    )  # a list that fails is tried again sample by sample
    again, loader = batches()
    assert loader.stats()["bad_samples"]["retried"] == 0
    assert_same(first, again)


class TimesOut(Dataset):
    """A connection that times out once, without a number of the system's."""

    def __init__(self):
        self.has_failed = False

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3 and not self.has_failed:
            self.has_failed = True
            msg = "timed out"
            raise TimeoutError(msg)
        return index


def test_a_timeout_is_tried_again():
    loader = Loader(TimesOut(), 4, num_workers=0, on_error="replace")
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert loader.bad == []
