"""`default_collate` is torch's, whatever it is given: values, dtypes, types, and errors to the word."""

from collections import OrderedDict, UserDict, UserList, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from torch.utils.data import default_collate as torchs
from torch.utils.data._utils import collate

from fastload import Dataset, Loader, lanes
from fastload.collate import default_collate
from fastload.columns import Rows
from tests.shared.compare import assert_same

Pair = namedtuple("Pair", ["x", "y"])


class Tagged(torch.Tensor):
    """A tensor of a type of one's own."""


class Text(str):
    """Text of a type of one's own."""


def outcome(function: Any, batch: Any) -> Any:
    try:
        return function(batch)
    except Exception as error:
        return type(error), str(error)


def assert_torchs(batch: Any) -> None:
    want, got = outcome(torchs, batch), outcome(default_collate, batch)
    assert_same(got, want)
    if isinstance(want, torch.Tensor):
        assert got.stride() == want.stride()


KINDS = [
    st.integers(-(2**63), 2**63 - 1),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.just(torch.arange(3)),
    st.just(np.float32(1.5)),
    st.just(np.arange(2)),
    st.none(),
]
SHAPES = st.recursive(
    st.sampled_from(KINDS).map(lambda kind: ("leaf", kind)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: ("list", parts)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: ("tuple", parts)),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda parts: ("dict", parts)),
    ),
    max_leaves=6,
)


def drawn(data: st.DataObject, shape: Any) -> Any:
    kind, inner = shape
    if kind == "leaf":
        return data.draw(inner)
    if kind == "dict":
        return {key: drawn(data, part) for key, part in inner.items()}
    return (list if kind == "list" else tuple)(drawn(data, part) for part in inner)


@given(st.data(), SHAPES, st.integers(1, 4))
def test_structures(data: st.DataObject, shape: Any, count: int):
    assert_torchs([drawn(data, shape) for _ in range(count)])


def full(*shape: int, **how: Any) -> torch.Tensor:
    return torch.rand(*shape, **how)


BATCHES: dict[str, Any] = {
    "large": [full(3, 100, 80) for _ in range(5)],
    "dtypes that differ": [full(200, 100), full(200, 100).double()],
    "shapes that differ": [full(200, 100), full(100, 200)],
    "gradients": [full(200, 100, requires_grad=True)] * 3,
    "one gradient": [full(200, 100), full(200, 100, requires_grad=True)],
    "channels last": [full(9, 3, 40, 40).contiguous(memory_format=torch.channels_last)] * 3,
    "transposed": [full(200, 100).t()] * 3,
    "sparse": [full(200, 100).to_sparse()] * 2,
    "own type": [full(200, 100).as_subclass(Tagged)] * 2,
    "another type": [full(200, 100), full(200, 100).as_subclass(Tagged)],
    "a list among tensors": [full(100, 200), [1.0]],
    "conjugated": [torch.rand(200, 100, dtype=torch.complex64).conj()] * 2,
    "half": [full(200, 200).bfloat16()] * 2,
    "bools": [full(400, 200) > 0.5] * 2,
    "empty": [torch.empty(0, 3)] * 2,
    "arrays": [np.random.rand(100, 100)] * 3,
    "arrays in Fortran's order": [np.asfortranarray(np.random.rand(100, 100))] * 3,
    "arrays of big-endian numbers": [np.zeros(30_000, ">f4")] * 3,
    "arrays of text": [np.array(["a"])] * 2,
    "arrays of times": [np.zeros(3, "datetime64[s]")] * 2,
    "arrays that differ": [np.zeros(20_000), np.zeros(20_000, "f4")],
    "an array and a tensor": [np.zeros(20_000), torch.zeros(20_000)],
    "large numbers": [1, 2**63],
    "mixed numbers": [1, 2.5],
    "bool and int": [True, 2],
    "int and bool": [2, True],
    "float and int": [2.5, 1],
    "number and text": [1, "a"],
    "lists of other lengths": [[1, 2], [1]],
    "tuples of other lengths": [(1, 2), (1,)],
    "list and tuple": [[1, 2], (1, 2)],
    "keys that are missing": [{"a": 1}, {"b": 2}],
    "more keys": [{"a": 1}, {"a": 3, "b": 2}],
    "named tuples": [Pair(1, "a"), Pair(2, "b")],
    "ordered": [OrderedDict(a=1, b=2.0)] * 2,
    "other mappings": [UserDict(a=1)] * 2,
    "other sequences": [UserList([1])] * 2,
    "own text": [Text("a"), Text("b")],
    "nothing": [],
    "objects": [object(), object()],
    "a tuple of samples": (1, 2, 3),
    "empty containers": [[], []],
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str):
    assert_torchs(BATCHES[name])
    assert_torchs([{"x": sample} for sample in BATCHES[name]])
    assert_torchs([(sample, 1) for sample in BATCHES[name]])


def test_memory_is_the_batchs_own():
    rows = full(4, 300, 100)
    batch = default_collate(list(rows))
    batch.zero_()
    assert rows.all()
    numbers = default_collate([1.0, 2.0])
    numbers.resize_(5)


def test_what_torch_was_taught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(collate.default_collate_fn_map, int, lambda batch, **_: sum(batch))
    assert default_collate([{"a": 1}, {"a": 2}]) == {"a": 3}


@pytest.mark.parametrize(
    "samples", [[1, 2], [{"x": 1.0, "y": (3,)}] * 2, [np.ones(2)] * 2, [torch.ones(2)] * 2]
)
def test_the_default_device(samples: Any):
    torch.set_default_device("meta")
    try:
        assert repr(default_collate(samples)) == repr(torchs(samples))
    finally:
        torch.set_default_device(None)


def test_a_loader_takes_it_for_torchs():
    columns = Dataset({"x": Rows(torch.rand(9, 20_000)), "y": Rows(torch.arange(9))})
    for dataset, lane in ((columns, "native"), ([{"x": 1.0}] * 9, "process")):
        loader = Loader(dataset, 4, collate_fn=default_collate, num_workers=1)
        assert lanes.choose(loader).lane == lane
        assert_same(list(loader), list(DataLoader(dataset, 4)))
