"""Samplers that are no more than iterable: generators, iterators, sets, objects without a length."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, Plain, assert_same

pytestmark = MANY_WORKERS

ROWS = torch.arange(20.0).reshape(10, 2)
FIRST = 7
"""How many batches are taken of a sampler that may have no end."""


class Endless:
    """Has `__iter__` and nothing else."""

    def __init__(self, items: Callable[[], Iterable[Any]]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items())


class Unmeasured(Endless):
    """Has a length that cannot be told."""

    def __len__(self) -> int:
        raise NotImplementedError


SAMPLERS: dict[str, Callable[[], Any]] = {
    "generator": lambda: (index for index in [3, 1, 2, 0, 5]),
    "iterator": lambda: iter([3, 1, 2]),
    "iterable": lambda: Endless(lambda: [3, 1, 2]),
    "unmeasured": lambda: Unmeasured(lambda: [3, 1, 2]),
    "endless": lambda: Endless(lambda: (n % 10 for n in itertools.count())),
    "list": lambda: [3, 1, 2],
    "set": lambda: {3, 1, 2},
    "array": lambda: np.array([3, 1, 2]),
    "tensor": lambda: torch.tensor([3, 1, 2]),
    "out of range": lambda: iter([1, 99, 2]),
}
BATCHES: dict[str, Callable[[], Any]] = {
    "generator": lambda: (batch for batch in [[3, 1], [2, 0, 5]]),
    "iterable": lambda: Endless(lambda: [[3, 1], [2]]),
    "unmeasured": lambda: Unmeasured(lambda: [(3, 1), (2,)]),
    "endless": lambda: Endless(lambda: ([n % 10, 1] for n in itertools.count())),
    "set": lambda: {(3, 1), (2, 0)},
    "array": lambda: np.array([[3, 1], [2, 0]]),
    "tensors": lambda: (torch.tensor([n, n + 1]) for n in range(4)),
    "generators": lambda: (iter([n, n + 1]) for n in range(4)),
    "no batches": lambda: torch.tensor([1, 2]),
}
KINDS = {
    "native": (lambda: TensorDataset(ROWS), {}),
    "process": (lambda: Plain([ROWS]), {}),
    "threads": (lambda: Plain([ROWS]), {"lane": "threads"}),
    "inline": (lambda: Plain([ROWS]), {"num_workers": 0}),
}


def seen(loader: Any) -> list[Any]:
    """Returns the length and the first batches of two epochs, with errors in their places."""
    results = []
    for _ in range(2):
        results.append(length(loader))
        batches = iter(loader)
        results.append(length(batches))
        for _ in range(FIRST):
            try:
                results.append(next(batches))
            except StopIteration:
                results.append("end")
                break
            except Exception as error:
                results.append(type(error))
    return results


def length(thing: Any) -> Any:
    try:
        return len(thing)
    except Exception as error:
        return type(error), str(error)


CASES = [
    *(("sampler", name) for name in SAMPLERS),
    *(("single", name) for name in SAMPLERS),
    *(("batches", name) for name in BATCHES),
]
SENT = [
    ("sampler", "generator"),
    ("sampler", "endless"),
    ("single", "tensor"),
    ("batches", "unmeasured"),
    ("batches", "generators"),
    ("batches", "no batches"),
]
"""What worker processes are tried with: starting them takes long, and the parent reads all samplers alike."""


@pytest.mark.parametrize(
    ("lane", "use", "name"),
    [(lane, *case) for lane in KINDS for case in (SENT if lane == "process" else CASES)],
)
def test_any_iterable_is_a_sampler_as_for_torch(lane, use, name):
    make = (BATCHES if use == "batches" else SAMPLERS)[name]
    dataset, ours = KINDS[lane]
    arguments: Callable[[], dict[str, Any]] = {
        "sampler": lambda: {"sampler": make(), "batch_size": 2},
        "single": lambda: {"sampler": make(), "batch_size": None},
        "batches": lambda: {"batch_sampler": make()},
    }[use]
    # torch's default makes the same batches, and starts no processes
    want = seen(DataLoader(dataset(), **arguments()))
    loader = fastload.Loader(dataset(), **ours, **arguments())
    assert lanes.choose(loader).lane == lane
    assert_same(seen(loader), want)


def test_chosen_workers_are_asked_as_torchs_are():
    """Worker processes read ahead, so the second epoch of one generator begins later."""

    def make() -> dict[str, Any]:
        endless = (n % 10 for n in itertools.count())
        return {"sampler": endless, "batch_size": 2, "num_workers": 2}

    got = seen(fastload.Loader(Plain([ROWS]), lane="process", **make()))
    assert_same(got, seen(DataLoader(Plain([ROWS]), **make())))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drop_last", [False, True], ids=["", "drop_last"])
@pytest.mark.parametrize("error", [ValueError("no order"), StopIteration()], ids=repr)
def test_a_sampler_that_cannot_be_iterated_fails_once(kind, drop_last, error):
    def refuse():
        raise error

    def attempt(make, **arguments):
        batches = iter(
            make(sampler=Endless(refuse), batch_size=2, drop_last=drop_last, **arguments)
        )
        with pytest.raises((ValueError, RuntimeError)) as caught:
            next(batches)
        with pytest.raises(StopIteration):
            next(batches)
        return type(caught.value), str(caught.value)

    dataset, ours = KINDS[kind]
    want = attempt(functools.partial(DataLoader, dataset()))
    assert attempt(functools.partial(fastload.Loader, dataset()), **ours) == want
