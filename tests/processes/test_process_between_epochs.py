"""Persistent workers that are killed between two epochs: it is told, and the epoch after has its batches."""

import multiprocessing
import os
import signal
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

from fastload import Loader, _lib
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.processes import LINUX

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    LINUX,
]


class Large(Dataset[Any]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        return torch.full((3000,), index)


@pytest.mark.parametrize("victims", [[0], [1, 2], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSEGV], ids=lambda end: end.name)
def test_workers_killed_between_epochs(victims: list[int], end: signal.Signals):
    _lib.park()
    before = len(multiprocessing.active_children())
    loader = Loader(Large(), 2, num_workers=3, persistent_workers=True)
    want = list(loader)
    for _ in range(2):
        workers = loader._iterator._workers
        for victim in victims:
            os.kill(workers[victim].pid, end)
        with pytest.raises(RuntimeError, match="DataLoader worker") as caught:
            list(loader)
        said = [
            f"worker {victim} was killed by {end.name}" in str(caught.value) for victim in victims
        ]
        assert any(said)
        del caught
        assert len(multiprocessing.active_children()) == before
        assert_same(list(loader), want)
        assert_same(list(loader), want)
    del loader, workers
    assert len(multiprocessing.active_children()) == before
