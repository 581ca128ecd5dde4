"""Under AUTO the consumer makes the batches of workers that hang, such as those forked beside a lock that is held."""

import logging
import os
import re
import threading
import time
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from fastload.processes import worker_ends
from tests.shared.compare import assert_same
from tests.shared.keyed import auto
from tests.shared.processes import OUR_PROCESSES

pytestmark = [*OUR_PROCESSES, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "fastload")
    monkeypatch.setattr(worker_ends, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(worker_ends, "_OF_LONGEST", 5)


class Hanging(Dataset[int]):
    """Hangs in worker processes from a sample on."""

    def __init__(self, first: int) -> None:
        self.first, self.pid = first, os.getpid()

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        time.sleep(0.001)
        if index >= self.first and os.getpid() != self.pid:
            threading.Event().wait()
        return index


class Slow(Hanging):
    """Is at work for a long time."""

    def __getitem__(self, index: int) -> int:
        for _ in range(30 if index >= self.first else 0):
            time.sleep(0.02)
        return index


def epochs(kind: Any, dataset: Any, **arguments: Any) -> list[Any]:
    torch.manual_seed(3)
    loader = kind(dataset, **arguments)
    return [list(loader) for _ in range(2)]


def three(dataset: Any, **arguments: Any) -> Any:
    return auto(dataset, 3, **arguments)


@pytest.mark.parametrize("first", [0, 17, 39])
@pytest.mark.parametrize(
    ("torchs", "ours"),
    [({}, {}), ({"shuffle": True}, {}), ({}, {"persistent_workers": True})],
    ids=str,
)
def test_no_batch_is_lost_or_comes_twice(
    first: int, torchs: dict[str, Any], ours: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    want = epochs(DataLoader, Hanging(first), batch_size=4, **torchs)
    assert_same(epochs(three, Hanging(first), **torchs, **ours), want)
    (line,) = [record.message for record in caplog.records]
    making = r"worker \d \(pid \d+\) is making samples \d+(, \d+)*"
    assert re.fullmatch(
        r"loading in this process from here on: no batch came for \d+ s, and the workers do not run: "
        rf"{making}(, {making})*\. They may wait for a lock that another thread held when they were forked; "
        r"multiprocessing_context='spawn' or num_workers=0 avoids that",
        line,
    )


def test_batches_in_any_order_come_once():
    for batches in epochs(three, Hanging(17), in_order=False):
        assert sorted(torch.cat(batches).tolist()) == list(range(40))


def test_slow_samples_stay_with_their_workers(caplog: pytest.LogCaptureFixture):
    loader = auto(Slow(36), 2)
    assert_same(list(loader), list(DataLoader(range(40), 4)))
    assert not caplog.records


def test_a_timeout_of_the_users_stays_an_error():
    words = r"after 1 seconds: worker 0 \(pid \d+\) is making samples 0, .*; raise timeout if a batch may take that long"
    with pytest.raises(RuntimeError, match=words):
        list(auto(Hanging(0), 2, timeout=1))
