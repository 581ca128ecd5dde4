"""What an error of torch's default collation says of the field, wherever it is raised."""

from collections import namedtuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from fastload import Dataset as Columns
from fastload import Loader, columns
from fastload.collate import stacking
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

Pair = namedtuple("Pair", ["x", "y"])

ODD = {
    "'x'": [{"y": 1, "x": torch.zeros(n)} for n in (2, 2, 3)],
    "'a'[0]": [{"a": (np.zeros((n, 2)), 1)} for n in (2, 3)],
    "'y'": [Pair(1, torch.zeros(n)) for n in (2, 3)],
    "0": [([1] * n, 1) for n in (2, 3)],
    "'z'": [{"z": torch.zeros(2), "missing": 1}, {"z": torch.zeros(3)}],
    "a sample": [torch.zeros(n) for n in (2, 3)],
}


@pytest.mark.parametrize("field", ODD)
def test_the_error_is_torchs_with_a_note(field):
    with pytest.raises(RuntimeError) as theirs:
        default_collate(ODD[field])
    with pytest.raises(RuntimeError) as ours:
        stacking.default_collate(ODD[field])
    assert str(ours.value) == str(theirs.value)
    [note] = ours.value.__notes__
    assert field in note
    assert "(2" in note
    assert "(3" in note
    assert "PadCollate()" in note


def test_other_errors_are_as_they_were():
    with pytest.raises(TypeError) as caught:
        stacking.default_collate([object()])
    assert not hasattr(caught.value, "__notes__")
    nested = torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="nested tensors are not currently supported"):
        stacking.default_collate([nested, nested])
    samples = [{"x": torch.zeros(2), "y": "a"}] * 2
    assert_same(stacking.default_collate(samples), default_collate(samples))


class Uneven(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"x": torch.zeros(index)}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_over_python_says_it(workers):
    loader = Loader(Uneven(), 2, num_workers=workers)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size") as caught:
        next(iter(loader))
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "field 'x' has shape (0,) in one sample and (1,) in another" in said
    assert loader.collate_fn is DataLoader(Uneven()).collate_fn


@pytest.mark.parametrize(
    ("structure", "field"),
    [
        (lambda one, other: {"y": one, "x": other}, "field 'x'"),
        (lambda one, other: (one, [other, one]), "field 1[0]"),
        (lambda one, other: Pair(one, other), "field 'y'"),
        (lambda one, other: other, "a sample"),
    ],
)
def test_the_native_lane_says_the_same(structure, field):
    ragged = columns.Ragged(torch.arange(10), [0, 2, 4, 7, 10])
    loader = Loader(Columns(structure(columns.Rows(torch.zeros(4)), ragged)), 3, **SIZES)
    assert loader.explain().startswith("lane: native")
    batches = iter(loader)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size") as caught:
        next(batches)
    assert f"{field} has shape (2,) in one sample and (3,) in another" in caught.value.__notes__[0]
    next(batches)


class Missing(Dataset):
    """Samples of which some are no tensors, as those of Hugging Face with a null."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return None if index % 2 else torch.ones(2)


def test_a_later_sample_that_is_no_tensor_is_torchs_error(monkeypatch):
    with pytest.raises(TypeError) as theirs:
        next(iter(DataLoader(Missing(), batch_size=2)))
    monkeypatch.setattr(stacking.promotes, "is_on", True)
    with pytest.raises(TypeError) as ours:
        stacking.default_collate([Missing()[0], Missing()[1]])
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(TypeError, match="got NoneType"):
        next(iter(Loader(Missing(), batch_size=2)))
