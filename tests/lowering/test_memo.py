"""What lowering keeps between epochs: found while nothing changes, made anew when anything does."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from fastload import Loader, _lib, lanes
from fastload.lowering.memo import Memo
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS


def test_items_are_the_same_only_if_they_are_the_very_objects():
    items = [10**9 + n for n in range(5)]
    assert _lib.same_items(items, list(items))
    assert not _lib.same_items(items, items[:-1])
    assert not _lib.same_items([1], [True])
    assert not _lib.same_items([0.0], [-0.0])
    assert _lib.same_items([], [])


def counted(memo, **arguments):
    calls = []
    arguments["make"] = lambda *_: calls.append(1) or len(calls)
    return calls, arguments


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items.append(5),
        lambda items: items.__setitem__(0, 1.0),
        lambda items: items.__setitem__(0, True),
        lambda items: items.reverse(),
        lambda items: items.pop(),
    ],
)
def test_a_changed_list_is_made_anew(change):
    memo, items = Memo(), [1, 2, 3]
    calls, arguments = counted(memo, use="x", items=items)
    for expected in (1, 1):
        assert memo.of_list(**arguments) == expected
    change(items)
    assert memo.of_list(**arguments) == 2
    assert memo.of_list(**arguments, settings="others") == 3
    assert len(calls) == 3


def test_a_changed_array_is_made_anew_from_a_copy():
    memo, items, seen = Memo(), np.arange(4), []
    made = [memo.of_array("x", items, seen.append) for _ in range(2)]
    items[2] = 9
    memo.of_array("x", items, seen.append)
    memo.of_array("x", items.view(np.uint64), seen.append)
    memo.of_array("x", items[::2], seen.append)
    assert made == [None, None]
    assert [each.tolist() for each in seen] == [[0, 1, 2, 3], [0, 1, 9, 3], [0, 1, 9, 3], [0, 9]]


def test_things_are_kept_alive_so_that_no_other_takes_their_place():
    memo = Memo()
    first = memo.of_objects("x", (object(),), lambda: "first")
    others = [memo.of_objects("x", (object(),), lambda: "other") for _ in range(100)]
    assert first == "first"
    assert set(others) == {"other"}


def test_what_is_not_asked_for_is_forgotten():
    memo, thing = Memo(), object()
    memo.of_objects("x", (thing,), lambda: 1)
    memo.sweep()
    assert memo.of_objects("x", (thing,), lambda: 2) == 1
    memo.sweep()
    memo.sweep()
    assert memo.of_objects("x", (thing,), lambda: 2) == 2


def test_one_of_many_indices_changes_its_type_between_epochs():
    indices = list(range(5000))
    subset = Subset(TensorDataset(torch.arange(5000.0)), indices)
    loader = Loader(subset, 500, **SIZES)
    assert lanes.choose(loader).lane == "native"
    indices[1] = True
    assert lanes.choose(loader).lane == "process"


def test_one_of_many_tensors_changes_between_epochs():
    tensors = [torch.full((2,), float(n)) for n in range(300)]
    loader = Loader(tensors, 50, **SIZES)
    before = list(loader)
    tensors[123] = -tensors[123]
    tensors[7].mul_(3)
    after = list(loader)
    assert_same(after, list(DataLoader(tensors, 50)))
    assert not torch.equal(torch.cat(before), torch.cat(after))
    tensors[5].requires_grad_()
    assert lanes.choose(loader).lane == "process"
