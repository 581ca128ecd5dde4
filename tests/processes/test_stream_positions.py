"""Iterable datasets whose position lies in what they hold: each epoch goes on from the last one, as in torch's default.

Torch's default is the oracle: batches are equal, over three epochs.
"""

import array
import collections
import functools
import io
import itertools
import logging
import mmap
import os
import random
import threading
import time
import types
from contextvars import ContextVar

import numpy as np
import pytest
import torch
from torch.utils.data import ChainDataset, DataLoader, IterableDataset

from fastload import Loader
from fastload.iterators.cost import Evidence
from fastload.processes.changes import Changes
from fastload.processes.watched import Container

SHARED = [0]
POSITION = 0


class Stream(IterableDataset):
    """Yields twelve values for a position that an epoch leaves in `held`."""

    def __init__(self, held, advance):
        self.held, self.advance = held, advance

    def __iter__(self):
        for value in range(12):
            os.getpid()
            yield 100 * int(self.advance(self.held)) + value


class Reader:
    def __init__(self):
        self.at = 0

    def next(self):
        self.at += 1
        return self.at


class Slotted(Reader):
    __slots__ = ("position",)

    def __init__(self):
        self.position = 0

    def next(self):
        self.position += 1
        return self.position


class Unset:
    """Has no position before its first use."""

    def __init__(self):
        self.at = None

    def next(self):
        self.at = 1 if self.at is None else self.at + 1
        return self.at


class Missing:
    def next(self):
        self.at = getattr(self, "at", 0) + 1
        return self.at


class Endless:
    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        return self.at


class Counts(dict):
    pass


def count(held):
    held["epoch"] += 1
    return held["epoch"]


def begin_once(held):
    if held[0] is None:
        held[0] = itertools.count(1)
    return next(held[0])


def begin_with(held):
    if not hasattr(held, "values"):
        held.values = (7 * each for each in itertools.count(1))
    return next(held.values)


def rotate(held):
    held.rotate()
    return held[0]


def add(held):
    held.add(len(held))
    return len(held)


def add_one(held):
    held[0] += 1
    return held[0]


def advance_namespace(held):
    held.at += 1
    return held.at


def advance_class(held):
    held.position += 1
    return held.position


def advance_global(_):
    global POSITION
    POSITION += 1
    return POSITION


def advance_shared(_):
    SHARED[0] += 1
    return SHARED[0]


def closure():
    at = 0

    def advance(_):
        nonlocal at
        at += 1
        return at

    return advance


def mapped():
    memory = mmap.mmap(-1, 100)
    memory[:] = bytes(range(100))
    return memory


def threaded():
    local = threading.local()
    local.at = 0
    return local


def advance_context(held):
    held.set(held.get() + 1)
    return held.get()


class Position:
    position = 0


def of_class():
    Position.position = 0
    return Position


STREAMS = {
    "a reader": (Reader, lambda: Reader.next),
    "a reader without a position": (Unset, lambda: Unset.next),
    "a reader without the attribute": (Missing, lambda: Missing.next),
    "an iterator that is made once": (lambda: [None], lambda: begin_once),
    "a generator that is made once": (types.SimpleNamespace, lambda: begin_with),
    "slots": (Slotted, lambda: Slotted.next),
    "an iterator": (Endless, lambda: next),
    "an iterator of C code": (lambda: np.arange(100).flat, lambda: next),
    "a dict": (lambda: {"epoch": 0}, lambda: count),
    "an ordered dict": (lambda: collections.OrderedDict(epoch=0), lambda: count),
    "a class made from dict": (lambda: Counts(epoch=0), lambda: count),
    "a dict in a list in a tuple": (
        lambda: ([{"epoch": 0}],),
        lambda: lambda held: count(held[0][0]),
    ),
    "a list": (lambda: list(range(100)), lambda: list.pop),
    "a long list": (lambda: list(range(5_000)), lambda: list.pop),
    "a deque": (lambda: collections.deque(range(7)), lambda: rotate),
    "a set": (set, lambda: add),
    "an array": (lambda: np.zeros(2, int), lambda: add_one),
    "a tensor": (lambda: torch.zeros(2, dtype=torch.int64), lambda: add_one),
    "bytes in memory": (lambda: io.BytesIO(bytes(range(100))), lambda: lambda it: it.read(1)[0]),
    "text in memory": (lambda: io.StringIO("1\n" * 5 + "2\n" * 50), lambda: io.StringIO.readline),
    "a mapped file": (mapped, lambda: mmap.mmap.read_byte),
    "a bytearray": (lambda: bytearray(range(100)), lambda: bytearray.pop),
    "a packed array": (lambda: array.array("i", range(100)), lambda: array.array.pop),
    "a thread's own": (threaded, lambda: advance_namespace),
    "a variable of the context": (lambda: ContextVar("at", default=0), lambda: advance_context),
    "a namespace": (lambda: types.SimpleNamespace(at=0), lambda: advance_namespace),
    "a class": (of_class, lambda: advance_class),
    "a global": (lambda: None, lambda: advance_global),
    "a list of the module": (lambda: None, lambda: advance_shared),
    "a closure": (lambda: None, closure),
    "a partial": (
        lambda: None,
        lambda: functools.partial(lambda reader, _: reader.next(), Reader()),
    ),
}


def fresh(make):
    global POSITION
    POSITION, SHARED[0] = 0, 0
    return make()


def epochs(loader, most=None):
    taken = [list(itertools.islice(loader, most)) for _ in range(3)]
    return [[torch.as_tensor(batch).tolist() for batch in epoch] for epoch in taken]


@pytest.mark.parametrize("most", [None, 2], ids=["whole epochs", "left early"])
@pytest.mark.parametrize(("held", "advance"), STREAMS.values(), ids=STREAMS)
def test_each_epoch_goes_on_from_the_last_one(held, advance, most, caplog):
    expected = epochs(DataLoader(fresh(lambda: Stream(held(), advance())), 4), most)
    loader = Loader(fresh(lambda: Stream(held(), advance())), 4)
    with caplog.at_level(logging.INFO, "fastload"):
        assert epochs(loader, most) == expected
    said = [each.getMessage() for each in caplog.records]
    assert sum("which a worker" in each for each in said) <= 1
    assert not any("each worker process changes a copy" in each for each in said)


class Late(IterableDataset):
    """Goes on only behind its last sample."""

    def __init__(self):
        self.state = {"epoch": 0, "read": 0}

    def __iter__(self):
        order = list(range(12))
        random.Random(self.state["epoch"]).shuffle(order)
        for value in order:
            os.getpid()
            yield value
        self.state["epoch"] += 1


class InFirst(Late):
    """Goes on before its first sample is asked for: `__iter__` is no generator."""

    def __iter__(self):
        self.state["epoch"] += 1
        order = list(range(12))
        random.Random(self.state["epoch"]).shuffle(order)
        return map(abs, order)


class InTheMiddle(Late):
    def __iter__(self):
        for value in range(12):
            self.state["epoch"] += value == 7
            yield value + 100 * self.state["epoch"]


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["", "persistent"])
@pytest.mark.parametrize(
    "make", [Late, InFirst, InTheMiddle, lambda: ChainDataset([Late(), InFirst()])]
)
@pytest.mark.parametrize("size", [4, 5, None])
def test_a_change_is_seen_wherever_it_is_made(make, size, options, caplog):
    expected = epochs(DataLoader(make(), size))
    with caplog.at_level(logging.INFO, "fastload"):
        assert epochs(Loader(make(), size, **options)) == expected
    [said] = [each.getMessage() for each in caplog.records]
    assert "state, and a worker changes a copy" in said


class Long(Late):
    """Has long lists, of which the last one changes behind its first batches."""

    def __init__(self, at):
        self.at = at
        self.lists = [[f"{name}/{number}" for number in range(900)] for name in range(10)]

    def __iter__(self):
        for value in range(200):
            os.getpid()
            if value == self.at:
                self.lists[-1][-1] += "0"
            yield value + 1_000 * len(self.lists[-1][-1])


@pytest.mark.parametrize("at", [0, 64, 120, 199])
def test_a_change_in_long_lists_is_seen_in_the_end(at):
    assert epochs(Loader(Long(at), 4)) == epochs(DataLoader(Long(at), 4))


def test_long_lists_are_looked_at_behind_few_batches(monkeypatch):
    looks = collections.Counter()
    entries = Container._entries
    counted = lambda it: looks.update([it.path]) or entries(it)  # noqa: E731
    changes = Changes(Long(0), None, goes_on=True)
    monkeypatch.setattr(Container, "_entries", counted)
    for _ in range(320):
        assert not changes.changed()
    assert looks["dataset.lists"] == 320
    assert looks["dataset.lists[9]"] == 16 + 19


class Computed(IterableDataset):
    """Takes CPU time for each sample."""

    def __init__(self):
        self.names = ["name"]

    def __iter__(self):
        for value in range(8):
            end_s = time.thread_time() + 0.01
            while time.thread_time() < end_s:
                pass
            yield value


def test_to_look_for_changes_is_no_part_of_a_batch(monkeypatch):
    costs = []
    monkeypatch.setattr(Evidence, "made", lambda _, cost: costs.append(cost))
    monkeypatch.setattr(Changes, "changed", lambda *_, **__: time.sleep(0.2) or "")
    assert len(list(Loader(Computed(), 4))) == 2
    assert len(costs) == 3  # the end, too
    assert all(each.cpu_s - each.sent_s >= 0.04 for each in costs[:2])
    assert max(each.wall_s - each.queued_s for each in costs) < 0.2


class Opens(Late):
    """Changes only what belongs to a process."""

    def __init__(self, path, opened=open):
        self.files, self.current, self.path, self.opened = {}, None, path, opened

    def __iter__(self):
        local = []
        for value in range(12):
            if self.path not in self.files:
                self.files[self.path] = self.opened(self.path)
            local.append(value)
            yield os.getpid()


def test_files_that_are_opened_are_a_workers_own(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    makers = set(torch.cat(list(Loader(Opens(path), 4))).tolist())
    assert os.getpid() not in makers


def test_readers_of_mapped_files_are_a_workers_own(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = str(tmp_path / "arrow")
    table = pa.table({"a": [1, 2]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    stream = Opens(path, lambda path: pa.ipc.open_file(pa.memory_map(path)))
    makers = set(torch.cat(list(Loader(stream, 4))).tolist())
    assert os.getpid() not in makers


@pytest.mark.parametrize("options", [{"num_workers": 1}, {"lane": "process"}])
def test_workers_that_are_asked_for_begin_anew(options):
    """As torch's workers do."""
    expected = epochs(DataLoader(Late(), 4, num_workers=1))
    assert epochs(Loader(Late(), 4, **options)) == expected
