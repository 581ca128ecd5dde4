"""Tuning of worker processes and threads: what is measured, and that their number follows it."""

import time
from collections import UserString
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

import fastload
from fastload import _lib
from fastload.iterators.cost import Cost, Watch
from fastload.iterators.paced import Pace, batch_bytes
from fastload.tune import online
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.keyed import LANES, Noisy, mixed
from tests.shared.keyed import auto as loader_of
from tests.shared.processes import FORKS

pytestmark = [MANY_WORKERS, FORKS]


@pytest.fixture
def quick(monkeypatch):
    """Windows of a few batches, in place of two seconds."""
    monkeypatch.setattr(online, "WINDOW_S", 0.01)
    monkeypatch.setattr(online, "WINDOW_BATCHES", 6)


def auto(dataset: Any, number: int, **arguments: Any) -> fastload.Loader[Any]:
    """Returns a loader under AUTO that is tuned."""
    return loader_of(dataset, number, **{"tune": True, **arguments})


class Waiting(Dataset[int]):
    """Samples from a store far away."""

    def __init__(self, seconds: float, count: int) -> None:
        self.seconds, self.count = seconds, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        time.sleep(self.seconds)
        return index


def measured(monkeypatch: Any, **figures: float) -> None:
    """Has every window say the same, whatever the machine does."""
    given = {"elapsed_s": 2, "batches": 30, "samples": 30, "memory_share": 0.1, **figures}
    monkeypatch.setattr(Pace, "window", lambda *_, **__: _lib.Window(**given))


@pytest.mark.parametrize("lane", LANES)
def test_samples_that_wait_get_more_workers(quick, monkeypatch, lane):
    measured(monkeypatch, step_s=0.01, wait_s=0.06, work_s=0.05, cpu_s=0.001)
    loader = auto(Waiting(0.01, 60), 1, batch_size=1, lane=lane)
    iterator = iter(loader)
    assert [int(batch) for batch in iterator] == list(range(60))
    assert max(change.new.workers for change in loader.tuner.history) >= 6
    again = iter(loader)
    assert (again._later or len(again._active)) == iterator._num_workers > 1
    assert again._depth == loader.tuner.depth
    assert loader.stats()["workers"] == loader.tuner.workers


@pytest.mark.parametrize("lane", LANES)
def test_a_training_that_never_waits_gets_fewer_workers(quick, monkeypatch, lane):
    measured(monkeypatch, step_s=0.06, wait_s=0, work_s=0.001, cpu_s=0.001, least_ready=4)
    loader = auto(Waiting(0.005, 60), 3, batch_size=1, lane=lane)
    iterator = iter(loader)
    assert [int(batch) for batch in iterator] == list(range(60))
    assert loader.tuner.workers == 1
    assert len(iterator._active) == 1


@pytest.mark.parametrize("lane", LANES)
def test_batches_do_not_depend_on_it(quick, lane):
    batches = []
    for tuned in (True, False):
        torch.manual_seed(0)
        loader = auto(
            Noisy(), 2, batch_size=1, shuffle=True, tune=tuned, lane=lane, collate_fn=mixed
        )
        batches.append([batch for _ in range(3) for batch in loader])
        assert (loader.tuner is not None) == tuned
    assert_same(*batches)


@pytest.mark.parametrize("lane", LANES)
def test_a_number_that_the_user_set_is_kept(quick, lane):
    loader = fastload.Loader(Waiting(0.001, 60), 1, num_workers=1, lane=lane)
    iterator = iter(loader)
    assert len(list(iterator)) == 60
    assert loader.tuner is None
    assert iterator._num_workers == 1


def test_tuning_goes_on_from_numbers_set_meanwhile(quick):
    loader = auto(Noisy(), 1)
    iterator = iter(loader)
    next(iterator)
    iterator.set_workers(2)
    iterator.set_depth(5)
    assert (loader.tuner.workers, loader.tuner.depth) == (2, 5)
    list(iterator)


@pytest.mark.parametrize("lane", LANES)
def test_one_worker_is_started_in_a_call(lane):
    iterator = iter(auto(Noisy(), 1, batch_size=1, lane=lane))
    next(iterator)
    iterator.set(4, 8)
    assert len(iterator._active) == 1
    numbers = []
    for _ in range(4):
        next(iterator)
        numbers.append(len(iterator._active))
    assert numbers == [2, 3, 4, 4]
    iterator.set(2, 4)
    assert len(iterator._active) == 2


def test_a_start_that_fails_is_said_and_nothing_else(monkeypatch, caplog):
    loader = auto(Noisy(), 1, batch_size=1)
    iterator = iter(loader)
    next(iterator)
    with monkeypatch.context() as patch:
        error = BlockingIOError(11, "Resource temporarily unavailable")
        patch.setattr(iterator, "_start_worker", lambda *_: (_ for _ in ()).throw(error))
        iterator.set(4, 8)
        for _ in range(3):
            next(iterator)
    assert "no more than 1 worker processes can be started: [Errno 11]" in caplog.text
    assert len(caplog.records) == 1
    assert loader.tuner.workers == 1
    assert len(list(iterator)) == 37


@pytest.mark.parametrize("lane", LANES)
def test_a_window_is_what_was_measured(lane):
    iterator = iter(auto(Waiting(0.02, 40), 1, batch_size=2, lane=lane))
    next(iterator)
    iterator.window(0.0, 0.5)
    for _ in range(4):
        time.sleep(0.1)
        next(iterator)
    window = iterator.window(0.0, 0.5)
    assert window.batches == 4
    assert 0.1 <= window.step_s < 1
    assert window.elapsed_s >= 0.4
    assert window.rate == pytest.approx(8 / window.elapsed_s)
    assert iterator.window(0.0, 0.5).batches == 0


def test_worker_processes_are_weighed():
    iterator = iter(auto(Noisy(), 2))
    assert 1e5 < iterator._worker_bytes() < 1e9
    assert len(list(iterator)) == 11


def test_letters_that_have_come_are_counted():
    iterator = iter(auto(Noisy(), 1, batch_size=1, shuffle=True))
    iterator.set_depth(5)
    next(iterator)  # the number of batches within the budget is unknown until one has come
    end = time.monotonic() + 10
    while iterator._ready() < 5 and time.monotonic() < end:
        time.sleep(0.01)
    assert iterator._ready() == 5
    assert len(list(iterator)) == 40


def test_a_watch_counts_what_is_done_and_no_rest():
    watch = Watch()
    time.sleep(0.05)
    watch.run()
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    watch.rest()
    time.sleep(0.05)
    watch.run()
    time.sleep(0.02)
    spent = watch.lap()
    assert 0.02 <= spent.cpu_s <= spent.wall_s
    assert spent.wall_s >= 0.04
    assert watch.lap().cpu_s < 0.02


def test_a_pace_without_batches_is_a_window():
    pace = Pace()
    window = pace.window(worker_bytes=0, memory_share=0.5)
    assert (window.batches, window.rate, window.step_s) == (0, 0, 0)


def test_costs_are_means_over_what_was_made():
    pace = Pace()
    for wall_s in (1.0, 3.0):
        pace.made(Cost(wall_s, 1.0))
    pace.called(2)
    pace.returned()
    window = pace.window(worker_bytes=5, memory_share=0.5, free_share=0.5)
    assert window.batches == 1
    assert window.step_s == 0


def test_bytes_of_a_batch():
    batch = {"a": torch.zeros(3, dtype=torch.int64), "b": [torch.zeros(2).numpy(), ("x", 4)]}
    assert batch_bytes(batch) == 24 + 8


class Odd(UserString):
    """A text that is a sequence of texts of its own kind."""


def test_sparse_tensors_and_texts_of_other_classes_weigh_nothing():
    assert batch_bytes([torch.eye(3).to_sparse(), Odd("text"), torch.zeros(2)]) == 8


def sparse(samples: list[Any]) -> Any:
    return Odd("sparse"), torch.stack(
        [torch.eye(3).to_sparse() * int(sample) for sample in samples]
    )


@pytest.mark.parametrize("tuned", [True, False])
def test_batches_that_cannot_be_weighed_come_as_from_torch(tuned):
    options = {"batch_size": 1, "collate_fn": sparse}
    loader = auto(Waiting(0, 40), 2, lane="threads", tune=tuned, **options)
    expected = torch.utils.data.DataLoader(Waiting(0, 40), **options)
    for (text, got), (_, wanted) in zip(loader, expected, strict=True):
        assert text == "sparse"
        assert torch.equal(got.to_dense(), wanted.to_dense())


@pytest.mark.parametrize("lane", LANES)
def test_time_between_epochs_is_not_waiting(lane):
    loader = auto(Waiting(0.001, 10), 1, batch_size=1, lane=lane, persistent_workers=True)
    list(loader)
    time.sleep(1)
    iterator = iter(loader)
    next(iterator)
    assert iterator.window(0.0, 0.5).elapsed_s < 1
    list(iterator)
