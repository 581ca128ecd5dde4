"""Datasets whose samples are keyed under AUTO, and ways to load them."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

import fastload
from fastload import _lib
from fastload.machine.auto import Auto

from .compare import assert_same
from .threads import globals_now, seed_all

LANES = ("process", "threads")


class Noisy(Dataset[Any]):
    """Draws from every generator, an odd number of normal ones, and unevenly much."""

    def __len__(self) -> int:
        return 41

    def __getitem__(self, index: int) -> Any:
        return {
            "index": index,
            "torch": torch.rand(1 + index % 3).sum(),
            "seed": torch.initial_seed(),
            "numpy": torch.from_numpy(np.random.randn(3)),
            "python": (random.random(), random.gauss(0, 1), random.randint(0, 9)),
        }


def mixed(samples: list[Any]) -> Any:
    """Draws once for a batch."""
    batch = torch.utils.data.default_collate(samples)
    return batch | {"mixed": [torch.rand(1), np.random.rand(), random.random()]}


def auto(dataset: Any, number: int, **arguments: Any) -> fastload.Loader[Any]:
    """Returns a loader under AUTO, as on a machine of so many CPUs, which is not tuned."""
    loader = fastload.Loader(dataset, **{"batch_size": 4, "tune": False, **arguments})
    loader.num_workers = Auto(number)
    return loader


Between = Callable[[Any, int], None]
"""Called with an iterator and the number of batches that it gave, after each of them."""


def loaded(
    dataset: Any, number: int, *, between: Between | None = None, **arguments: Any
) -> list[Any]:
    """Returns what comes of two epochs under AUTO, and what the global generators give afterwards."""
    _lib.park()
    seed_all()
    loader, results = auto(dataset, number, **arguments), []
    for _ in range(2):
        iterator, batches = iter(loader), []
        for batch in iterator:
            batches.append(batch)
            if between is not None:
                between(iterator, len(batches))
        results.append(batches)
    return [results, globals_now()]


def assert_keyed(
    dataset: Any, make: Callable[[], dict[str, Any]] = dict, between: Between | None = None
) -> list[Any]:
    """Asserts that nothing depends on the number of workers or on the lane; returns what came.

    Args:
        dataset: What to load.
        make: Makes the loader's arguments; samplers hold state.
        between: Called while the loaders with several workers run.
    """
    want = loaded(dataset, 1, lane="process", **make())
    for lane, number in (("process", 3), ("threads", 2)):
        got = loaded(dataset, number, lane=lane, between=between, **make())
        assert_same(got, want, f"{lane}, {number} workers")
    return want
