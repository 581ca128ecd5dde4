"""What the tests of resuming share: loaders of each lane, and runs that are interrupted."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

import fastload
from fastload.columns import Rows

COUNT = 23
"""Samples: with batches of 4, the last one is short."""


class Drawing(Dataset[Any]):
    """Samples that draw from all three generators, and are counted."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.asked.append(index)
        drawn = [float(torch.rand(())), np.random.random()]
        return {"index": index, "drawn": torch.tensor(drawn)}


class Still(Dataset[Any]):
    """Samples of no draws, which are made in Python."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return str(index)


def columns(count: int = COUNT) -> fastload.Dataset:
    """Returns the indices themselves, as a column."""
    return fastload.Dataset(Rows(torch.arange(count)))


def text(batch: Any) -> Any:
    """Returns a batch as what can be compared, to the bit."""
    if isinstance(batch, dict):
        return {name: text(value) for name, value in batch.items()}
    if isinstance(batch, torch.Tensor):
        return str(batch.dtype), batch.tolist()
    if isinstance(batch, list):
        return [text(value) for value in batch]
    return batch


def taken(iterator: Any, count: int) -> list[Any]:
    """Returns the next batches, at most so many; asks for no end."""
    batches = []
    for _ in range(count):
        try:
            batches.append(text(next(iterator)))
        except StopIteration:
            break
    return batches


def carried(state: Any) -> Any:
    """Returns a state as a JSON file gives it back."""
    return json.loads(json.dumps(state))


def where(state: Any) -> Any:
    """Returns a state without what is the loader's and not the epoch's."""
    return {**carried(state), "num_workers": None, "checksum": None}


def interrupted(loader: Any, stop: int) -> tuple[Any, list[Any]]:
    """Returns the state of a loader after some batches of an epoch, and the other batches of it."""
    iterator = iter(loader)
    taken(iterator, stop)
    state = carried(loader.state_dict())
    return state, taken(iterator, 1000)


def resumes(make: Callable[[], Any], stop: int, *, again: Callable[[], Any] | None = None) -> None:
    """Asserts that a run which is left after some batches goes on in another loader as if it had not been.

    Args:
        make: Makes a loader.
        stop: How many batches are taken first.
        again: Makes the loader that goes on; `make` unless given.
    """
    torch.manual_seed(7)
    np.random.seed(7)
    loader = make()
    state, rest = interrupted(loader, stop)
    torch.manual_seed(1)
    other = (again or make)()
    other.load_state_dict(state)
    assert carried(other.state_dict()) == state
    before = torch.get_rng_state()
    iterator = iter(other)
    assert where(other.state_dict()) == where(state)
    assert taken(iterator, 1000) == rest
    if state["is_drawn"]:
        assert torch.equal(torch.get_rng_state(), before)
