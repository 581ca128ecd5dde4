"""Worker threads that raise, hang or are left: what is said, and that they end."""

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from tests.shared.compare import MANY_WORKERS, outcomes
from tests.shared.threads import Drawn, threads

pytestmark = MANY_WORKERS


BAD = ValueError("bad")


class TwoError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


class Failing(Dataset[Any]):
    """Raises for some samples."""

    def __init__(self, error: Any) -> None:
        self.error = error

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        if index == 5:
            raise self.error
        return index


@pytest.mark.parametrize(
    "error", [ValueError("bad"), KeyError("key"), OSError(2, "gone"), TwoError(1, 2)], ids=repr
)
def test_errors_are_raised_as_torch_raises_them(error):
    arguments = {"batch_size": 2, "num_workers": 2}
    got = outcomes(threads(Failing(error), **arguments))
    want = outcomes(DataLoader(Failing(error), multiprocessing_context="fork", **arguments))
    assert [type(each) for each in got] == [type(each) for each in want]
    assert [each.tolist() for each in got[:2] + got[3:]] == [[0, 1], [2, 3], [6, 7]]
    assert str(got[2]).splitlines()[0] == str(want[2]).splitlines()[0].replace("process", "thread")
    assert "__getitem__" in str(got[2])
    assert got[2].__notes__ == ["while worker 0 was making sample 5"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_would_end_a_process_is_an_error_of_its_batch(error):
    got = outcomes(threads(Failing(error), batch_size=2, num_workers=2))
    assert type(got[2]) is RuntimeError
    assert f"the dataset's code raised {type(error).__name__}" in str(got[2])
    assert len(got) == 4


class Listed(Failing):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in indices]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield 0
        raise BAD


class Unready(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise BAD


def bad(_: Any) -> Any:
    raise BAD


@pytest.mark.parametrize(
    ("dataset", "arguments", "note"),
    [
        (Listed(ValueError("bad")), {}, "making samples [4, 5]"),
        (Failing(ValueError("bad")), {"batch_size": None}, "making sample 5"),
        (Failing(None), {"collate_fn": bad}, "collating samples [0, 1]"),
        (Failing(None), {"worker_init_fn": bad}, "running worker_init_fn"),
        (Endless(), {"batch_size": 1}, "iterating the dataset"),
        (Unready(), {"batch_size": 1}, "starting to iterate the dataset"),
    ],
)
def test_notes_say_what_the_worker_did(dataset, arguments, note):
    got = outcomes_until_error(threads(dataset, **{"num_workers": 1, "batch_size": 2, **arguments}))
    assert got.__notes__ == [f"while worker 0 was {note}"]


def outcomes_until_error(loader: Any) -> Exception:
    with pytest.raises(ValueError, match="bad") as caught:
        list(loader)
    return caught.value.with_traceback(None)  # that holds the iterator, and this its threads


class Waiting(Dataset[Any]):
    """Waits in some samples until it is let go."""

    def __init__(self, until: threading.Event, first: int = 0) -> None:
        self.until = until
        self.first = first

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        if index >= self.first:
            self.until.wait()
        return index


def test_a_timeout_names_workers_and_samples():
    until = threading.Event()
    iterator = iter(threads(Waiting(until, 1), batch_size=4, num_workers=1, timeout=0.2))
    with pytest.raises(
        RuntimeError, match=r"timed out after 0.2 seconds: worker 0 is making sample 1"
    ):
        next(iterator)
    until.set()
    del iterator


def test_leaving_early_waits_for_the_sample_in_hand_only():
    until = threading.Event()
    iterator = iter(threads(Waiting(until, 3), batch_size=50, num_workers=1))
    worker = iterator._crew.workers[0]
    while worker.does() != "making sample 3":
        time.sleep(0.001)
    threading.Timer(0.05, until.set).start()
    del iterator
    assert not worker.thread.is_alive()
    assert worker.does() == "making sample 3"


def test_a_thread_that_does_not_end_is_named(caplog, monkeypatch):
    monkeypatch.setattr("fastload.threads.crew._PATIENCE_S", 0.05)
    until = threading.Event()
    iterator = iter(threads(Waiting(until), num_workers=2))
    workers = iterator._crew.workers
    while not all("making" in worker.does() for worker in workers):
        time.sleep(0.001)
    del iterator
    messages = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(messages) == 2
    assert "fastload-worker-1 is still making sample" in messages[1]
    assert __file__ in messages[1] or "threading.py" in messages[1]
    until.set()
    for worker in workers:
        worker.thread.join()


def test_a_consumer_that_is_interrupted_can_go_on():
    loader = threads(Drawn(), num_workers=1)
    iterator = iter(loader)
    iterator._get_data, get = interrupted, iterator._get_data
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    iterator._get_data = get
    assert len(list(iterator)) == 23


def interrupted() -> Any:
    raise KeyboardInterrupt


def test_many_starts_leave_nothing():
    before = set(threading.enumerate())
    dataset = torch.utils.data.TensorDataset(torch.arange(4))
    for _ in range(50):
        next(iter(threads(dataset, num_workers=2)))
    assert set(threading.enumerate()) <= before
