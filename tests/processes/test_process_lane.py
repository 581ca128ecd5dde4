"""Datasets in Python: torch's own iterators, so that nothing at all differs from torch."""

import copy
import os
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    WeightedRandomSampler,
    get_worker_info,
)

import fastload
from fastload import _lib
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same, epochs
from tests.shared.processes import FORKS, in_a_daemon

pytestmark = [MANY_WORKERS, FORKS, pytest.mark.slow]


class Drawn(Dataset[Any]):
    """Samples from every generator there is, and who made them."""

    offset = 0

    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return {
            "index": index + self.offset,
            "draws": (torch.rand(2), np.random.rand(2), random.random()),
            "worker": -1 if info is None else info.id,
            "text": str(index),
        }


class Streamed(IterableDataset[Any]):
    """Shards itself by worker."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, 23, step):
            yield number, torch.rand(3)


class Sized(Streamed):
    def __len__(self) -> int:
        return 23


def start(worker: int) -> None:
    info = get_worker_info()
    assert info is not None
    assert info.id == worker
    info.dataset.offset = 1000 * (worker + 1)


def collate(samples: list[Any]) -> list[int]:
    return [sample["index"] for sample in samples]


GRID: dict[str, dict[str, Any]] = {
    "two workers": {"num_workers": 2, "batch_size": 4},
    "shuffled": {"num_workers": 2, "batch_size": 4, "shuffle": True},
    "in process": {"num_workers": 0, "batch_size": 4, "shuffle": True},
    "without batches": {"num_workers": 1, "batch_size": None},
    "drop_last": {"num_workers": 2, "batch_size": 4, "drop_last": True},
    "worker_init_fn": {"num_workers": 2, "batch_size": 4, "worker_init_fn": start},
    "collate_fn": {"num_workers": 2, "batch_size": 4, "collate_fn": collate},
    "persistent": {
        "num_workers": 2,
        "batch_size": 4,
        "shuffle": True,
        "persistent_workers": True,
        "worker_init_fn": start,
    },
    "prefetch_factor": {"num_workers": 1, "batch_size": 2, "prefetch_factor": 7},
}


@pytest.mark.parametrize("name", GRID)
def test_map_style(name: str):
    want = epochs(DataLoader, Drawn(), lambda: GRID[name])
    _lib.park()
    got = epochs(fastload.Loader, Drawn(), lambda: GRID[name])
    assert_same(got, want, "epochs and state")


@pytest.mark.parametrize("kind", [Streamed, Sized])
@pytest.mark.parametrize("batching", [{"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {}])
@pytest.mark.parametrize("workers", [0, 2])
def test_iterable(kind: type[Streamed], batching: dict[str, Any], workers: int):
    arguments = {"num_workers": workers, **(batching or {"batch_size": None})}
    want = epochs(DataLoader, kind(), lambda: arguments)
    got = epochs(fastload.Loader, kind(), lambda: arguments)
    assert_same(got, want, "epochs and state")


def test_auto_gives_an_iterable_dataset_one_worker():
    loader = fastload.Loader(Streamed(), batch_size=4)
    assert loader.num_workers == 1
    want = epochs(DataLoader, Streamed(), lambda: {"batch_size": 4, "num_workers": 1})
    got = epochs(fastload.Loader, Streamed(), lambda: {"batch_size": 4})
    assert_same(got, want, "epochs and state")


def test_a_python_collation_over_columns():
    data = fastload.Dataset((Rows(torch.arange(23)), Rows(torch.randn(23, 3))))
    arguments = {"batch_size": 4, "collate_fn": list, "shuffle": True, "num_workers": 2}
    want = epochs(DataLoader, data, lambda: arguments)
    got = epochs(fastload.Loader, data, lambda: arguments)
    assert_same(got, want, "epochs and state")


def test_a_subclass_that_overrides_getitem_is_obeyed():
    class Doubled(fastload.Dataset):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index) * 2

    data = Doubled(Rows(torch.arange(10)))
    loader = fastload.Loader(data, batch_size=5, num_workers=2)
    assert torch.cat(list(loader)).tolist() == list(range(0, 20, 2))


class Broken(Dataset[int]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        if index == 2:
            raise KeyError(index)
        return index


def test_errors_are_torchs():
    texts = []
    for kind in (DataLoader, fastload.Loader):
        iterator = iter(kind(Broken(), batch_size=2, num_workers=2))
        assert next(iterator).tolist() == [0, 1]
        with pytest.raises(KeyError) as caught:
            next(iterator)
        texts.append(str(caught.value))
        assert next(iterator).tolist() == [4, 5]
    assert "Caught KeyError in DataLoader worker process 1" in texts[0]
    assert texts[0] == texts[1]


class Unread(Broken):
    def __getitem__(self, index: int) -> int:
        assert os.getpid()  # what is not known is left to workers
        return super().__getitem__(index)


def test_a_daemonic_process_loads_inline_and_says_so_once():
    def load() -> Any:
        loader = fastload.Loader(Unread(), sampler=[0, 1, 3], batch_size=2)
        return [batch.tolist() for batch in loader]

    batches, records = in_a_daemon(load)
    assert batches == [[0, 1], [3]]
    assert len(records) == 1
    assert "daemonic" in records[0]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_auto_and_loaders_can_be_copied(copied: Any):
    auto = copied(fastload.AUTO)
    assert type(auto) is type(fastload.AUTO)
    assert auto == fastload.AUTO >= 1
    data = fastload.Dataset({"x": Rows(torch.arange(23)), "y": Rows(torch.randn(23, 3))})
    for dataset in (Drawn(), data):
        loader = fastload.Loader(dataset, batch_size=4, memory_budget="1GiB")
        next(iter(loader))
        twin = copied(loader)
        assert type(twin) is fastload.Loader
        assert type(twin.num_workers) is type(fastload.AUTO)
        assert twin.memory_budget == "1GiB"
        assert len(list(twin)) == 6


FROM_TORCH: dict[str, dict[str, Any]] = {
    "plain": {},
    "batches": {"batch_size": 4, "drop_last": True, "num_workers": 2},
    "shuffle": {"batch_size": 4, "shuffle": True, "num_workers": 1, "prefetch_factor": 3},
    "generator": {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
    "sampler": {"sampler": WeightedRandomSampler([1.0] * 23, 9), "batch_size": 2},
    "batch sampler": {"batch_sampler": [[1, 2], [3]]},
    "no batches": {"batch_size": None, "shuffle": True},
    "distributed": {"batch_size": 4, "sampler": DistributedSampler(range(23), 2, 0)},
    "collate_fn": {"collate_fn": len, "batch_size": 4},
    "rest": {
        "num_workers": 1,
        "timeout": 5,
        "in_order": False,
        "persistent_workers": True,
        "worker_init_fn": start,
        "multiprocessing_context": "spawn",
    },
}
TOLD = [
    "dataset",
    "batch_size",
    "sampler",
    "batch_sampler",
    "drop_last",
    "collate_fn",
    "generator",
    "timeout",
    "pin_memory",
    "worker_init_fn",
    "persistent_workers",
    "in_order",
]


@pytest.mark.parametrize("name", FROM_TORCH)
def test_from_torch(name: str):
    data = fastload.Dataset(Rows(torch.arange(23)))
    theirs = DataLoader(data, **FROM_TORCH[name])
    ours = fastload.Loader.from_torch(theirs)
    for attribute in TOLD:
        want, got = getattr(theirs, attribute), getattr(ours, attribute)
        if attribute == "batch_sampler" and name != "batch sampler" and want is not None:
            want, got = (want.sampler, want.drop_last), (got.sampler, got.drop_last)
        if attribute != "sampler" or name != "batch sampler":
            assert got is want or got == want, attribute
    assert ours.num_workers == (theirs.num_workers or fastload.AUTO)
    if theirs.num_workers:
        assert ours.prefetch_factor == theirs.prefetch_factor
    if name != "rest":
        orders = []
        for loader in (theirs, ours):
            torch.manual_seed(7)
            if loader.generator is not None:
                loader.generator.manual_seed(3)
            orders.append(list(loader))
            _lib.park()
        assert_same(orders[1], orders[0])


def test_from_torch_with_changes():
    theirs = DataLoader(Drawn(), batch_size=4, shuffle=True, num_workers=2)
    ours = fastload.Loader.from_torch(theirs, batch_size=7, num_workers=0, memory_budget=1 << 20)
    assert (ours.batch_size, ours.num_workers, ours.memory_budget) == (7, 0, 1 << 20)
    assert ours.sampler is theirs.sampler
    iterable = fastload.Loader.from_torch(DataLoader(Streamed(), batch_size=4))
    assert len(list(iterable)) == 6
