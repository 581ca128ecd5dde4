"""What the contract tests share: bit-for-bit comparison, and epochs run under one seed."""

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import fastload
from fastload.columns import Rows

MANY_WORKERS = pytest.mark.filterwarnings("ignore:This DataLoader will:UserWarning")
"""For tests that ask for more workers than a small machine has cores: a loader warns of it."""


def heavy(count: int) -> fastload.Dataset:
    """Returns rows of a megabyte: batches that are worth waking a thread for, in little memory."""
    return fastload.Dataset(Rows(torch.zeros(1, 1 << 18).expand(count, 1 << 18)))


Arguments = Callable[[], dict[str, Any]]


class Plain(Dataset[Any]):
    """A map-style dataset in Python over tensors in any structure: what columns must equal."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def __len__(self) -> int:
        leaf = self.structure
        while not isinstance(leaf, torch.Tensor):
            leaf = next(iter(leaf.values())) if isinstance(leaf, Mapping) else leaf[0]
        return len(leaf)

    def __getitem__(self, index: int) -> Any:
        return mapped(self.structure, lambda tensor: tensor[index])


def mapped(structure: Any, function: Callable[[Any], Any]) -> Any:
    """Returns `structure` with every leaf replaced by `function` of it."""
    if isinstance(structure, Mapping):
        return {key: mapped(value, function) for key, value in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(mapped(value, function) for value in structure))
    if isinstance(structure, tuple | list):
        return type(structure)(mapped(value, function) for value in structure)
    return function(structure)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of `tensor`, so that NaN equals itself and -0.0 does not equal 0.0."""
    if not tensor.numel():  # torch.from_numpy leaves strides of 0
        return torch.empty(0, dtype=torch.uint8)
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.reshape(-1).view(torch.uint8)


def assert_same(got: Any, want: Any, where: str = "batch") -> None:
    """Asserts equality bit for bit, with the types of values and of containers."""
    assert type(got) is type(want), f"{where}: {type(got)} is not {type(want)}"
    if isinstance(want, torch.Tensor):
        for attribute in ("dtype", "shape", "device", "layout", "requires_grad"):
            assert getattr(got, attribute) == getattr(want, attribute), f"{where}: {attribute}"
        assert got.is_contiguous() == want.is_contiguous(), f"{where}: contiguity"
        assert torch.equal(raw(got), raw(want)), f"{where}: {got} is not {want}"
    elif isinstance(want, Mapping):
        assert list(got) == list(want), where
        for key in want:
            assert_same(got[key], want[key], f"{where}[{key!r}]")
    elif isinstance(want, Sequence) and not isinstance(want, str | bytes):
        assert len(got) == len(want), f"{where}: {len(got)} values in place of {len(want)}"
        for position, (ours, theirs) in enumerate(zip(got, want, strict=True)):
            assert_same(ours, theirs, f"{where}[{position}]")
    else:
        assert got == want, where


def outcomes(batches: Any) -> list[Any]:
    """Returns each batch, or the exception in its place."""
    iterator, results = iter(batches), []
    while True:
        try:
            results.append(next(iterator))
        except StopIteration:
            return results
        except Exception as error:
            results.append(error)


def outcomes_by_type(batches: Any) -> list[Any]:
    """Returns each batch, or the name of the exception's type in its place."""
    found = outcomes(batches)
    return [type(each).__name__ if isinstance(each, Exception) else each for each in found]


def assert_same_outcomes(got: list[Any], want: list[Any]) -> None:
    """Asserts that batches are the same, and exceptions of one type and one message."""
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        if not isinstance(theirs, Exception):
            assert_same(ours, theirs)
            continue
        assert type(ours) is type(theirs)
        assert (str(ours), ours.args) == (str(theirs), theirs.args)


def epochs(
    kind: type[DataLoader[Any]], dataset: Dataset[Any], arguments: Arguments, *, count: int = 2
) -> tuple[list[list[Any]], torch.Tensor]:
    """Runs `count` epochs from one seed.

    Args:
        kind: `DataLoader` or `Loader`.
        dataset: What to load.
        arguments: Makes the loader's arguments; called under the seed, as samplers hold state.
        count: How many epochs.

    Returns:
        The batches by epoch, and the state of the global generator afterwards.
    """
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    loader = kind(dataset, **arguments())
    return [list(loader) for _ in range(count)], torch.get_rng_state()


def assert_as_torchs(dataset: Any, theirs: Any, batch_size: int, **arguments: Any) -> None:
    """Asserts that a shuffled epoch of ours has the batches that torch makes of the same samples in Python.

    Args:
        dataset: What our loader loads.
        theirs: The same samples, for torch's.
        batch_size: Of both.
        arguments: Further ones of our loader; `shuffle` is of both.
    """
    shuffle = arguments.setdefault("shuffle", True)
    torch.manual_seed(0)
    want = list(DataLoader(theirs, batch_size, shuffle=shuffle))
    torch.manual_seed(0)
    assert_same(list(fastload.Loader(dataset, batch_size, **arguments)), want)


def reread(column: Any, most_bytes: int) -> Any:
    """Returns a column from its pickle, which is small and has the same samples."""
    stored = pickle.dumps(column)
    assert len(stored) < most_bytes
    again = pickle.loads(stored)
    assert_same(list(again), list(column))
    return again
