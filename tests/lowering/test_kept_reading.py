"""Datasets whose code is read again when something has changed, and no sooner."""

import functools
import random

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset

import fastload
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
    assert kept.code().is_cheap
    assert kept.code().is_cheap
    assert len(readings) == 1


def test_what_draws_is_read_once_too(readings):
    dataset = Rows()
    dataset.transform = drawn
    kept = KeptReading(dataset)
    assert [kept.code().draws, kept.code().draws] == [{"python"}, {"python"}]
    assert len(readings) == 1
    dataset.transform = plain
    assert kept.code().draws == set()
    assert len(readings) == 2


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
    assert kept.code().is_cheap
    with monkeypatch.context() as patch:
        change(dataset, patch)
        assert not kept.code().is_cheap
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
    kept.code()
    assert kept._sources is None
    change(dataset)
    assert not kept.code().is_cheap


class Stored(Dataset):
    def __init__(self, entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, index):
        return self.entries[index]


def pairs():
    return [(torch.zeros(2), f"text {index}", (index, np.float32(1))) for index in range(8)]


@pytest.mark.parametrize(
    ("entries", "change"),
    [
        (list(range(8)), lambda entries: entries.append(9)),
        (list(range(1000)), lambda entries: entries.__setitem__(500, drawn)),
        ([torch.zeros(3) for _ in range(8)], lambda entries: entries.__setitem__(7, drawn)),
        (pairs(), lambda entries: entries.__setitem__(3, (drawn, "", ()))),
        (dict(enumerate(pairs())), lambda entries: entries.update({3: drawn})),
        (dict(enumerate(pairs())), lambda entries: entries.pop(0)),
    ],
)
def test_entries_are_read_again_when_one_is_another_object(entries, change, readings):
    kept = KeptReading(Stored(entries))
    assert kept.code().is_cheap
    assert kept.code().is_cheap
    assert len(readings) == 1
    change(entries)
    assert kept.code().is_cheap == (drawn not in read_flat(entries))
    assert len(readings) == 2


def read_flat(entries):
    listed = list(entries.values() if isinstance(entries, dict) else entries)
    return [part for each in listed for part in (each if isinstance(each, tuple) else (each,))]


@pytest.mark.parametrize("within", [[1], {"a": 1}, {1}, torch.nn.Identity()], ids=repr)
def test_entries_that_can_change_are_read_each_time(within, readings):
    kept = KeptReading(Stored([(0, within) for _ in range(8)]))
    answers = [kept.code().is_cheap, kept.code().is_cheap]
    assert answers[0] == answers[1]
    assert len(readings) == 2


def test_there_is_no_program_of_lists_which_may_change_within_an_epoch():
    class Labelled(Dataset):
        def __init__(self):
            self.rows, self.labels = torch.zeros(64, 16), list(range(64))

        def __len__(self):
            return 64

        def __getitem__(self, index):
            return self.rows[index], self.labels[index]

    dataset = Labelled()
    loader = fastload.Loader(dataset, batch_size=32)
    assert [len(list(loader)) for _ in range(3)] == [2, 2, 2]
    batches = iter(loader)
    next(batches)
    assert loader.stats()["consumer_batches"] == 1
    dataset.labels[40] = -1
    assert next(batches)[1][8] == -1
    dataset.labels[0] = -2
    assert next(iter(loader))[1][0] == -2


def test_a_range_and_an_array_are_their_own(readings):
    class Many(Dataset):
        def __init__(self):
            self.numbers, self.order = np.arange(8), range(8)

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return self.numbers[self.order[index]]

    kept = KeptReading(Many())
    assert kept.code().is_cheap
    assert kept.code().is_cheap
    assert len(readings) == 1
