"""Workers that were started or sent away while an epoch runs: what fails is named, nothing is left."""

import multiprocessing
import os
import random
import signal
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, get_worker_info

from tests.processes.test_process_failures import exhaust, left
from tests.shared.keyed import LANES, auto
from tests.shared.processes import OUR_PROCESSES

pytestmark = OUR_PROCESSES


def until(condition: Any) -> bool:
    """Waits some seconds for a condition."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


class Rows(Dataset[Any]):
    """Rows that lie in slots, of which the test makes some fail."""

    fails: Any = None

    def __len__(self) -> int:
        return 90

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        if self.fails is not None and info is not None and info.id == 2:
            self.fails()
        return torch.full((3000,), index)


def test_workers_that_are_sent_away_leave_nothing():
    before = left()
    iterator = iter(auto(Rows(), 1, batch_size=1, persistent_workers=True, lane="process"))
    next(iterator)
    _, descriptors, _ = left()
    for _ in range(3):
        iterator.set_workers(4)
        for _ in range(8):
            next(iterator)
        assert left()[0] == 4
        iterator.set_workers(1)
        for _ in range(9):
            next(iterator)
        assert until(lambda: left()[0] == 1)
        next(iterator)
        assert left()[1] == descriptors
        assert len(iterator._workers) <= 7
    kept = [next(iterator) for _ in range(5)]
    iterator.set_workers(3)
    exhaust(iterator)
    iterator.set_workers(1)
    assert until(lambda: left()[0] == 1)
    assert all(int(batch[0, 0]) == int(batch[0, -1]) for batch in kept)
    del iterator, kept
    assert left() == before


def end(how: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL) if how == "killed" else os._exit(3)


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_worker_that_was_started_later_dies(how: str):
    dataset = Rows()
    dataset.fails = lambda: end(how)
    before = left()
    loader = auto(dataset, 1, batch_size=2)
    iterator = iter(loader)
    next(iterator)
    iterator.set_workers(3)
    ending = "was killed by SIGKILL" if how == "killed" else "ended with exit code 3"
    with pytest.raises(RuntimeError, match=f"worker 2 {ending} while it made batch .*, samples "):
        list(iterator)
    del iterator
    assert left() == before
    dataset.fails = None
    again = iter(loader)
    next(again)
    assert len(again._active) == 3
    assert len(list(again)) == 44
    del again, loader
    assert left() == before


def test_a_worker_dies_that_is_to_leave_but_has_work():
    dataset = Rows()
    dataset.fails = lambda: time.sleep(0.3) or end("killed")
    iterator = iter(auto(dataset, 3, batch_size=2))
    next(iterator)
    iterator.set_workers(1)
    with pytest.raises(RuntimeError, match="worker 2 was killed by SIGKILL while it made batch 2"):
        list(iterator)


def test_errors_come_in_the_place_of_their_batch():
    dataset = Rows()
    dataset.fails = {}.popitem
    iterator = iter(auto(dataset, 2, batch_size=1, lane="process"))
    got: list[Any] = []
    while len(got) < 90:
        if len(got) % 10 == 0:
            iterator.set_workers(3 - len(got) // 10 % 2)
        try:
            got.append(int(next(iterator)[0, 0]))
        except KeyError as error:
            got.append(error)
    errors = {n: each for n, each in enumerate(got) if isinstance(each, KeyError)}
    assert {n: n for n in range(90)} == {n: n if n in errors else got[n] for n in range(90)}
    assert errors
    for n, error in errors.items():
        assert error.__notes__ == [f"while worker 2 made sample {n}"]
    with pytest.raises(StopIteration):
        next(iterator)


def test_timeout_names_workers_that_were_started_later():
    dataset = Rows()
    dataset.fails = lambda: time.sleep(600)
    iterator = iter(auto(dataset, 1, batch_size=1, timeout=1))
    iterator.set_workers(4)
    with pytest.raises(
        RuntimeError,
        match=r"timed out after 1 seconds: worker 2 \(pid \d+\) is making sample \d+; raise timeout",
    ):
        list(iterator)
    iterator._end_workers()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_workers_that_are_spawned():
    resource_tracker.ensure_running()  # which stays
    before = left()
    loader = auto(Rows(), 1, batch_size=2, multiprocessing_context="spawn")
    iterator = iter(loader)
    got = [next(iterator)]
    iterator.set_workers(2)
    got += [next(iterator) for _ in range(9)]
    iterator.set_workers(1)
    got += list(iterator)
    assert [int(batch[0, 0]) for batch in got] == list(range(0, 90, 2))
    del iterator, got
    assert left() == before


def test_a_fork_that_the_system_refuses(monkeypatch):
    iterator = iter(auto(Rows(), 1, batch_size=2))
    process = type(iterator._workers[0]).__base__
    with monkeypatch.context() as patch:
        patch.setattr(process, "start", lambda _: (_ for _ in ()).throw(BlockingIOError(11, "no")))
        with pytest.raises(BlockingIOError):
            iterator.set_workers(3)
    assert len(iterator._active) == 1
    first = next(iterator)
    iterator.set_workers(2)
    assert [int(batch[0, 0]) for batch in iterator] == list(range(2, 90, 2))
    assert int(first[0, 0]) == 0


def test_a_forked_child_is_refused():
    iterator = iter(auto(Rows(), 1, batch_size=2))
    child = os.fork()
    if child == 0:
        try:
            iterator.set_workers(2)
        except RuntimeError as error:
            os._exit(0 if "call iter(loader) in this one" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 45


def test_threads_that_are_sent_away_leave_nothing():
    def workers() -> int:
        return sum(each.name.startswith("fastload-worker") for each in threading.enumerate())

    plain = np.random.rand, random.random, type(random._inst)
    iterator = iter(auto(Rows(), 1, batch_size=1, lane="threads", persistent_workers=True))
    for _ in range(3):
        iterator.set_workers(4)
        for _ in range(8):
            next(iterator)
        assert workers() == 4
        iterator.set_workers(1)
        for _ in range(9):
            next(iterator)
        assert until(lambda: workers() == 1)
        assert len(iterator._crew.workers) <= 7
    del iterator
    assert workers() == 0
    assert (np.random.rand, random.random, type(random._inst)) == plain


class Held(Rows):
    def __init__(self, path: Path) -> None:
        self.file = path.open("w+")


def test_threads_that_share_a_handle_are_one(tmp_path):
    dataset = Held(tmp_path / "a")
    iterator = iter(auto(dataset, 2, batch_size=2, lane="threads"))
    with pytest.raises(ValueError, match=r"set_workers\(2\): this dataset can have 1 at most"):
        iterator.set_workers(2)
    assert len(list(iterator)) == 45
    dataset.file.close()


class Changing(Rows):
    """A dataset that the training changes while it is loaded."""

    def __init__(self) -> None:
        self.offset = 1
        self.inner = Rows()
        self.inner.steps = [1, {"two": {3}}]
        self.first = self

    def __getitem__(self, index: int) -> Any:
        one, two = self.inner.steps
        assert one == 1
        assert two == {"two": {3}}
        assert not hasattr(self, "added")
        return index + self.offset


@pytest.mark.parametrize("lane", LANES)
def test_workers_started_later_have_the_dataset_of_the_start(lane: str):
    dataset = Changing()
    loader = auto(dataset, 1, batch_size=1, lane=lane)
    iterator = iter(loader)
    dataset.offset = 1000
    dataset.added = 5
    dataset.inner.steps[1]["two"].add(4)
    dataset.inner.steps[0] = 8
    iterator.set_workers(3)
    assert [int(batch) for batch in iterator] == list(range(1, 91))
    assert [dataset.offset, dataset.added, dataset.inner.steps] == [1000, 5, [8, {"two": {3, 4}}]]


def test_no_children_are_left():
    assert multiprocessing.active_children() == []
