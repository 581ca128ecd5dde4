"""Datasets whose samples change them in worker processes: said once, with the names of what changes."""

import collections
import functools
import logging
import os

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from fastload import AUTO, Loader
from fastload.processes.iterator import ProcessIter
from fastload.processes.shared_state import why_one_process
from tests.shared.compare import assert_same, outcomes_by_type


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
    "a counter": (count, {"count": 0}, "dataset.count"),
    "a cache": (fill, {"cache": {}, "other": 1}, "dataset.cache"),
    "a long list": (grow, {"long": list(range(5_000))}, "dataset.long"),
    "an entry": (put, {"entries": [1, 2]}, "dataset.entries"),
    "many": (change_all, dict.fromkeys("abcde", 7), "dataset.a, dataset.b, dataset.c and 2 more"),
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


class Helper:
    def __init__(self):
        self.asked = 0


def ask(dataset, _):
    dataset.helper.asked += 1


SAID |= {
    "a counter of what it holds": (ask, {"helper": Helper()}, "dataset.helper.asked"),
    "a counter in a list": (ask, {"parts": [Helper()], "helper": Helper()}, "dataset.helper.asked"),
    "an ordered dict": (fill, {"cache": collections.OrderedDict()}, "dataset.cache"),
    "an array": (
        lambda data, _: data.seen.__setitem__(0, 1),
        {"seen": np.zeros(3)},
        "dataset.seen",
    ),
    "a tensor": (lambda data, _: data.seen.add_(1), {"seen": torch.zeros(3)}, "dataset.seen"),
}


@pytest.mark.parametrize("number", [AUTO, 2], ids=["AUTO", "2"])
@pytest.mark.parametrize(("change", "attributes", "names"), SAID.values(), ids=SAID)
def test_changed_attributes_are_named_once(caplog, change, attributes, names, number):
    [said] = lines(caplog, Changing(change, **attributes), num_workers=number)
    assert said == (
        f"samples of Changing change {names}: each worker process changes a copy of its own, "
        "which no other process sees"
    )


def test_the_loader_may_be_gone(caplog):
    for _ in Loader(Changing(SAID["an array"][0], seen=np.zeros(3)), 4):
        pass
    assert [each.getMessage() for each in caplog.records if "dataset.seen" in each.getMessage()]


@pytest.mark.parametrize(("change", "attributes"), SILENT.values(), ids=SILENT)
def test_nothing_is_said_of_what_is_begun_in_a_worker_or_stays(caplog, change, attributes):
    assert lines(caplog, Changing(change, **attributes), num_workers=2) == []


@pytest.mark.parametrize("chosen", [[3, 4, 5, 6], range(3, 7)], ids=["list", "range"])
def test_an_index_out_of_range_of_a_subset_is_an_error_of_its_batch(chosen):
    def seen(kind, **arguments):
        subset = Subset(Changing(nothing), chosen)
        return outcomes_by_type(kind(subset, 2, sampler=[9, 0, 1, 2, -4, -5, 3], **arguments))

    assert_same(seen(Loader, lane="process"), seen(DataLoader))


class Unmeasured(dict):
    def __len__(self):
        raise NotImplementedError


class Long(list):
    def __len__(self):
        return 1_000_000


class OfNoModule(type):
    def __getattribute__(cls, name):
        if name in ("__module__", "__mro__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Unreadable(metaclass=OfNoModule):
    pass


class Proxy:
    """Has no object to stand for, as a proxy outside of its context."""

    __class__ = property(lambda _: 1 / 0)


class Closed:
    __dict__ = property(lambda _: 1 / 0)


@pytest.mark.parametrize("lane", ["auto", "process"])
@pytest.mark.parametrize("kind", [Proxy, Closed])
def test_a_proxy_without_its_object_is_left_alone(kind, lane):
    dataset = Changing(make, held=[kind()])
    assert_same(list(Loader(dataset, 4, lane=lane)), list(DataLoader(dataset, 4)))


PROXY = Proxy()


@pytest.mark.parametrize("lane", ["auto", "process"])
def test_a_proxy_without_its_object_is_left_alone_as_a_global(lane):
    dataset = Changing(lambda *_: PROXY)
    assert why_one_process(is_forked=True, dataset=dataset) is None
    assert_same(list(Loader(dataset, 4, lane=lane)), list(DataLoader(dataset, 4)))


@pytest.mark.parametrize(
    "held", [Unmeasured(a=1), Long([1]), Unreadable], ids=["len", "long", "class"]
)
def test_objects_of_unusual_code_pass(held):
    dataset = Changing(make, held=[held])
    assert_same(list(Loader(dataset, 4, num_workers=2)), list(DataLoader(dataset, 4)))


class Counting:
    def __init__(self):
        self.batches = 0

    def __call__(self, samples):
        self.batches += 1
        return torch.tensor(samples)


def counting():
    batches = 0

    def collate(samples):
        nonlocal batches
        batches += 1
        return torch.tensor(samples)

    return collate


BATCHES = 0


def count_globally(samples):
    global BATCHES
    BATCHES += 1
    return torch.tensor(samples)


@pytest.mark.parametrize(
    ("collate_fn", "path"),
    [
        (Counting(), "collate_fn.batches"),
        (counting(), "collate_fn's batches"),
        (count_globally, "BATCHES"),
        (Counting().__call__, "collate_fn.__self__.batches"),
    ],
    ids=["an object", "a closure", "a global", "a method"],
)
def test_what_a_collate_function_changes_is_named(collate_fn, path, caplog):
    [said] = lines(caplog, Changing(nothing), collate_fn=collate_fn)
    assert f"samples of Changing change {path}: each" in said


class Cached(Dataset):
    """Keeps what it made."""

    def __init__(self, cache, make):
        self.cache, self.make, self.made = cache, make, []

    def __len__(self):
        return 40

    def __getitem__(self, index):
        os.getpid()
        if index not in self.cache if isinstance(self.cache, dict) else self.cache[index] is None:
            self.made.append(index)
            self.cache[index] = self.make(index)
        kept = self.cache[index]
        if isinstance(kept, str | dict):
            return kept
        return kept.clone() if torch.is_tensor(kept) else torch.tensor(np.array(kept))


def picture(index):
    return PIL.Image.new("L", (8, 8), index)


def array(index):
    return np.full(40, index) + np.random.rand(40)


CACHES = {
    "a dict": (dict, array),
    "a list": (lambda: [None] * 40, array),
    "a long list": (lambda: [None] * 5_000, lambda index: torch.full((60,), index)),
    "a long dict": (lambda: dict.fromkeys(range(100, 3_000)), array),
    "pictures": (dict, picture),
    "an ordered dict": (collections.OrderedDict, array),
    "texts": (dict, lambda index: f"{index:1000}"),
    "lists of numbers": (dict, lambda index: [index] * 40),
    "records": (dict, lambda index: {"ids": [index] * 20, "text": "abc"}),
}


@pytest.mark.parametrize("within", [False, True], ids=["", "in a Subset"])
@pytest.mark.parametrize(("cache", "make"), CACHES.values(), ids=CACHES)
def test_a_cache_is_kept_for_the_next_epoch(cache, make, within, caplog):
    """As with torch's default: each sample is made once, in whatever epoch it comes first."""
    dataset = Cached(cache(), make)
    loader = Loader(Subset(dataset, range(39, 3, -1)) if within else dataset, 4)
    with caplog.at_level(logging.INFO, "fastload"):
        epochs = [list(loader) for _ in range(3)]
    shown = [repr(each) for each in epochs]
    assert shown[1:] == shown[:1] * 2
    assert sorted(dataset.made) == sorted(range(4, 40) if within else range(40))
    [said] = [each.getMessage() for each in caplog.records if "cache" in each.getMessage()]
    assert said.endswith(
        "samples put data into dataset.cache, which a worker would lose with each epoch"
    )


class Preallocated(Dataset):
    """Keeps what it made in the rows of an array, until it is told to read them."""

    def __init__(self, rows):
        self.rows, self.is_full = rows, False

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        os.getpid()
        if not self.is_full:
            self.rows[index] = index + 1
        return self.rows[index].copy() if isinstance(self.rows, np.ndarray) else self.rows[index]


ROWS = {
    "a tensor": lambda: torch.zeros(40, 3),
    "an array": lambda: np.zeros((40, 600)),
    "a view": lambda: np.zeros((3, 40)).T,
    "of a tensor": lambda: torch.zeros(40, 2).numpy(),
}


@pytest.mark.parametrize("make", ROWS.values(), ids=ROWS)
def test_rows_that_were_filled_are_those_of_the_next_epoch(make, caplog):
    dataset = Preallocated(make())
    loader = Loader(dataset, 4)
    with caplog.at_level(logging.INFO, "fastload"):
        first = list(loader)
        dataset.is_full = True
        assert_same(list(loader), first)
    assert dataset.rows[:, 0].tolist() == list(range(1, 41))
    assert (
        "samples put data into dataset.rows, which a worker would lose with each epoch"
        in caplog.text
    )


class Scratch(Preallocated):
    """Makes its samples in a buffer, counts how often each was made, and sums them up."""

    def __init__(self, rows):
        super().__init__(rows)
        self.buffer, self.seen, self.sums = np.zeros((9, 600)), np.zeros(40, int), np.zeros(7)

    def __getitem__(self, index):
        self.buffer[:] = index
        self.seen[index] += 1
        self.sums += index
        return self.buffer.copy()


@pytest.mark.parametrize(
    "make",
    [lambda: Preallocated(torch.zeros(40, 3).share_memory_()), lambda: Scratch(np.zeros((40, 3)))],
    ids=["shared", "scratch"],
)
def test_other_rows_that_are_written_to_leave_samples_to_workers(make, caplog):
    dataset = make()
    with caplog.at_level(logging.INFO, "fastload"):
        iterator = iter(Loader(dataset, 4))
        assert len([next(iterator) for _ in range(5)]) == 5
    assert type(iterator) is ProcessIter
    assert "put data" not in caplog.text


MADE = []


@functools.lru_cache
def made(index):
    MADE.append(index)
    return np.full(40, index)


class OfFunction(Cached):
    def __init__(self):
        pass

    def __getitem__(self, index):
        os.getpid()
        return torch.tensor(made(index))


class OfHelper(Cached):
    def __init__(self):
        self.store = Cached({}, array)

    def __getitem__(self, index):
        return self.store[index]


def test_a_cache_of_a_function_is_kept():
    loader = Loader(OfFunction(), 4)
    epochs = [torch.cat(list(loader)) for _ in range(3)]
    assert all(epoch.equal(epochs[0]) for epoch in epochs)
    assert sorted(MADE) == list(range(40))


def test_a_cache_of_what_the_dataset_holds_is_kept():
    dataset = OfHelper()
    loader = Loader(dataset, 4)
    epochs = [torch.cat(list(loader)) for _ in range(3)]
    assert all(epoch.equal(epochs[0]) for epoch in epochs)
    assert sorted(dataset.store.made) == list(range(40))


class CachedStream(IterableDataset):
    def __init__(self):
        self.cache, self.made = [], []

    def __iter__(self):
        if not self.cache:
            for index in range(12):
                os.getpid()
                self.made.append(index)
                self.cache.append(torch.full((100,), index))
                yield self.cache[-1]
        else:
            yield from self.cache


def test_a_stream_keeps_its_cache():
    dataset = CachedStream()
    loader = Loader(dataset, 4)
    epochs = [torch.cat(list(loader))[:, 0].tolist() for _ in range(3)]
    assert epochs == [list(range(12))] * 3
    assert dataset.made == list(range(12))


def test_a_cache_of_small_things_is_left_to_workers(caplog):
    """What takes long may be made again for each sample."""
    dataset = Changing(lambda data, index: data.cache.update({index: np.zeros(2)}), cache={})
    with caplog.at_level(logging.INFO, "fastload"):
        assert len(list(Loader(dataset, 6, collate_fn=Wide()))) == 2
    said = [each.getMessage() for each in caplog.records]
    assert sum("each worker process changes a copy" in each for each in said) == 1
    assert not any("which a worker would lose with each epoch" in each for each in said)


class Wide:
    def __call__(self, samples):
        os.getpid()
        return torch.zeros(len(samples), 1000)


@pytest.mark.parametrize(
    "options", [{"num_workers": 2}, {"worker_init_fn": str}, {"lane": "process"}]
)
def test_workers_that_are_asked_for_keep_caches_of_their_own(options):
    dataset = Cached({}, array)
    loader = Loader(dataset, 4, **options)
    assert [len(torch.cat(list(loader))) for _ in range(2)] == [40, 40]
    assert not dataset.made
