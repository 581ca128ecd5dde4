"""Which code changes only what it has made itself: it may be tried out, for nobody sees that."""

import functools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Subset

from fastload.lowering.cheap import read_code
from fastload.lowering.known_functions import MAKERS

BUILTINS = (bool, dict, float, int, len, list, set, sorted, str, json.loads)
ROWS = np.arange(300).reshape(100, 3)


class Held:
    """What samples are made of."""

    def __init__(self) -> None:
        self.rows = ROWS.copy()
        self.texts = [["a", "b"]] * 100
        self.vocabulary = {"a": 1, "b": 2}
        self.tensors = [torch.zeros(3), torch.zeros(3)]

    def __len__(self) -> int:
        return 100


def held(sample: Callable[..., Any]) -> Any:
    """Makes a dataset with these samples."""
    return type(sample.__name__, (Held,), {"__getitem__": sample})()


def encodes(self, index):
    ids = []
    for word in self.texts[index]:
        ids.append(self.vocabulary[word])  # noqa: PERF401
    ids += [0]
    return ids


def marks_a_row(self, index):
    row = np.zeros(10, dtype=np.float32)
    row[self.rows[index] % 10] = 1.0
    return row


def adds_to_entries(self, index):
    row = np.zeros(10)
    row[index % 3] += 2
    row[1:3] = 4
    return row


def masks(self, index):
    mask = torch.zeros(10).long()
    mask[: len(self.texts[index])] = 1
    return mask


def changes_a_number(self, index):
    number = int(self.rows[index][0])
    number ^= 5
    return number


def changes_its_index(self, index):
    index += 1
    return self.rows[index]


def mixes_into_its_index(self, index):
    mixed = index
    for number in self.rows[0]:
        mixed ^= int(number)
    return mixed


def mixes_numbers(self, index):
    mixed = 0
    for number in self.rows[index]:
        mixed ^= int(number)
    return mixed


def changes_a_comprehension(self, index):
    ids = [self.vocabulary[word] for word in self.texts[index]]
    ids.append(3)
    ids[0] = 4
    return ids


def fills_a_dict(self, index):
    sample = {}
    sample["row"] = self.rows[index]
    sample.update(index=index)
    return sample


def makes_it_twice(self, index):
    row = np.zeros(3)
    if index > 5:
        row = np.ones(3)
    row[0] = index
    return row


@functools.lru_cache(maxsize=8)
def looked_up(number):
    return math.sqrt(number)


def asks_a_cache(self, index):
    return looked_up(int(self.rows[index][0]))


OWN = [
    *(encodes, marks_a_row, adds_to_entries, masks, changes_a_number, mixes_numbers),
    *(changes_a_comprehension, fills_a_dict, makes_it_twice, asks_a_cache),
    *(changes_its_index, mixes_into_its_index),
]


@pytest.mark.parametrize("sample", OWN, ids=lambda sample: sample.__name__)
def test_what_changes_only_its_own_reads(sample):
    dataset, untouched = held(sample), Held()
    for index in range(10):
        dataset[index]
    assert (dataset.rows == untouched.rows).all()
    assert dataset.texts == untouched.texts
    assert read_code(dataset).only_reads


def changes_a_row(self, index):
    row = self.rows[index]
    row += 1
    return row


def changes_an_entry_of_its_list(self, index):
    listed = [self.tensors[0]]
    listed[0] += 1
    return listed


def changes_an_entry_of_a_copied_list(self, index):
    listed = list(self.tensors)
    listed[0] += 1
    return listed


def may_have_another(self, index):
    row = np.zeros(3)
    row = self.rows[index]
    row[0] = 1
    return row


def has_a_view(self, index):
    row = np.asarray(self.rows[index])
    row[0] = 1
    return row


def changes_an_attribute(self, index):
    self.rows[index][0] = 1
    return index


def appends_to_a_text(self, index):
    self.texts[index].append("a")
    return index


def appends_its_own_to_another(self, index):
    listed = []
    listed.append(1)
    self.texts.append(listed)
    return index


def has_one_of_two(self, index):
    row = np.zeros(3) if index < 0 else self.rows[index]
    row[0] = 1
    return row


def takes_one_of_two(self, index):
    row = (np.zeros(3), self.rows[index])[1]
    row[0] = 1
    return row


def changes_one_of_two(self, index):
    rows = np.zeros(3), self.rows[index]
    rows[1][0] = 1
    return rows


def changes_all_rows(self, index):
    for row in self.rows:
        row[0] = 1
    return index


def changes_its_default(self, index, row=np.zeros(3)):  # noqa: B008
    row[0] = index
    return row


def changes_given_rows(self, index, *rows):
    rows[0][0] = index
    return rows


def changes_an_object(self, index):
    row = np.empty(1, dtype=object)
    row[0] = self.tensors[0]
    row[0] += 1
    return row


def zeros(count):
    return ROWS[0]


def asks_another_zeros(self, index):
    row = zeros(3)
    row[0] = 1
    return row


@functools.cache
def one_for_all(number):
    return np.zeros(number)


def changes_what_is_cached(self, index):
    row = one_for_all(3)
    row[0] = index
    return row


def names_it_within(self, index):
    mine = np.zeros(3)
    mine[0] = (row := self.rows[index])[0]
    row[0] = 1
    return mine


def draws_into_its_own(self, index):
    row = torch.zeros(3)
    row.normal_()
    return row


@functools.cache
def drawn_once(_number):
    return torch.rand(())


def keeps_what_is_drawn(self, index):
    return drawn_once(index)


def takes_one_out_of_its_list(self, index):
    text = list(self.texts)[index]
    text.append("a")
    return text


def takes_one_out_of_its_dict(self, index):
    text = dict(enumerate(self.texts))[index]
    text.append("a")
    return text


def takes_an_object_out_of_an_array(self, index):
    first = np.array([self.vocabulary, self.vocabulary])[0]
    first["c"] = index
    return first


def takes_an_item_of_an_array(self, index):
    first = np.array([self.vocabulary, self.vocabulary]).item(0)
    first["c"] = index
    return first


def changes_an_object_in_an_array(self, index):
    both = np.array([self.vocabulary, self.vocabulary])
    both[0] |= {"c": index}
    return both


def has_its_own_only_if_nothing_else(self, index):
    text = self.texts[index] or []
    text += ["a"]
    return text


def has_its_own_only_if(self, index):
    text = self.texts[index] if index >= 0 else []
    text += ["a"]
    return text


def changes_an_entry_of_one_of_two(self, index):
    mine = []
    (self.texts[index] if index >= 0 else mine)[0] = "c"
    return mine


def appends_to_one_of_two(self, index):
    mine = []
    (self.texts[index] if index >= 0 else mine).append("c")
    return mine


def augments_an_entry_of_one_of_two(self, index):
    mine = np.zeros(3)
    (self.rows[index] if index >= 0 else mine)[0] += 1
    return mine


def has_a_tensor_for_its_index(self, index):
    index = self.tensors[index % 2]
    mine = index
    mine += 1
    return mine


def has_a_tensor_for_its_index_later(self, index):
    mine = index
    mine += 1
    for index in self.tensors:
        mine = index
    return mine


def indexes_itself(self, index):
    if index is not self.tensors:
        self[self.tensors]
    index += [1]
    return 0


def has_an_old_constructor(self, index):
    row = torch.FloatTensor(self.tensors[0])
    row[0] = 1
    return row


OTHERS = [
    *(changes_a_row, changes_an_entry_of_its_list, changes_an_entry_of_a_copied_list),
    *(may_have_another, has_a_view, changes_an_attribute, appends_to_a_text),
    *(appends_its_own_to_another, has_one_of_two, takes_one_of_two, changes_one_of_two),
    *(changes_all_rows, changes_its_default, changes_given_rows, changes_an_object),
    *(changes_what_is_cached, asks_another_zeros, names_it_within, draws_into_its_own),
    *(takes_one_out_of_its_list, takes_one_out_of_its_dict, takes_an_object_out_of_an_array),
    *(takes_an_item_of_an_array, changes_an_object_in_an_array, has_its_own_only_if),
    *(has_its_own_only_if_nothing_else, changes_an_entry_of_one_of_two, appends_to_one_of_two),
    *(augments_an_entry_of_one_of_two, has_an_old_constructor, keeps_what_is_drawn),
    *(has_a_tensor_for_its_index, has_a_tensor_for_its_index_later, indexes_itself),
]


@pytest.mark.parametrize("sample", OTHERS, ids=lambda sample: sample.__name__)
def test_what_may_change_something_else_does_not(sample):
    assert not read_code(held(sample)).only_reads


class IndexedByAMethod(Held):
    def two(self):
        return self[self.tensors]

    def __getitem__(self, index):
        if index is not self.tensors:
            self.two()
        index += [1]
        return 0


@pytest.mark.parametrize(
    "dataset", [Subset(held(changes_its_index), torch.arange(3)), IndexedByAMethod()], ids=type
)
def test_an_index_of_others_may_be_no_number(dataset):
    assert read_code(held(changes_its_index)).only_reads
    assert not read_code(dataset).only_reads


GIVEN = {
    **dict.fromkeys(
        ["cat", "concat", "stack", "concatenate", "hstack", "vstack"], lambda array: ([array],)
    ),
    **dict.fromkeys(["arange", "empty", "eye", "ones", "zeros"], lambda _: (3,)),
    **dict.fromkeys(["repeat", "tile", "full_like"], lambda array: (array, 1)),
    "full": lambda _: ((3,), 1),
    "linspace": lambda _: (0, 3),
    "tensor": lambda array: (array.numpy(),),
    "one_hot": lambda array: (array.long(),),
}
"""What makers of arrays are called with, if not with an array alone."""
ARRAY_MAKERS = [maker for maker in MAKERS.values() if maker not in BUILTINS]


@pytest.mark.parametrize("maker", ARRAY_MAKERS, ids=lambda maker: maker.__name__)
def test_arrays_of_makers_are_new(maker):
    is_of_numpy = getattr(np, maker.__name__, None) is maker
    array = np.arange(3) if is_of_numpy else torch.arange(3)
    made = maker(*GIVEN.get(maker.__name__, lambda array: (array,))(array))
    assert not np.shares_memory(np.asarray(made), np.asarray(array))
