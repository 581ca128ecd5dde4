"""When the threads lane is taken, what is said of it, and what it counts."""

import logging
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    TensorDataset,
    default_collate,
    get_worker_info,
)
from torchvision import transforms

import fastload
from fastload.iterators.learned import Logged
from fastload.threads import ThreadIter
from fastload.threads.meter import Meter
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.threads import Drawn, threads

pytestmark = MANY_WORKERS


def test_threads_can_be_asked_for():
    loader = threads(TensorDataset(torch.arange(6)), num_workers=2, batch_size=4)
    assert isinstance(iter(loader), ThreadIter)
    assert_same(list(loader), list(DataLoader(loader.dataset, batch_size=4)))
    said = loader.explain()
    assert said.startswith("lane: threads (Python threads of this process")
    assert "why: lane='threads'" in said
    assert "workers: 2 threads, as set" in said
    assert "dataset.tensors[0]: torch.Tensor of shape (6,), shared" in said


def test_an_interpreter_without_a_lock_takes_threads(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    loader = fastload.Loader(Drawn(), num_workers=2)
    assert "lane: threads" in loader.explain()
    assert "no global lock" in loader.explain()
    assert isinstance(iter(loader), ThreadIter)
    assert "lane: native" in fastload.Loader(TensorDataset(torch.arange(6))).explain()
    assert "lane: process" in fastload.Loader(Drawn(), lane="process").explain()


def test_a_loader_without_workers_has_no_threads():
    with pytest.raises(ValueError, match="needs num_workers > 0"):
        threads(Drawn(), num_workers=0)


def test_prefetch_factor_is_checked_as_torch_checks_it():
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(threads(Drawn(), num_workers=1, prefetch_factor=0))


def test_batches_are_not_put_into_shared_memory():
    def collate(samples: list[Any]) -> Any:
        assert get_worker_info() is not None
        return default_collate(samples)

    for collate_fn in (None, collate, fastload.PadCollate()):
        for batch in threads(Drawn(), num_workers=1, batch_size=4, collate_fn=collate_fn):
            assert not batch["torch"].is_shared()


def test_batches_are_made_ahead_as_torch_does():
    class Counted(torch.utils.data.Sampler[int]):
        asked = 0

        def __iter__(self) -> Any:
            for index in range(20):
                self.asked += 1
                yield index

    def asked(kind: Any, **arguments: Any) -> list[int]:
        sampler = Counted()
        loader = kind(Drawn(), sampler=sampler, num_workers=2, prefetch_factor=3, **arguments)
        return [sampler.asked for _ in iter(loader)]

    assert asked(threads) == asked(DataLoader, multiprocessing_context="fork")


def test_a_seam_runs_in_threads(monkeypatch, tmp_path):
    from PIL import Image
    from torchvision.datasets import ImageFolder

    (tmp_path / "a").mkdir()
    for number in range(4):
        pixels = np.full((9, 9, 3), number * 20, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "a" / f"{number}.jpg")
    steps = transforms.Compose([transforms.ToTensor(), transforms.Lambda(torch.neg)])
    dataset = ImageFolder(tmp_path, steps)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    loader = fastload.Loader(dataset, batch_size=2, num_workers=2)
    assert "in worker threads" in loader.explain()
    assert_same(list(loader), list(DataLoader(dataset, batch_size=2)))


def test_counters():
    loader = threads(Drawn(), num_workers=2)
    list(loader)
    stats = loader.stats()
    assert set(stats) == {"batches", "wait_s", "interpreter_wait_ms"}
    assert stats["batches"] == 23
    assert stats["wait_s"] >= 0


def test_harm_to_the_training_thread_is_said_once(caplog):
    caplog.set_level(logging.INFO, "fastload")
    meter = Meter(Logged())
    for _ in range(20):
        meter._take_back(0.004)
    assert meter.read()["interpreter_wait_ms"] == pytest.approx(4.0)
    messages = [each.getMessage() for each in caplog.records]
    assert len(messages) == 1
    assert "waits 4.0 ms for the interpreter" in messages[0]


def test_many_threads_are_warned_of():
    with pytest.warns(UserWarning, match="Python worker threads"):
        threads(Drawn(), num_workers=999)


def test_a_persistent_iterator_keeps_its_threads():
    loader = threads(Drawn(), num_workers=2, persistent_workers=True)
    first = iter(loader)
    workers = first._crew.workers
    next(first)
    again = iter(loader)
    assert again is first
    assert len(list(again)) == 23
    assert all(worker.thread.is_alive() for worker in workers)
    del first, again, loader
    assert not any(worker.thread.is_alive() for worker in workers)


class Asked(Drawn):
    """Says how its thread computes."""

    def __getitem__(self, index: int) -> Any:
        with np.errstate():
            errors = np.geterr()["divide"]
        return torch.is_grad_enabled(), errors


def test_workers_inherit_how_the_iterating_thread_computes():
    with torch.no_grad(), np.errstate(divide="raise"):
        iterator = iter(threads(Asked(), num_workers=1, batch_size=None))
    assert next(iterator) == [False, "raise"]
    assert torch.is_grad_enabled()
    with torch.inference_mode():
        batch = next(iter(threads(torch.ones(2), num_workers=1)))
    assert batch.is_inference()
