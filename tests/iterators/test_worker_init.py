"""`worker_init_fn` where no Python runs in workers; and the warning of too many of them."""

import functools
import logging
import warnings
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import fastload

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


def test_auto_does_not_warn_of_its_own_number():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(fastload.Loader(ROWS))
