"""Structures of columns as map-style datasets."""

import collections
import copy
import pickle

import pytest
import torch
from torch.utils.data import ConcatDataset, Subset

from fastload import Dataset
from fastload.columns import Rows

Pair = collections.namedtuple("Pair", "x y")


def numbers(n=4):
    return Rows(torch.arange(n))


def test_a_sample_has_the_structure_of_the_dataset():
    dataset = Dataset({"a": (numbers(), [numbers()]), 3: Pair(numbers(), {"b": numbers()})})
    one = torch.tensor(1)
    assert dataset[1] == {"a": (one, [one]), 3: Pair(one, {"b": one})}
    assert type(dataset[1][3]) is Pair
    assert type(dataset[1]["a"]) is tuple
    assert Dataset(numbers())[2] == torch.tensor(2)


def test_a_dataset_is_a_map_style_torch_dataset():
    dataset = Dataset((numbers(),))
    assert isinstance(dataset, torch.utils.data.Dataset)
    assert len(dataset) == 4
    assert [sample[0].item() for sample in dataset] == [0, 1, 2, 3]
    assert dataset[-1] == (torch.tensor(3),)
    assert Subset(dataset, [2])[0] == (torch.tensor(2),)
    assert len(ConcatDataset([dataset, dataset])) == 8
    with pytest.raises(IndexError):
        dataset[4]
    with pytest.raises(TypeError):
        dataset[[0, 1]]


def test_one_column_may_be_several_leaves():
    column = numbers()
    assert Dataset((column, column))[3] == (torch.tensor(3), torch.tensor(3))


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (torch.arange(3), r"structure of a dataset is a torch.Tensor, not a column; wrap data"),
        ((numbers(), torch.arange(4)), r"dataset\[1\] is a torch.Tensor, not a column; wrap data"),
        ({"x": {"y": 3}}, r"dataset\['x'\]\['y'\] is a builtins.int"),
        (Pair(numbers(), "z"), r"dataset.y is a builtins.str"),
        (collections.OrderedDict(x=numbers()), r"OrderedDict, not a column; use an exact tuple"),
        ([collections.UserList([numbers()])], r"dataset\[0\] is a collections.UserList"),
    ],
)
def test_leaves_are_columns(structure, message):
    with pytest.raises(TypeError, match=message):
        Dataset(structure)


def test_columns_have_one_length():
    with pytest.raises(
        ValueError, match=r"dataset\['x'\] has 4 samples, dataset\['y'\]\[0\] has 5"
    ):
        Dataset({"x": numbers(), "y": (numbers(5),)})


@pytest.mark.parametrize("structure", [(), {}, [[], {}]])
def test_a_structure_has_a_column(structure):
    with pytest.raises(ValueError, match="at least one column"):
        Dataset(structure)


def test_the_structure_is_the_datasets_own():
    structure = {"x": numbers(), "y": [numbers()]}
    dataset = Dataset(structure)
    del structure["x"]
    structure["y"].clear()
    assert pickle.loads(pickle.dumps(dataset))[1] == dataset[1] == {"x": 1, "y": [1]}


class Labelled(Dataset):
    def __init__(self, structure, classes):
        super().__init__(structure)
        self.classes = classes


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=str
)
def test_datasets_are_copied_and_pickled(again):
    dataset = again(Labelled(Pair(numbers(), numbers()), ["cat", "dog"]))
    assert type(dataset) is Labelled
    assert dataset.classes == ["cat", "dog"]
    assert dataset[2] == Pair(torch.tensor(2), torch.tensor(2))


def test_a_dataset_describes_itself():
    assert repr(Dataset((numbers(),))) == "Dataset((Rows(4 of int64, shape ()),))"
