"""What lowering keeps between epochs: found while nothing changes, made anew when anything does."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from fastload import Loader, _lib, lanes
from fastload.lowering import lower
from fastload.lowering.memo import Memo
from tests.lowering.reading.classes import made
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


def tensors():
    return [torch.arange(6.0).reshape(2, 3) + place for place in range(5)]


def arrays():
    return [np.arange(6, dtype=np.float32).reshape(2, 3) + place for place in range(5)]


def exchanged(lists):
    lists[3] = lists[3] + 0


def written(lists):
    memory = np.asarray(lists[4])
    memory[1, 2] += 1


def split_elsewhere(lists):
    joined = torch.cat(lists) if isinstance(lists[0], torch.Tensor) else np.concatenate(lists)
    lists[:] = [joined[:1], *(joined[place : place + 2] for place in (1, 3, 5)), joined[7:]]


def given_other_memory(lists):
    if isinstance(lists[2], torch.Tensor):
        lists[2].data = lists[2].T.contiguous()
    else:
        lists[2].shape = 3, 2


def negated(lists):
    if isinstance(lists[1], torch.Tensor):
        lists[1].data = torch._neg_view(lists[1])
    else:
        np.negative(lists[1], out=lists[1])


def resized(lists):
    if isinstance(lists[4], torch.Tensor):
        lists[4].resize_(1, 3)
    else:
        lists[4].resize((1, 3), refcheck=False)


CHANGES = [exchanged, written, split_elsewhere, given_other_memory, negated, resized, list.pop]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", [tensors, arrays])
def test_joined_arrays_are_known_again_until_one_changes(make, change):
    lists = make()
    whole = torch.cat(lists) if make is tensors else np.concatenate(lists)
    before, lengths = list(lists), [2] * 5
    assert _lib.are_joined(lists, before, whole, lengths)
    assert _lib.are_joined(list(lists), before, torch.as_tensor(whole), lengths)
    assert not _lib.are_joined(lists, before, whole, [2, 2, 2, 1, 3])
    assert not _lib.are_joined(lists, before, whole[:-1], lengths)
    change(lists)
    assert not _lib.are_joined(lists, before, whole, lengths)


def test_what_gets_a_gradient_is_joined_anew():
    lists = [torch.ones(3), torch.zeros(3)]
    whole = torch.cat(lists)
    assert _lib.are_joined(lists, list(lists), whole, [3, 3])
    lists[1].requires_grad_()
    assert not _lib.are_joined(lists, list(lists), whole, [3, 3])


@pytest.mark.parametrize("make", [tensors, arrays])
def test_arrays_in_lists_change_between_epochs(make):
    lists = [each for _ in range(200) for each in make()]  # more batches than the consumer makes
    dataset = made("return self.lists[i], i", {"lists": lists}, len(lists))
    loader = Loader(dataset, batch_size=64, **SIZES)
    for change in (lambda _: None, lambda _: None, exchanged, written):
        change(lists)
        for batch, want in zip(loader, DataLoader(dataset, 64), strict=True):
            assert_same(batch, want)
    assert lanes.choose(loader).lane == "native"


def test_rows_that_a_list_picks_are_kept_until_it_changes():
    picks, memo = [1000 + n for n in range(23)], Memo()
    dataset = made("return self.x[self.picks[i]]", {"x": torch.rand(2000), "picks": picks})

    def column():
        [(_, leaf)] = lower(dataset, memo).leaves
        return leaf.native

    first = column()
    assert column() is first
    picks[3] = 7
    assert column() is not first
    assert_same(list(Loader(dataset, 4, **SIZES)), list(DataLoader(dataset, 4)))
