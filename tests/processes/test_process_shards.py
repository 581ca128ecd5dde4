"""Iterable datasets that shard themselves by worker give torch's batches, whichever way workers start."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data.datapipes.iter import IterableWrapper

from fastload import Loader, _lib
from tests.shared.compare import MANY_WORKERS, assert_same, epochs
from tests.shared.processes import LINUX

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    LINUX,
]


class Shards(IterableDataset[Any]):
    """Gives each worker its own, some of them more, and says who made what."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        assert info is not None
        for number in range(info.id, 20 + 6 * info.id, info.num_workers):
            yield number, info.id, torch.rand(1500)


def large(number: int) -> torch.Tensor:
    return torch.full((1500,), number) + torch.rand(1)


def piped() -> Any:
    return IterableWrapper(range(23)).shuffle().sharding_filter().map(large)


GRID: dict[str, dict[str, Any]] = {
    "plain": {},
    "persistent": {"persistent_workers": True},
    "drop_last": {"drop_last": True},
    "one by one": {"batch_size": None},
}


def assert_torchs(make: Any, ours: str = "fork", **own: Any) -> None:
    def arguments(method: str) -> dict[str, Any]:
        return {"batch_size": 4, "num_workers": 2, "multiprocessing_context": method, **own}

    _lib.park()
    want = epochs(DataLoader, make(), lambda: arguments("fork"))
    _lib.park()
    assert_same(epochs(Loader, make(), lambda: arguments(ours)), want)


@pytest.mark.parametrize("name", GRID)
@pytest.mark.parametrize("make", [Shards, piped])
def test_shards(make: Any, name: str):
    assert_torchs(make, **GRID[name])


@pytest.mark.timeout(120)  # of new interpreters that import torch on a busy machine
@pytest.mark.parametrize(("make", "method"), [(Shards, "spawn"), (piped, "forkserver")])
def test_start_methods(make: Any, method: str):
    assert_torchs(make, method, persistent_workers=True)
