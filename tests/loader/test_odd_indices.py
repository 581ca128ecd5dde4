"""Samplers that yield other things than numbers: what torch's DataLoader makes of them is the oracle."""

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    StackDataset,
    Subset,
    TensorDataset,
)

import fastload
from fastload import Loader, lanes
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes_by_type
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS


def pairs(n=6):
    return TensorDataset(torch.arange(3.0 * n).reshape(n, 3), torch.arange(n))


DATASETS = {
    "tensors": pairs,
    "subset": lambda: Subset(pairs(), [5, 4, 3, 2, 1, 0]),
    "concat": lambda: ConcatDataset([pairs(3), pairs(3)]),
    "stack": lambda: StackDataset(a=pairs(), b=torch.arange(6)),
    "tensor": lambda: torch.arange(12.0).reshape(6, 2),
    "array": lambda: np.arange(12.0).reshape(6, 2),
    "list": lambda: [10, 11, 12, 13, 14, 15],
    "list of tensors": lambda: [torch.full((2,), float(n)) for n in range(6)],
    "columns": lambda: fastload.Dataset(Rows(torch.arange(12.0).reshape(6, 2))),
}
ODD = {
    "bools": [True, False],
    "a bool among ints": [1, True, 3, 4],
    "NumPy's bools": [np.True_, np.False_],
    "slices": [slice(0, 2), slice(2, 4)],
    "lists": [[0, 1], [2, 3]],
    "arrays": [np.array([0, 1]), np.array([4, 5])],
    "tensors": [torch.tensor([0, 1]), torch.tensor([2, 2])],
    "lists of one": [[1], [2]],
    "tensors of one": [torch.tensor([1]), torch.tensor([2])],
    "numbers": [np.int64(3), np.uint8(1), torch.tensor(2), torch.tensor(-1), -6, 0],
    "bytes": [torch.tensor(1, dtype=torch.uint8), torch.tensor(0, dtype=torch.uint8)],
    "bool tensors": [torch.tensor(True), torch.tensor(False)],
    "short tensors": [torch.tensor(1, dtype=torch.int32), torch.tensor(5, dtype=torch.int16)],
    "none": [None, None],
    "dots": [..., ...],
    "tuples": [(0, 1), (2,)],
    "floats": [1.0, 2.5],
    "text": ["1", "2"],
    "huge": [2**70, 0],
}


def seen(kind, dataset, **arguments):
    """Returns the batches, errors by their types in their places."""
    return outcomes_by_type(kind(dataset, **arguments))


class Given(list):
    """A sampler of one's own: a list of tasks."""


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("name", DATASETS)
def test_indices_mean_what_they_mean_to_the_dataset(name, odd):
    dataset = DATASETS[name]()
    for arguments in (
        {"sampler": odd, "batch_size": 2},
        {"sampler": odd, "batch_size": None},
        {"batch_sampler": [odd[:2], odd[2:] or [0], [1, 2]]},
        {"batch_sampler": Given([tuple(odd), [5, 0]])},
        {"sampler": BatchSampler(odd, 2, False), "batch_size": None},
    ):
        loader = Loader(dataset, **arguments, **SIZES)
        if lanes.choose(loader).lane != "native":
            continue
        ours = seen(Loader, dataset, **arguments, **SIZES)
        assert_same(ours, seen(DataLoader, dataset, **arguments))


@pytest.mark.parametrize(
    "batch",
    [torch.tensor([4, 1]), np.array([2, 2]), np.array([1, 0], np.uint8), range(3), {3: 0, 1: 0}],
    ids=["tensor", "array", "bytes", "range", "dict"],
)
def test_batches_may_be_of_any_iterable_type(batch):
    arguments = {"batch_sampler": [batch, [0]]}
    ours = seen(Loader, pairs(), lane="native", **arguments, **SIZES)
    assert_same(ours, seen(DataLoader, pairs(), **arguments))


@pytest.mark.parametrize("odd", [[True, 2], [slice(0, 2)], [3, 1]], ids=str)
def test_a_batch_that_can_be_iterated_only_once(odd):
    def tasks():
        return [iter(odd), (index for index in odd)]

    ours = seen(Loader, pairs(), batch_sampler=tasks(), lane="native", **SIZES)
    assert_same(ours, seen(DataLoader, pairs(), batch_sampler=tasks()))


def test_a_task_that_is_none_fails_alone():
    tasks = [[0, 1], 7, [2]]
    ours = seen(Loader, pairs(), batch_sampler=tasks, lane="native", **SIZES)
    assert_same(ours, seen(DataLoader, pairs(), batch_sampler=tasks))
    assert ours[1] == "TypeError"


@pytest.mark.parametrize("index", [True, slice(0, 2), [1], torch.tensor([1]), 1, np.int64(1)])
def test_the_seam_leaves_them_to_the_dataset(index):
    from fastload.lowering.seam import Seam

    dataset = pairs()
    assert_same(Seam(dataset)[index], dataset[index])


def test_subsets_of_other_sequences():
    for indices in ((1, True), (2, 0), range(4, 0, -2), np.array([1, 0], np.uint8)):
        subset = Subset(pairs(), indices)
        assert_same(list(Loader(subset, num_workers=1)), list(DataLoader(subset)))
