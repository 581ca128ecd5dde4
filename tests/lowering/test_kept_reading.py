"""Datasets whose code is read again when something has changed, and no sooner."""

import functools
import random

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset

from fastload.lowering import kept_reading
from fastload.lowering.kept_reading import KeptReading


def plain(value):
    return value + 1


def drawn(value):
    return value + random.random()


transform = plain


class Rows(Dataset):
    noise = 0.0

    def __init__(self):
        self.rows = torch.zeros(8, 3)
        self.transform = plain

    def __len__(self):
        return 8

    def scaled(self, row):
        return row * 2

    def __getitem__(self, index):
        return (
            self.scaled(torch.as_tensor(transform(self.transform(self.rows[index])))) + self.noise
        )


class Listed(Dataset):
    def __init__(self):
        self.transforms = [plain]

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.transforms[0](index)


class Slotted(Rows):
    __slots__ = ("other",)

    def __init__(self):
        super().__init__()
        self.other = plain

    def __getitem__(self, index):
        return self.other(super().__getitem__(index))


class Held(Dataset):
    def __init__(self):
        self.inner = Rows()

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.inner.rows[index]


@pytest.fixture
def readings(monkeypatch):
    """Returns the datasets that were read, one for each reading."""
    read, found = kept_reading.read_shallowly, []

    def counted(dataset):
        found.append(dataset)
        return read(dataset)

    monkeypatch.setattr(kept_reading, "read_shallowly", counted)
    return found


def test_what_has_not_changed_is_read_once(readings):
    kept = KeptReading(Rows())
    assert kept.is_cheap()
    assert kept.is_cheap()
    assert len(readings) == 1


def draws(self, index):
    return torch.rand(())


CHANGES = {
    "an attribute": lambda dataset, _: setattr(dataset, "transform", drawn),
    "an attribute that hides a method": lambda dataset, _: setattr(dataset, "scaled", drawn),
    "all attributes": lambda dataset, _: setattr(
        dataset, "__dict__", vars(dataset) | {"transform": drawn}
    ),
    "a method": lambda _, patch: patch.setattr(Rows, "scaled", draws),
    "a class": lambda dataset, _: setattr(
        dataset, "__class__", type("Other", (Rows,), {"__getitem__": draws})
    ),
    "an attribute of the class": lambda _, patch: patch.setattr(Rows, "noise", drawn),
    "a new method": lambda _, patch: patch.setattr(Rows, "__getattr__", draws, raising=False),
    "a method of a base class": lambda _, patch: patch.setattr(
        Dataset, "__getitems__", draws, raising=False
    ),
    "a global": lambda _, patch: patch.setitem(globals(), "transform", drawn),
    "a global that hides a module": lambda _, patch: patch.setitem(globals(), "torch", Held()),
    "a function of a module": lambda _, patch: patch.setattr(torch, "as_tensor", torch.rand_like),
    "a function's code": lambda _, patch: patch.setattr(plain, "__code__", drawn.__code__),
    "a function's default": lambda _, patch: patch.setattr(plain, "__defaults__", (drawn,)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_read_again(change, monkeypatch, readings):
    dataset = Rows()
    kept = KeptReading(dataset)
    assert kept.is_cheap()
    with monkeypatch.context() as patch:
        change(dataset, patch)
        assert not kept.is_cheap()
    assert len(readings) == 2


@pytest.mark.parametrize(
    ("dataset", "change"),
    [
        (Listed(), lambda dataset: dataset.transforms.insert(0, drawn)),
        (Slotted(), lambda dataset: setattr(dataset, "other", drawn)),
        (Held(), lambda dataset: setattr(dataset.inner, "rows", functools.partial)),
        (Subset(Rows(), range(3)), lambda subset: setattr(subset.dataset, "transform", drawn)),
        ([plain], lambda listed: listed.append(object())),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_lies_deeper_is_read_each_time(dataset, change):
    kept = KeptReading(dataset)
    kept.is_cheap()
    assert kept._sources is None
    change(dataset)
    assert not kept.is_cheap()


def test_a_range_and_an_array_are_their_own(readings):
    class Many(Dataset):
        def __init__(self):
            self.numbers, self.order = np.arange(8), range(8)

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return self.numbers[self.order[index]]

    kept = KeptReading(Many())
    assert kept.is_cheap()
    assert kept.is_cheap()
    assert len(readings) == 1
