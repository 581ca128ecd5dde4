"""`worker_init_fn`: its errors, where no Python runs in workers, and the warning of too many of them."""

import functools
import gc
import logging
import multiprocessing
import os
import time
import warnings
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fastload
from tests.shared.compare import MANY_WORKERS

ROWS = TensorDataset(torch.arange(4))
ONE = {"num_workers": 1}


def opens_a_file(worker: int, further: int = 0) -> None:
    raise AssertionError


def logged(caplog: pytest.LogCaptureFixture, **arguments: Any) -> list[str]:
    loader = fastload.Loader(ROWS, **ONE, **arguments)
    for _ in range(2):
        list(loader)
    return [each.getMessage() for each in caplog.records]


@pytest.mark.parametrize("function", [opens_a_file, functools.partial(opens_a_file, further=1)])
def test_a_function_that_is_not_called_is_named_once(function, caplog):
    [message] = logged(caplog, worker_init_fn=function)
    assert "opens_a_file is not called" in message
    assert caplog.records[0].levelno == logging.WARNING
    explained = fastload.Loader(ROWS, worker_init_fn=function).explain()
    assert "opens_a_file is not called" in explained


def test_functions_of_libraries_that_only_seed_are_not_mentioned(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning.fabric.utilities.seed import pl_worker_init_function
    from timm.data.loader import _worker_init
    from transformers.trainer_utils import seed_worker

    for function in (
        functools.partial(pl_worker_init_function, rank=0),
        functools.partial(seed_worker, num_workers=1, rank=0),
        functools.partial(_worker_init, worker_seeding="all"),
        None,
    ):
        assert logged(caplog, worker_init_fn=function) == []


def test_a_users_function_of_a_known_name_is_mentioned(caplog):
    def seed_worker(worker: int) -> None:
        raise AssertionError

    assert len(logged(caplog, worker_init_fn=seed_worker)) == 1


def said(kind: Any, **arguments: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(ROWS, num_workers=1000, **arguments)
    return [(each.category, str(each.message), each.filename) for each in caught]


@pytest.mark.parametrize("lane", ["native", "threads", "process"])
def test_the_warning_of_too_many_workers_has_torchs_words(lane):
    """Those that its own test looks for, at the beginning those that filters of projects name."""
    words = "excessive worker creation might get DataLoader running slow or even freeze"
    [theirs] = said(DataLoader)
    [ours] = said(fastload.Loader, lane=lane)
    assert ours[0] is theirs[0] is UserWarning
    for message in (ours[1], theirs[1]):
        assert message.startswith("This DataLoader will create 1000 ")
        assert words in message


def test_the_warning_names_the_line_that_iterates():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = fastload.Loader(ROWS, num_workers=1000, lane="native")
    with pytest.warns(UserWarning, match="worker creation") as caught:
        iter(loader)
    assert caught[0].filename == __file__


def test_auto_does_not_warn_of_its_own_number():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(fastload.Loader(ROWS))


class Numbers(Dataset[int]):
    def __init__(self, length: int = 20) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


def fails(worker: int) -> None:
    time.sleep(0.1 * worker)
    if worker != 1:
        msg = f"worker {worker} cannot begin"
        raise ValueError(msg)


def left() -> int:
    gc.collect()  # workers of iterators that an error holds
    return len(multiprocessing.active_children())


@pytest.mark.parametrize(
    ("method", "kind"),
    [("fork", DataLoader), ("fork", fastload.Loader), ("spawn", fastload.Loader)],
)
def test_an_error_comes_from_next(method, kind):
    options: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": method}
    batches = iter(kind(Numbers(), 2, worker_init_fn=fails, **options))
    with pytest.raises(ValueError, match="worker 0 cannot begin"):
        next(batches)


@pytest.mark.parametrize("kind", [DataLoader, fastload.Loader])
def test_a_program_meets_its_workers_after_iter(kind):
    barrier = multiprocessing.Barrier(3)
    loader = kind(Numbers(), 2, num_workers=2, worker_init_fn=lambda _: barrier.wait(10))
    batches = iter(loader)
    barrier.wait(10)
    assert [batch.tolist() for batch in batches] == [[n, n + 1] for n in range(0, 20, 2)]


@MANY_WORKERS
def test_workers_without_a_batch_are_not_waited_for():
    loader = fastload.Loader(Numbers(2), 2, num_workers=3, worker_init_fn=_sleeps_but_the_first)
    since = time.monotonic()
    batches = iter(loader)
    next(batches)
    assert time.monotonic() - since < 2


def _sleeps_but_the_first(worker: int) -> None:
    time.sleep(3 * (worker > 0))


def test_a_worker_that_ends_in_its_init_function_is_named():
    batches = iter(fastload.Loader(Numbers(), 2, num_workers=2, worker_init_fn=os._exit))
    with pytest.raises(RuntimeError, match="worker"):
        next(batches)


@pytest.mark.parametrize(
    ("kind", "words"), [(DataLoader, ""), (fastload.Loader, ": worker 0 .* is making samples 0, 1")]
)
def test_an_init_function_that_takes_too_long_is_told_in_time(kind, words):
    before = left()
    loader = kind(Numbers(), 2, num_workers=2, timeout=0.5, worker_init_fn=_sleeps_long)
    began_s = time.monotonic()
    with pytest.raises(
        RuntimeError, match=rf"DataLoader timed out after 0\.5 seconds{words}"
    ) as caught:
        list(loader)
    del caught
    assert time.monotonic() - began_s < 10
    assert left() == before


def _sleeps_long(worker: int) -> None:
    time.sleep(30)
