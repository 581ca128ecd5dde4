"""Ragged columns; torch's DataLoader over lists of slices is the oracle."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import fastload
from fastload import _lib
from fastload.columns import Ragged, Rows
from fastload.memory import layout
from tests.shared.compare import MANY_WORKERS, assert_same, mapped, outcomes
from tests.shared.sizes import SIZES
from tests.shared.streams import feed

pytestmark = MANY_WORKERS

LENGTHS = [2, 0, 2, 5, 2, 2, 1, 0, 0, 4]
OFFSETS = np.cumsum([0, *LENGTHS])


def slices(values, offsets):
    return [values[a:b] for a, b in itertools.pairwise(offsets)]


def batches(loader):
    """Returns what a loader gives, the words of errors in their places."""
    return [
        str(each).partition(" in which")[0] if isinstance(each, RuntimeError) else each
        for each in outcomes(loader)
    ]


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.uint8], ids=str)
@pytest.mark.parametrize("row", [(), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_samples_are_slices(dtype, row, width):
    values = torch.arange(18 * int(np.prod(row))).reshape(18, *row).to(dtype)
    column = Ragged(values, OFFSETS.astype(width))
    assert_same([column[index] for index in range(-10, 0)], slices(values, OFFSETS))


@pytest.mark.parametrize("part", [np.s_[::2], np.s_[::-1], np.s_[:, 1:]], ids=str)
def test_values_may_lie_in_any_way(part):
    values = np.arange(72.0).reshape(36, 2)[part]
    want = [torch.from_numpy(each.copy()) for each in slices(values[:18], OFFSETS)]
    assert_same(list(Ragged(values, OFFSETS)), want)


@given(lengths=st.lists(st.integers(0, 3), max_size=12), batch=st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_batches_are_those_of_torch(lengths, batch):
    offsets = np.cumsum([0, *lengths])
    values = torch.randn(int(offsets[-1]), 2)
    got = fastload.Loader(Ragged(values, offsets), batch, lane="native", **SIZES)
    assert_same(batches(got), batches(DataLoader(slices(values, offsets), batch)))


def test_unequal_lengths_are_an_error_in_the_place_of_their_batch():
    column = Ragged(torch.arange(18), OFFSETS)
    loader = fastload.Loader(column, 2, **SIZES)
    found = batches(loader)
    assert found[0].startswith("stack expects each tensor to be equal size, but got [2] at entry 0")
    assert found[2].tolist() == [[9, 10], [11, 12]]


def rows(array, *steps):
    return _lib.Rows(*layout.of_array(np.ascontiguousarray(array)), *steps)


def loaded(column, form, indices, *, batched=True):
    """Returns one batch of a column that samples show in some form."""
    program = _lib.Program([column], {"x": _lib.Leaf(0, form)})
    limits = {"depth": 1, "budget_bytes": 1 << 20, "threads": 2}
    stream = _lib.Stream(program, batched=batched, **limits)
    feed(stream, *([indices] if batched else indices))
    return stream.take(0)["x"], [program.sample(index)["x"] for index in indices]


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
CASTS = [(to, [each for each in INTEGERS if each != to]) for to in INTEGERS]
CASTS += [("float64", ["float16", "float32", *INTEGERS])]
CASTS += [("float32", ["float16", "float64", *INTEGERS])]


@pytest.mark.parametrize(("to", "start"), [(to, each) for to, many in CASTS for each in many])
def test_elements_are_converted_as_numpy_converts_them(to, start):
    bits = np.random.default_rng(0).integers(0, 256, 4096, np.uint8)
    values = np.concatenate([bits.view(start), np.array([0, 1], start)])
    with np.errstate(all="ignore"):
        want = values.astype(to)
    for source in (
        rows(values, ("cast", to)),
        _lib.Ragged(rows(values, ("cast", to)), rows([0, len(values)])),
    ):
        samples = len(source)
        batch, _ = loaded(source, "tensor", list(range(samples)))
        np.testing.assert_array_equal(batch.numpy().reshape(-1), want)
        assert batch.numpy().dtype == want.dtype


@pytest.mark.parametrize(
    ("start", "to"), [("float32", "int64"), ("bool", "float64"), ("int8", "float16")]
)
def test_other_conversions_are_refused(start, to):
    with pytest.raises(ValueError, match=f"cannot read elements of {start} as {to}"):
        rows(np.zeros(3, start), ("cast", to))


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
@pytest.mark.parametrize("row", [(), (3,), (2, 40)], ids=str)
def test_lists_are_collated_by_place(dtype, row):
    count = 4 * int(np.prod(row))
    values = (np.arange(count) % 5).reshape(4, *row).astype(dtype)
    column = _lib.Ragged(rows(values), rows([0, 2, 2, 4]))
    batch, samples = loaded(column, "list", [2, 0, 2])
    want = [values[2:].tolist(), values[:2].tolist(), values[2:].tolist()]
    assert_same(samples, want)
    assert_same(batch, torch.utils.data.default_collate(want))
    alone, _ = loaded(column, "list", [1], batched=False)
    assert alone == []


def test_lists_of_different_lengths_are_the_error_of_torch():
    column = _lib.Ragged(rows(np.arange(3)), rows([0, 1, 3]))
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        loaded(column, "list", [0, 1])


@pytest.mark.parametrize("offsets", [[0, 19], [-1, 3], [4, 3], np.zeros(0, np.int64)], ids=str)
def test_offsets_outside_of_the_values_are_refused(offsets):
    with pytest.raises(ValueError, match=r"cannot be read: by its offsets it is .* of 18 values"):
        Ragged(np.zeros(18), offsets)


def test_offsets_that_change_later_are_an_error():
    offsets = OFFSETS.copy()
    column = Ragged(np.zeros(18), offsets)
    offsets[1] = 100
    with pytest.raises(ValueError, match=r"sample 0 cannot be read: .* 0\.\.100 of 18 values"):
        column[0]


def test_offsets_are_whole_numbers():
    with pytest.raises(ValueError, match="offsets are one int64 or int32 per row, not float64"):
        Ragged(np.zeros(18), [0.0, 1.0])


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=str
)
def test_ragged_columns_are_copied_and_pickled(again):
    column = Ragged(torch.arange(18.0), OFFSETS)
    assert_same(list(again(column)), list(column))


def test_ragged_columns_describe_themselves():
    assert repr(Ragged(np.zeros((18, 2)), OFFSETS)) == "Ragged(10 of float64, varying shape)"


def test_a_tensor_that_torch_moves_is_found_again():
    values = torch.arange(18.0)
    column = Ragged(values, OFFSETS)
    values.share_memory_()
    assert column[3].tolist() == [4, 5, 6, 7, 8]


def test_ragged_columns_stand_in_structures():
    values = torch.arange(20.0)
    offsets = np.arange(0, 21, 2)
    structure = {"tokens": Ragged(values, offsets), "label": Rows(torch.arange(10))}
    got = list(fastload.Loader(fastload.Dataset(structure), 3, lane="native", **SIZES))
    tokens = torch.stack(slices(values, offsets))
    want = list(DataLoader(list(zip(tokens, torch.arange(10), strict=True)), 3))
    assert_same(got, [{"tokens": x, "label": y} for x, y in want])
    assert_same(mapped(structure, lambda column: column[0]), fastload.Dataset(structure)[0])
