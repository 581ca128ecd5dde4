"""Datasets of torch.utils.data, tensors, arrays and lists: recognised, native, and torch's batches."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from torch.utils.data._utils import collate

import fastload
from fastload import Loader, lanes
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same, epochs
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS


class MaskedTensor(torch.Tensor):
    """A subclass, of which torch makes batches."""


def pairs(n=20, start=0):
    x = torch.arange(start, start + 3.0 * n).reshape(n, 3)
    return TensorDataset(x, torch.arange(start, start + n))


def listed(n=12):
    draw = random.Random(3)
    return [draw.randrange(-n, n) for _ in range(2 * n)]


LOWERED = {
    "tensors": lambda: pairs(),
    "one tensor": lambda: TensorDataset(torch.arange(9, dtype=torch.int16)),
    "subset": lambda: Subset(pairs(12), listed()),
    "subset of array": lambda: Subset(pairs(12), np.array(listed())),
    "subset of tensor": lambda: Subset(pairs(12), torch.tensor(listed())),
    "subset of tuple": lambda: Subset(pairs(12), tuple(listed())),
    "subset of range": lambda: Subset(pairs(12), range(1, 12, 3)),
    "empty subset": lambda: Subset(pairs(12), []),
    "subset of subset": lambda: Subset(Subset(pairs(12), range(11, -1, -1)), [5, -1, 0, 5]),
    "split": lambda: random_split(pairs(17), [0.5, 0.5])[1],
    "concat": lambda: ConcatDataset([pairs(5), pairs(7, 100), pairs(1, 500)]),
    "sum": lambda: pairs(4) + pairs(3, 9),
    "subset of concat": lambda: Subset(ConcatDataset([pairs(5), pairs(7, 100)]), [0, 11, 4, 5, -1]),
    "concat of subsets": lambda: ConcatDataset([Subset(pairs(12), [3, 1]), pairs(2)]),
    "stack": lambda: StackDataset(pairs(6), torch.arange(6.0)),
    "stacked dict": lambda: StackDataset(x=pairs(6), y=[1, 2, 3, 4, 5, 6]),
    "stack of stack": lambda: StackDataset(
        StackDataset(a=pairs(4)), Subset(pairs(6), [5, 1, 2, 3])
    ),
    "tensor": lambda: torch.arange(12.0).reshape(6, 2),
    "vector": lambda: torch.arange(6, dtype=torch.bfloat16),
    "array": lambda: np.arange(12, dtype=np.float32).reshape(6, 2),
    "flat array": lambda: np.arange(6, dtype=np.uint8)[::-1],
    "half array": lambda: np.arange(6, dtype=np.float16),
    "ints": lambda: [3, -1, 2**40, 0, 5],
    "floats": lambda: [0.1, 2.5, float("inf")],
    "bools": lambda: [True, False, True],
    "list of tensors": lambda: [torch.full((2, 2), float(n)) for n in range(7)],
    "list of arrays": lambda: list(np.arange(12).reshape(6, 2)),
    "columns in a subset": lambda: Subset(fastload.Dataset({"x": Rows(np.arange(9.0))}), [8, 0, 1]),
}


@pytest.mark.parametrize("make", LOWERED.values(), ids=LOWERED)
@pytest.mark.parametrize(
    "arguments",
    [{"batch_size": 4}, {"batch_size": None}, {"batch_size": 3, "shuffle": True}],
    ids=["batches", "samples", "shuffled"],
)
def test_recognised_datasets_give_torchs_batches_natively(make, arguments):
    dataset = make()
    if arguments.get("shuffle") and not len(dataset):
        pytest.skip("torch refuses to shuffle nothing")
    assert lanes.choose(Loader(dataset, **arguments, **SIZES)).lane == "native"
    ours, after = epochs(Loader, dataset, lambda: {**arguments, **SIZES})
    torchs, torchs_after = epochs(DataLoader, dataset, lambda: arguments)
    assert_same(ours, torchs)
    assert torch.equal(after, torchs_after)


def test_rows_across_memory_become_contiguous_batches():
    dataset = TensorDataset(torch.arange(60.0).reshape(6, 10).T, torch.arange(10).flip(0)[::1])
    assert_same(list(Loader(dataset, 4, **SIZES)), list(DataLoader(dataset, 4)))


class Halves(TensorDataset):
    def __getitem__(self, index):
        return tuple(value / 2 for value in super().__getitem__(index))


class Named(TensorDataset):
    classes = ("a", "b")


class Own(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return hash(index)  # the index, by a function that is not read


class Reversed(list):
    """Returns its last item for 0."""

    def __getitem__(self, index):
        return super().__getitem__(-1 - index)


REFUSED = {
    "subclass": (lambda: Halves(torch.arange(4)), "Halves makes its samples in Python"),
    "trusting no subclass": (lambda: Named(torch.arange(4)), "Named makes its samples in Python"),
    "inside": (lambda: Subset(Own(), [1, 2]), "Own makes its samples in Python"),
    "gradients": (
        lambda: TensorDataset(torch.zeros(3, requires_grad=True)),
        "requires gradients",
    ),
    "sparse": (lambda: TensorDataset(torch.eye(3).to_sparse()), "dense tensors"),
    "subclass of tensor": (
        lambda: TensorDataset(torch.nn.Parameter(torch.zeros(3), requires_grad=False)),
        "Parameter",
    ),
    "index out of range": (lambda: Subset(pairs(3), [0, 3]), "integers from -3 to 2"),
    "index of another type": (lambda: Subset(pairs(3), [0, True]), "integers from -3 to 2"),
    "indices by label": (lambda: Subset(pairs(3), {0: 2, 1: 0}), "the indices of the Subset are a"),
    "indices in reverse": (lambda: Subset(pairs(3), Reversed([0, 2])), "Reversed"),
    "different samples": (lambda: ConcatDataset([pairs(3), [1, 2]]), "different structure"),
    "different dtypes": (
        lambda: ConcatDataset([TensorDataset(torch.zeros(2)), TensorDataset(torch.ones(2).int())]),
        "do not fit together",
    ),
    "list of two shapes": (
        lambda: [torch.zeros(2), torch.zeros(3)],
        "the items of the list do not fit together",
    ),
    "builtin": (
        lambda: range(3),
        "range makes its samples in Python: its __len__ is no function",
    ),
    "text": (lambda: ["a", "b"], "the list holds str"),
    "many tensors": (lambda: [torch.zeros(2)] * 101, "more than 100 torch.Tensors"),
    "many parts": (lambda: ConcatDataset([pairs(1)] * 101), "more than 100 datasets of tensors"),
    "mixed": (lambda: [1, 2.0], "all floats or all bools"),
    "nothing": (list, "the list is empty"),
    "huge ints": (lambda: [1, 2**64], "64 bits"),
    "dates": (lambda: np.array(["2020-01-01"], "datetime64[D]"), "numbers and booleans"),
}


@pytest.mark.parametrize(("make", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exact_is_left_to_torch_with_a_reason(make, why):
    loader = Loader(make(), num_workers=1)
    choice = lanes.choose(loader)
    assert choice.lane == "process"
    assert why in choice.why
    assert why in loader.explain()
    loader.lane = "native"
    with pytest.raises(ValueError, match="lane='native' is not possible") as refused:
        iter(loader)
    assert choice.why in str(refused.value)
    assert choice.change in str(refused.value)


def test_a_replaced_method_is_noticed(monkeypatch):
    loader = Loader(pairs(), num_workers=1)
    assert lanes.choose(loader).lane == "native"
    with monkeypatch.context() as patch:
        patch.setattr(TensorDataset, "__getitem__", lambda self, index: index)
        choice = lanes.choose(loader)
        assert choice.lane == "process"
        assert "TensorDataset.__getitem__ was replaced" in choice.why
    assert lanes.choose(loader).lane == "native"


@pytest.mark.parametrize(
    "make",
    [
        *(LOWERED[name] for name in ("tensors", "subset", "tensor", "array", "flat array")),
        lambda: StackDataset(a=pairs(6), b=Subset(pairs(8), [7, 0, 1, 2, 3, 4])),
    ],
)
@pytest.mark.parametrize("order", [SequentialSampler, RandomSampler])
def test_a_batch_sampler_as_sampler_gathers_batches(make, order):
    dataset = make()

    def arguments():
        return {"sampler": BatchSampler(order(dataset), 4, False), "batch_size": None}

    choice = lanes.choose(Loader(dataset, **arguments(), **SIZES))
    assert (choice.lane, choice.batched) == ("native", True)
    ours, after = epochs(Loader, dataset, lambda: {**arguments(), **SIZES})
    torchs, torchs_after = epochs(DataLoader, dataset, arguments)
    assert_same(ours, torchs)
    assert torch.equal(after, torchs_after)


def test_a_batch_sampler_over_an_order_of_ones_own():
    dataset = pairs(6)

    def arguments():
        return {"sampler": BatchSampler([4, 1, 0, 5, 5], 2, False), "batch_size": None}

    assert lanes.choose(Loader(dataset, **arguments(), **SIZES)).lane == "native"
    assert_same(
        list(Loader(dataset, **arguments(), **SIZES)), list(DataLoader(dataset, **arguments()))
    )


@pytest.mark.parametrize("make", [lambda: pairs(3) + pairs(3), lambda: [1, 2, 3]])
def test_what_has_no_batch_for_a_list_of_indices_raises_as_with_torch(make):
    sampler = BatchSampler(range(3), 2, False)
    loader = Loader(make(), sampler=sampler, batch_size=None, num_workers=1)
    assert "indexed with a list" in lanes.choose(loader).why
    with pytest.raises(TypeError):
        list(loader)
    with pytest.raises(TypeError):
        list(DataLoader(make(), sampler=sampler, batch_size=None))


def changed_later():
    """Yields datasets of several kinds, each with a change of it."""
    tensors = pairs(6)

    def rewrite():
        tensors.tensors[0].mul_(2)

    def replace():
        tensors.tensors = tuple(2 * tensor for tensor in tensors.tensors)

    def resize():
        tensors.tensors[1].set_(torch.arange(100, 106))

    subset = Subset(pairs(9), [1, 2, 3])
    values = [5, 6, 7]
    yield "rewritten", tensors, rewrite
    yield "replaced", tensors, replace
    yield "moved", tensors, resize
    yield "indices in place", subset, lambda: subset.indices.__setitem__(1, 8)
    yield "indices anew", subset, lambda: setattr(subset, "indices", np.array([8, 7]))
    yield "another dataset", subset, lambda: setattr(subset, "dataset", pairs(9, 50))
    tensors_listed = [torch.zeros(2), torch.ones(2), torch.zeros(2)]
    arrays_listed = [np.zeros(2), np.ones(2)]
    numbered = Subset(pairs(9), np.array([1, 2, 3]))
    yield (
        "a tensor of a list",
        tensors_listed,
        lambda: tensors_listed.__setitem__(1, 2 * torch.ones(2)),
    )
    yield "a tensor of a list in place", tensors_listed, lambda: tensors_listed[2].add_(7)
    yield (
        "the memory of a tensor",
        tensors_listed,
        lambda: tensors_listed[0].set_(torch.arange(2.0)),
    )
    yield "the shapes of tensors", tensors_listed, lambda: [t.unsqueeze_(0) for t in tensors_listed]
    yield "arrays of a list", arrays_listed, lambda: arrays_listed[1].fill(5)
    yield "indices of an array", numbered, lambda: numbered.indices.__setitem__(0, 7)
    yield "a zero", (zeros := [0.0, 1.0]), lambda: zeros.__setitem__(0, -0.0)
    yield "values in place", values, lambda: values.__setitem__(slice(None), [9, 8, 7])
    yield "values of another type", values, lambda: values.__setitem__(slice(None), [1.5, 8.0, 7.0])


@pytest.mark.parametrize("name", [name for name, *_ in changed_later()])
def test_changes_between_epochs_take_effect(name):
    dataset, change = next(made for each, *made in changed_later() if each == name)
    loader = Loader(dataset, 4, **SIZES)
    for _ in range(2):
        before = list(loader)
    change()
    assert lanes.choose(loader).lane == "native"
    after = list(loader)
    assert_same(after, list(DataLoader(dataset, 4)))
    assert repr(after) != repr(before)


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        (lambda data, patch: data.tensors[0].requires_grad_(), True),
        (lambda data, patch: setattr(data.tensors[0], "data", data.tensors[0].data.conj()), True),
        (lambda data, patch: setattr(data, "tensors", [MaskedTensor(data.tensors[0])]), True),
        (lambda data, patch: setattr(data, "__getitems__", lambda at: [(7,)] * len(at)), True),
        (lambda data, patch: patch.setattr(TensorDataset, "__getitem__", lambda *_: (8,)), True),
        (
            lambda data, patch: patch.setitem(
                collate.default_collate_fn_map, torch.Tensor, lambda batch, **_: len(batch)
            ),
            True,
        ),
        (
            lambda data, patch: patch.setattr(
                collate, "default_collate_fn_map", {torch.Tensor: lambda batch, **_: len(batch)}
            ),
            True,
        ),
        (lambda data, patch: data.tensors[0].mul_(2), False),
    ],
)
def test_what_changes_a_dataset_that_was_kept_is_noticed(change, is_noticed, monkeypatch):
    dataset = TensorDataset(torch.arange(8.0).to(torch.complex64) * (1 + 2j))
    loader = Loader(dataset, 4)
    for _ in range(2):
        list(loader)
    kept = loader._settled
    assert kept.choice.lane == "native"
    change(dataset, monkeypatch)
    batches = list(loader)
    assert (loader._settled is not kept) == is_noticed
    wanted = list(DataLoader(dataset, 4))
    assert_same(batches, wanted)
    assert repr(batches) == repr(wanted)


@pytest.mark.parametrize("make", [torch.arange, np.arange])
def test_a_tensor_and_an_array_are_kept_until_they_change(make):
    dataset = make(12)
    loader = Loader(dataset, 3)
    for _ in range(2):
        list(loader)
    kept = loader._settled
    dataset[:] = make(20)[8:]
    assert_same(list(loader), list(DataLoader(dataset, 3)))
    assert loader._settled is kept
    if isinstance(dataset, torch.Tensor):
        dataset.__getitems__ = lambda indices: [torch.ones(2)] * len(indices)
        assert_same(list(loader), list(DataLoader(dataset, 3)))
        del dataset.__getitems__
        list(loader)
        kept = loader._settled
        dataset.unsqueeze_(1)
    else:
        dataset.shape = 6, 2
    assert_same(list(loader), list(DataLoader(dataset, 3)))
    assert loader._settled is not kept


def test_a_dataset_that_stops_to_be_native_is_torchs_again():
    dataset = Subset(pairs(6), [0, 1, 2])
    loader = Loader(dataset, 2, num_workers=1)
    assert lanes.choose(loader).lane == "native"
    dataset.dataset = Own()
    assert lanes.choose(loader).lane == "process"
    assert_same(list(loader), list(DataLoader(dataset, 2)))


def test_what_grows_with_the_dataset_is_kept_while_nothing_changes():
    dataset = Subset(pairs(9), [1, 2, 3])
    loader = Loader(dataset, num_workers=1)
    lanes.choose(loader)
    kept = {place: each.made for place, each in loader._memo._kept.items()}
    assert kept
    lanes.choose(loader)
    again = {place: each.made for place, each in loader._memo._kept.items()}
    assert again.keys() == kept.keys()
    assert all(again[place] is made for place, made in kept.items())
    dataset.dataset, dataset.indices = [1, 2, 3], range(3)
    lanes.choose(loader)
    assert not kept.keys() & loader._memo._kept.keys()


@pytest.mark.parametrize("name", LOWERED)
def test_columns_are_made_once(name):
    dataset = LOWERED[name]()
    loader = Loader(dataset, num_workers=1)
    first, again = ([leaf.native for _, leaf in lanes.choose(loader).lowered.leaves] for _ in "ab")
    if name not in ("one tensor", "columns in a subset", "subset of concat"):
        assert all(one is other for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("name", LOWERED)
def test_a_native_form_is_kept_while_nothing_changes(name):
    loader = Loader(LOWERED[name](), 4, **SIZES)
    chosen = []
    for _ in range(3):
        list(loader)
        chosen.append(loader._settled)
    assert chosen[1] is chosen[2]
    assert (chosen[2] is None) == ("columns" in name)


class Declared:
    """A class without a base, which says what its samples are made of."""

    def __init__(self):
        self.x = np.arange(10.0).reshape(5, 2)

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return {"x": torch.from_numpy(self.x)[index], "y": torch.tensor(index)}

    def __fastload__(self):
        return {"x": Rows(self.x), "y": Rows(np.arange(5))}


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: Subset(d, [4, 0])])
def test_a_class_declares_its_columns(wrap):
    dataset = wrap(Declared())
    loader = Loader(dataset, 2, **SIZES)
    assert lanes.choose(loader).lane == "native"
    assert_same(list(loader), list(DataLoader(dataset, 2)))


def test_a_declaration_that_is_no_structure_is_an_error():
    class Wrong(Declared):
        def __fastload__(self):
            return {"x": 1}

    with pytest.raises(TypeError, match="not a column"):
        iter(Loader(Wrong(), num_workers=1))


@pytest.mark.parametrize("fn", [lambda samples: samples, torch.utils.data.default_convert])
def test_light_samples_with_a_collation_of_ones_own_are_torchs(fn):
    loader = Loader(pairs(4), 2, num_workers=1, collate_fn=fn)
    choice = lanes.choose(loader)
    assert (choice.lane, choice.seam) == ("process", False)
    assert_same(list(loader), list(DataLoader(pairs(4), 2, collate_fn=fn)))


def test_batches_of_lists_of_indices_are_torchs():
    dataset = TensorDataset(torch.arange(24.0).reshape(8, 3))
    arguments = {"batch_size": 2, "sampler": BatchSampler(range(8), 2, drop_last=True)}
    loader = Loader(dataset, num_workers=1, **arguments)
    assert "lists of indices" in lanes.choose(loader).why
    assert_same(list(loader), list(DataLoader(dataset, **arguments)))


def test_a_bool_among_indices_is_no_index():
    dataset = Subset(TensorDataset(torch.arange(8.0)), [np.int64(1), True])
    assert lanes.choose(Loader(dataset, num_workers=1)).lane == "process"
