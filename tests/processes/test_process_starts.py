"""Iterators with worker processes that are started, and left or finished, many times: nothing is left."""

import asyncio
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from fastload import Loader, _lib
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.held import descriptors, foreign_threads
from tests.shared.processes import LINUX, mapped_files
from tests.shared.waiting import wait_until

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    pytest.mark.timeout(120),  # of many forks on a busy machine
    LINUX,
]


class Large(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3000,), index)


class Shards(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        assert info is not None
        yield from (torch.full((3000,), number) for number in range(info.id, 6, info.num_workers))


def left_early(loader: "Loader[Any]") -> None:
    next(iter(loader))


def finished(loader: "Loader[Any]") -> None:
    assert sum(map(len, loader)) == 6


def held() -> dict[str, int]:
    gc.collect()
    return {
        "children": len(multiprocessing.active_children()),
        "threads": foreign_threads(),
        "descriptors": descriptors(),
        "mappings": mapped_files(),
    }


@pytest.mark.parametrize("dataset", [Large(), Shards()], ids=["map", "iterable"])
@pytest.mark.parametrize("end", [left_early, finished])
def test_starts(dataset: Any, end: Callable[[Any], None]):
    _lib.park()
    loader = Loader(dataset, 2, num_workers=2)
    end(loader)
    before = held()
    for _ in range(20):
        end(loader)
    assert held() == before


def test_workers_that_have_ended_are_no_error_of_the_garbage_collector():
    batches = iter(Loader(Large(), 2, num_workers=2))
    next(batches)
    for worker in batches._workers:
        worker.kill()
    assert wait_until(lambda: not multiprocessing.active_children(), 10)
    batches.itself = batches
    del batches, worker
    gc.collect()  # which clears weak references before it finalizes


class Frozen(Dataset[int]):
    """The number of objects that collections leave alone."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return gc.get_freeze_count()


def test_collections_in_a_fork_leave_alone_what_it_shares():
    made: list[list[int]] = [[] for _ in range(1000)]
    before = gc.get_freeze_count()
    loader = Loader(Frozen(), 2, num_workers=1, multiprocessing_context="fork")
    assert min(int(batch.min()) for batch in loader) >= before + len(made)
    assert gc.get_freeze_count() == before


class Awaited(Dataset[int]):
    """Has threads of the event loop make samples."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return asyncio.get_event_loop().run_until_complete(_in_a_thread(index))


async def _in_a_thread(index: int) -> int:
    return await asyncio.get_running_loop().run_in_executor(None, int, index)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python forgets them itself")
@pytest.mark.timeout(30)
def test_workers_have_event_loops_of_their_own():
    asyncio.set_event_loop(asyncio.new_event_loop())
    try:
        want = list(DataLoader(Awaited(), 4))  # starts a thread of the loop's
        assert_same(list(Loader(Awaited(), 4)), want)
        assert_same(list(Loader(Awaited(), 4, num_workers=2)), want)
    finally:
        asyncio.get_event_loop().close()
        asyncio.set_event_loop(None)
