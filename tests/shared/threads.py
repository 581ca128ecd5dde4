"""Datasets for the threads lane, and its comparison with torch's worker processes."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import fastload
from fastload import _lib

from .compare import assert_same, outcomes


class Drawn(Dataset[Any]):
    """Draws from every generator, and says who it is."""

    offset = 0

    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return {
            "index": index + self.offset,
            "torch": torch.rand(2),
            "numpy": np.random.randn(3),  # an odd number: the generator keeps half a pair
            "python": (random.random(), random.gauss(0, 1), random.randint(0, 9)),
            "worker": info and (info.id, info.num_workers, info.seed),
        }


class Streamed(IterableDataset[Any]):
    """Shards itself by worker, unevenly."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, 23 + 4 * first, step):
            yield number, torch.rand(1), np.random.rand(), random.random()


def seed_all() -> None:
    """Seeds the global generators, and leaves each with half a pair of normal numbers."""
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    torch.randn(1), np.random.randn(), random.gauss(0, 1)


def globals_now() -> list[Any]:
    """Returns what the global generators give next."""
    return [torch.get_rng_state(), torch.rand(1), np.random.randn(), random.gauss(0, 1)]


def ran(kind: Any, dataset: Any, epochs: int = 2, **arguments: Any) -> list[Any]:
    """Returns what comes of some epochs, and what the global generators give afterwards."""
    _lib.park()
    seed_all()
    loader = kind(dataset, **arguments)
    results = [outcomes(loader) for _ in range(epochs)]
    del loader
    return [results, globals_now()]


def threads(dataset: Any, **arguments: Any) -> fastload.Loader[Any]:
    """Returns a loader that takes the threads lane."""
    return fastload.Loader(dataset, lane="threads", **arguments)


def assert_as_processes(
    dataset: Any | Callable[[], Any], epochs: int = 2, context: str = "fork", **arguments: Any
) -> list[Any]:
    """Asserts that threads give what torch's processes give; returns it."""
    arguments = {"num_workers": 2, "batch_size": 4, **arguments}
    got = ran(threads, dataset, epochs, **arguments)
    want = ran(DataLoader, dataset, epochs, multiprocessing_context=context, **arguments)
    assert_same(got, want)
    return got
