"""Datasets whose samples change them in worker processes: said once, with the names of what changes."""

import logging

import pytest
from torch.utils.data import Dataset

from fastload import AUTO, Loader


class Changing(Dataset):
    def __init__(self, change, **attributes):
        self.change = change
        self.__dict__.update(attributes)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.change(self, index)
        return index


def count(dataset, _):
    dataset.count += 1


def fill(dataset, index):
    dataset.cache[index] = index * index


def grow(dataset, index):
    dataset.long.append(index)


def put(dataset, index):
    dataset.entries[0] = index + 1000


def open_file(dataset, _):
    if dataset.file is None:
        dataset.file = object()


def make(dataset, _):
    dataset.new = 1


def change_all(dataset, _):
    for name in "abcde":
        setattr(dataset, name, getattr(dataset, name) + 1)


def nothing(*_):
    pass


SAID = {
    "a counter": (count, {"count": 0}, "'count'"),
    "a cache": (fill, {"cache": {}, "other": 1}, "'cache'"),
    "a long list": (grow, {"long": list(range(5_000))}, "'long'"),
    "an entry": (put, {"entries": [1, 2]}, "'entries'"),
    "many": (change_all, dict.fromkeys("abcde", 7), "'a', 'b', 'c' and 2 more"),
}
SILENT = {
    "a file opened on first use": (open_file, {"file": None}),
    "an attribute made on first use": (make, {}),
    "nothing": (nothing, {"cache": {1: 2}, "entries": [1, 2], "count": 3}),
}


def lines(caplog, dataset, **arguments):
    """Returns what is logged of the dataset while two epochs are taken."""
    with caplog.at_level(logging.INFO, "fastload"):
        loader = Loader(dataset, 3, lane="process", **arguments)
        for _ in range(2):
            assert sorted(index for batch in loader for index in batch.tolist()) == list(range(12))
    return [each.getMessage() for each in caplog.records if "changes" in each.getMessage()]


@pytest.mark.parametrize("number", [AUTO, 2], ids=["AUTO", "2"])
@pytest.mark.parametrize(("change", "attributes", "names"), SAID.values(), ids=SAID)
def test_changed_attributes_are_named_once(caplog, change, attributes, names, number):
    [said] = lines(caplog, Changing(change, **attributes), num_workers=number)
    assert said == (
        f"samples of Changing change its attributes {names}: each worker process changes a copy of its own, "
        "which no other process sees"
    )


@pytest.mark.parametrize(("change", "attributes"), SILENT.values(), ids=SILENT)
def test_nothing_is_said_of_what_is_begun_in_a_worker_or_stays(caplog, change, attributes):
    assert lines(caplog, Changing(change, **attributes), num_workers=2) == []
