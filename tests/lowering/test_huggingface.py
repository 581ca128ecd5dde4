"""Hugging Face datasets, unchanged; torch's DataLoader over the same dataset is the oracle."""

import functools

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    SequentialSampler,
    default_collate,
)

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .huggingface import FORMATS, chunked, column, same, table, theirs

datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
from datasets import (  # noqa: E402 (after it is known to be there)
    ClassLabel,
    Features,
    LargeList,
    List,
    Value,
)

pytestmark = MANY_WORKERS

DRAW = np.random.default_rng(0)


def numbers(kind, count):
    """Returns Python numbers of one kind: small ones, and the largest."""
    if kind == "bool":
        return (DRAW.random(count) < 0.5).tolist()
    if "int" in kind:
        limits = np.iinfo(kind)
        drawn = DRAW.integers(limits.min, limits.max, count, kind, endpoint=True)
        return drawn.tolist()
    return DRAW.normal(size=count).astype(kind).tolist()


def lists(kind, length, feature=None):
    return column(feature or List(Value(kind)), lambda index: numbers(kind, length(index)))


KINDS = ["int8", "int32", "int64", "uint32", "float16", "float32", "float64", "bool"]
COLUMNS = {kind: column(Value(kind), lambda _, kind=kind: numbers(kind, 1)[0]) for kind in KINDS}
COLUMNS |= {f"{kind} lists": lists(kind, lambda _: 3) for kind in KINDS}
COLUMNS |= {
    "label": column(ClassLabel(names=["a", "b"]), lambda index: index % 2),
    "text": column(Value("string"), lambda index: "grün 日本 🙂"[: index % 9] * (index % 3)),
    "large text": column(Value("large_string"), str),
    "ragged": lists("float64", lambda index: index // 4),
    "ragged large": lists("int16", lambda index: 1 + index // 4, LargeList(Value("int16"))),
    "empty lists": lists("int64", lambda _: 0),
    "fixed lists": lists("float32", lambda _: 2, List(Value("float32"), length=2)),
    "nested": column(
        List(List(Value("int32"))), lambda index: [numbers("int32", 2)] * (1 + index // 4)
    ),
    "nested fixed": column(
        List(List(Value("float64"), length=2)), lambda _: [numbers("float64", 2)] * 3
    ),
    "struct": column(
        {"x": Value("float64"), "y": List(Value("int32")), "s": Value("string")},
        lambda index: {"x": index / 3, "y": [index, 1], "s": str(index)},
    ),
}
REFUSED = {
    "nulls": (column(Value("int64"), lambda index: None if index == 3 else 1), "holds nulls"),
    "nulls in lists": (column(List(Value("int64")), lambda _: [1, None]), "holds nulls"),
    "no text": (column(Value("string"), lambda index: None if index == 3 else ""), "holds nulls"),
    "uint64": (column(Value("uint64"), lambda _: 1), "Arrow type uint64"),
    "times": (column(Value("timestamp[s]"), lambda _: 1), "Arrow type timestamp"),
    "dicts in lists": (
        column(List({"x": Value("int8")}), lambda _: [{"x": 1}]),
        "Arrow type list<",
    ),
}


VIEWS = {
    "whole": table,
    "chunks": chunked,
    "shuffled": lambda columns: chunked(columns).shuffle(seed=3),
    "selected": lambda columns: table(columns).select([3, 3, 20, 0, 23, 1, 2]),
    "sliced": lambda columns: chunked(columns).select(range(4, 15)),
    "sharded": lambda columns: table(columns).shuffle(seed=2).shard(3, 1),
}


@functools.cache
def seen(view):
    """Returns all columns in a view."""
    return VIEWS[view](COLUMNS)


UNEVEN = ["ragged", "ragged large", "nested"]

try:
    default_collate([np.True_, np.False_])
    UNCOLLATED = []
except TypeError:  # torch 2.6 with NumPy 2
    UNCOLLATED = ["bool"]


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_are_those_of_torch(kind):
    without = set(UNCOLLATED) if kind == "numpy" else set()
    names = [name for name in COLUMNS if name not in UNEVEN and name not in without]
    for view in ("chunks", "shuffled"):
        same(seen(view).with_format(kind, columns=names), batch_size=4)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", UNEVEN)
def test_lists_of_different_lengths_are_those_of_torch(name, kind):
    for view in ("chunks", "shuffled"):
        same(seen(view).with_format(kind, columns=[name]), batch_size=4)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_those_of_torch(view, kind):
    names = ["int8", "float64", "text", "bool lists", "nested fixed", "label"]
    dataset = seen(view).with_format(kind, columns=names)
    same(dataset, batch_size=3, drop_last=True)
    same(dataset, sampler=[5, 1, 1, 0, 2], batch_size=2)


@pytest.mark.parametrize("kind", FORMATS)
def test_single_samples_are_those_of_torch(kind):
    names = ["int64", "float32", "text", "ragged", "nested", "bool lists"]
    same(seen("chunks").with_format(kind, columns=names), batch_size=None)


@pytest.mark.parametrize("name", ["int8", "uint32", "float64", "bool"])
def test_single_numbers_of_the_format_numpy_are_other_than_batches(name):
    dataset = seen("whole").with_format("numpy", columns=[name])
    loader = fastload.Loader(dataset, batch_size=None, num_workers=1)
    assert "another type in batches" in lanes.choose(loader).why


def test_lists_of_indices_are_batches():
    names = ["int8", "float64", "text", "int32 lists", "label"]
    for kind, columns in (("torch", names), ("numpy", names[:2] + names[3:])):
        dataset = seen("chunks").with_format(kind, columns=columns)
        order = BatchSampler(SequentialSampler(dataset), 5, drop_last=False)
        same(dataset, sampler=order, batch_size=None)


def test_empty_and_tiny_datasets():
    for count in (0, 1):
        dataset = table(COLUMNS, 0, count).with_format("torch")
        same(dataset, batch_size=2)


def test_datasets_nest_in_those_of_torch():
    dataset = seen("whole").with_format("torch", columns=["int8", "text"])
    same(ConcatDataset([dataset, dataset]), batch_size=7)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", REFUSED)
def test_other_columns_are_made_in_python(name, kind):
    made, words = REFUSED[name]
    dataset = table({name: made}).with_format(kind)
    choice = lanes.choose(fastload.Loader(dataset, 2, num_workers=1))
    assert choice.lane == "process"
    assert f"column {name!r}: " in choice.why
    assert words in choice.why


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda dataset: dataset.with_transform(dict), "a transform in Python"),
        (lambda dataset: dataset.with_format("arrow"), "its format is arrow"),
        (lambda dataset: dataset.with_format("torch", dtype=torch.float64), "arguments: dtype"),
        (
            lambda dataset: dataset.with_format("torch", ["int8"], output_all_columns=True),
            "adds columns that are not formatted",
        ),
    ],
)
def test_other_formats_are_made_in_python(change, words):
    loader = fastload.Loader(change(seen("whole")), 2, num_workers=1)
    assert words in lanes.choose(loader).why


def test_a_new_format_takes_effect_in_the_next_epoch():
    dataset = table(COLUMNS)
    dataset.set_format("torch", columns=["int8"])
    loader = fastload.Loader(dataset, 4, **SIZES)
    assert list(next(iter(loader))) == ["int8"]
    dataset.set_format("torch", columns=["label", "text"])
    assert_same(list(loader), theirs(dataset, batch_size=4))


@pytest.mark.parametrize("view", ["whole", "shuffled"])
def test_columns_are_kept_from_one_epoch_to_the_next(view):
    dataset = seen(view).with_format("torch", columns=["int64", "float32 lists"])
    loader = fastload.Loader(dataset, 4, lane="native", **SIZES)
    made = [leaf.native for _, leaf in lanes.choose(loader).lowered.leaves]
    list(loader)
    again = [leaf.native for _, leaf in lanes.choose(loader).lowered.leaves]
    assert all(one is other for one, other in zip(made, again, strict=True))


@pytest.mark.parametrize("kind", ["int32", "float64", "bool"])
def test_a_concatenation_asks_for_single_samples(kind):
    part = datasets.Dataset.from_dict({"x": numbers(kind, 4)}, Features({"x": Value(kind)}))
    both = ConcatDataset([part.with_format("numpy")] * 2)
    assert_same(list(fastload.Loader(both, 3, num_workers=1)), list(DataLoader(both, 3)))
