"""Columns of Hugging Face datasets that hold lists, arrays, structs and bytes; torch is the oracle."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, StackDataset

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .huggingface import FORMATS, chunked, column, same, table, theirs

datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
from datasets import (  # noqa: E402 (after it is known to be there)
    Array2D,
    Array3D,
    Audio,
    ClassLabel,
    Features,
    Image,
    LargeList,
    List,
    Translation,
    Value,
)

pytestmark = MANY_WORKERS


def words(index, count):
    return [f"grün {index} {place}"[: 2 + index % 7] for place in range(count)]


TEXTS = {
    "one length": column(List(Value("string")), lambda i: words(i, 3)),
    "fixed length": column(List(Value("string"), length=2), lambda i: words(i, 2)),
    "unequal": column(List(Value("string")), lambda i: words(i, i // 6)),
    "large": column(LargeList(Value("large_string")), lambda i: words(i, 1 + i // 12)),
    "empty": column(List(Value("string")), lambda _: []),
    "nested": column(List(List(Value("string"))), lambda i: [words(i, 1), words(i, 1 + i // 12)]),
    "arrays": column(Array2D((1, 2), "string"), lambda i: [words(i, 2)]),
    "bytes": column(List(Value("binary")), lambda i: [bytes([i, 0]), b""]),
    "translations": column(Translation(["de", "en"]), lambda i: {"de": "ü" * i, "en": str(i)}),
}
"""Native in the formats None and torch; the format numpy makes arrays of objects of the lists."""

NESTED = {
    "uneven": column(List(List(Value("int32"))), lambda i: [[i], [1, i // 12]]),
    "uneven floats": column(List(List(Value("float64"))), lambda i: [[i / 3] * 2, [], [0.1]]),
    "uneven bools": column(List(List(Value("bool"))), lambda i: [[i % 2 == 0], [True, False]]),
    "here and there": column(
        List(List(Value("int64"))), lambda i: [[i, 1], [2] * (1 + (i % 5 < 3))]
    ),
    "other lengths": column(List(List(Value("int8"))), lambda i: [[i] * (1 + i // 5)] * 2),
    "empty ones": column(List(List(Value("int64"))), lambda i: [[i]] * (i // 8)),
    "deep": column(
        List(List(List(Value("float32")))), lambda i: [[[i, 1], [2, i / 3]], [[1] * (1 + i // 12)]]
    ),
    "fixed outside": column(
        List(List(Value("int16")), length=2), lambda i: [[i] * (1 + i // 8), [1, 2]]
    ),
    "labels": column(List(List(ClassLabel(names=["a", "b"]))), lambda i: [[0], [1, i % 2]]),
}

STRUCTS = {
    "numbers": column(
        {"x": Value("float64"), "h": Value("float16"), "i": Value("uint32"), "b": Value("bool")},
        lambda i: {"x": i / 3, "h": i / 3, "i": i, "b": i % 2 == 0},
    ),
    "lists": column(
        {"y": List(Value("float64")), "e": List(Value("bool")), "z": List(List(Value("int8")))},
        lambda i: {"y": [i / 3] * 2, "e": [], "z": [[i], [1]]},
    ),
    "arrays": column({"a": Array2D((1, 2), "float32")}, lambda i: {"a": [[i, 1]]}),
    "nested": column(
        {
            "s": {"t": Value("large_string"), "c": ClassLabel(names=["a", "b"])},
            "b": Value("binary"),
        },
        lambda i: {"s": {"t": "x" * i, "c": i % 2}, "b": b"a" + bytes(i)},
    ),
}

ARRAYS = {
    "bytes": column(Array2D((2, 3), "uint8"), lambda i: [[i, 1, 2], [3, 4, 5]]),
    "floats": column(Array2D((2, 1), "float64"), lambda i: [[i / 3], [0.1]]),
    "halves": column(Array2D((1, 1), "float16"), lambda i: [[i / 3]]),
    "bools": column(Array2D((1, 2), "bool"), lambda i: [[i % 2 == 0, True]]),
    "3d": column(Array3D((1, 2, 2), "int32"), lambda i: [[[i, 1], [3, 4]]]),
    "rows": column(Array2D((None, 2), "float32"), lambda i: [[i, 1]] * (i // 8)),
    "in lists": column(List(Array2D((1, 2), "int64")), lambda i: [[[i, 1]]] * 2),
}

EVERY = [*STRUCTS.items(), *ARRAYS.items()]


@pytest.mark.parametrize("kind", [None, "torch"])
@pytest.mark.parametrize("name", TEXTS)
def test_lists_of_text_are_put_together_by_place(name, kind):
    for dataset in (table(TEXTS), chunked(TEXTS).shuffle(seed=3)):
        dataset = dataset.with_format(kind, columns=[name])
        same(dataset, batch_size=4)
        same(dataset, batch_size=None)


@pytest.mark.parametrize("kind", [None, "torch"])
@pytest.mark.parametrize("name", NESTED)
def test_uneven_lists_are_what_torch_makes_of_them(name, kind):
    for dataset in (
        table(NESTED),
        chunked(NESTED).shuffle(seed=3),
        chunked(NESTED).select(range(4, 15)),
    ):
        dataset = dataset.with_format(kind, columns=[name])
        for size in (1, 3, None):
            same(dataset, batch_size=size)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("name", "made"), EVERY, ids=[name for name, _ in EVERY])
def test_structs_and_arrays_are_those_of_torch(name, made, kind):
    for dataset in (table({name: made}), chunked({name: made}).shuffle(seed=3)):
        same(dataset.with_format(kind), batch_size=4)
        same(dataset.with_format(kind), batch_size=None)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["bytes", "floats", "3d"])
def test_lists_of_indices_are_batches_of_arrays(name, kind):
    dataset = chunked(ARRAYS).with_format(kind, columns=[name])
    same(dataset, sampler=BatchSampler(range(20), 6, False), batch_size=None)


def test_lists_that_differ_between_samples_only_are_numpys_arrays():
    dataset = chunked(NESTED).with_format("numpy", columns=["other lengths"])
    same(dataset, batch_size=3)
    same(dataset, batch_size=None)


def tree(draw, kind, depth, empty):
    if not depth:
        return kind(draw.randrange(9))
    return [tree(draw, kind, depth - 1, empty) for _ in range(draw.randrange(0 if empty else 1, 3))]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    depth=st.integers(1, 4),
    count=st.integers(1, 12),
    kind=st.sampled_from([None, "torch"]),
    size=st.sampled_from([None, 1, 2, 5]),
    empty=st.booleans(),
    is_text=st.booleans(),
)
def test_any_lists_are_what_torch_makes_of_them(seed, depth, count, kind, size, empty, is_text):
    draw = random.Random(seed)
    feature = Value("string" if is_text else "int64")
    for _ in range(depth):
        feature = List(feature)
    rows = [tree(draw, str if is_text else int, depth, empty) for _ in range(count)]
    values = rows if draw.random() < 0.7 else [rows[0]] * count
    dataset = datasets.Dataset.from_dict({"x": values}, Features({"x": feature}))
    same(dataset.with_format(kind), batch_size=size)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("feature", [Audio(decode=False), Image(decode=False)], ids=repr)
def test_encoded_files_are_bytes_and_a_path(feature, kind):
    storage = [{"bytes": bytes([n, 0]), "path": f"{n}.wav"} for n in range(9)]
    dataset = stored(feature, storage).with_format(kind)
    same(dataset, batch_size=4)
    same(dataset, batch_size=None)


def stored(feature, storage):
    import pyarrow as pa

    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = Features({"file": feature}).arrow_schema
    return datasets.Dataset(pa.Table.from_arrays([pa.array(storage, kind)], schema=schema))


@pytest.mark.parametrize("kind", FORMATS)
def test_paths_that_are_null_are_torchs_error(kind):
    dataset = stored(Audio(decode=False), [{"bytes": b"1", "path": None}] * 3).with_format(kind)
    loader = fastload.Loader(dataset, 2, num_workers=1)
    assert lanes.choose(loader).why == "column 'file': in 'path', it holds nulls"
    with pytest.raises(TypeError, match="NoneType"):
        next(iter(loader))
    with pytest.raises(TypeError, match="NoneType"):
        next(iter(DataLoader(dataset, 2)))


def test_decoded_audio_is_made_in_python():
    dataset = stored(Audio(), [{"bytes": b"1", "path": "1.wav"}] * 3)
    assert "its feature is Audio" in lanes.choose(fastload.Loader(dataset, num_workers=1)).why


def test_bytes_are_bytes():
    values = [bytes(range(n)) + b"x" for n in range(9)]
    dataset = datasets.Dataset.from_dict({"x": values}, Features({"x": Value("binary")}))
    for kind in (None, "torch"):
        same(dataset.with_format(kind), batch_size=4)
        same(dataset.with_format(kind), batch_size=None)
    loader = fastload.Loader(dataset.with_format("numpy"), num_workers=1)
    assert "NumPy's bytes" in lanes.choose(loader).why


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("values", [["a", "b\0"], [b"a", b"b\0"]], ids=["text", "bytes"])
def test_zeros_at_an_end_are_kept_or_cut_off_as_with_torch(values, kind):
    feature = Value("string" if isinstance(values[0], str) else "binary")
    dataset = datasets.Dataset.from_dict({"x": values}, Features({"x": feature})).with_format(kind)
    loader = fastload.Loader(dataset, 2, num_workers=1)
    assert (lanes.choose(loader).lane == "native") == (kind is None)
    assert_same(list(loader), theirs(dataset, batch_size=2))


@pytest.mark.parametrize("name", ["one length", "nested"])
def test_the_format_numpy_leaves_lists_of_text_to_python(name):
    loader = fastload.Loader(table(TEXTS).with_format("numpy", columns=[name]), num_workers=1)
    assert f"column {name!r}: the format numpy makes arrays of objects" in lanes.choose(loader).why


def test_torchs_default_dtype_is_that_of_numbers_in_structs():
    dataset = table({"x": STRUCTS["numbers"]}).with_format("torch")
    loader = fastload.Loader(dataset, 4, **SIZES)
    try:
        for default in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(default)
            assert_same(list(loader), theirs(dataset, batch_size=4))
        torch.set_default_dtype(torch.float16)
        assert "torch's default dtype" in lanes.choose(fastload.Loader(dataset, num_workers=1)).why
    finally:
        torch.set_default_dtype(torch.float32)


def test_samples_of_a_struct_are_those_of_the_dataset():
    from fastload.columns.column import draw_sample

    for kind in FORMATS:
        dataset = table(STRUCTS).with_format(kind)
        program = lanes.choose(fastload.Loader(dataset, num_workers=1)).lowered.program
        for index in (0, 5, 23):
            ours, want = draw_sample(program, index), dataset[index]
            assert repr(ours) == repr(want)
            assert type(ours["numbers"]["x"]) is type(want["numbers"]["x"])


def test_lists_nest_in_the_datasets_of_torch():
    part = chunked(TEXTS | NESTED).with_format("torch", columns=["unequal", "uneven"])
    same(ConcatDataset([part, part.select([3, 1])]), batch_size=3)
    same(StackDataset(part, np.arange(24)), batch_size=3)


def test_lists_that_cannot_be_are_refused():
    from fastload import _lib
    from fastload.memory import layout

    def rows(*numbers):
        return _lib.Rows(*layout.of_array(np.array(numbers)))

    with pytest.raises(ValueError, match=r"2..9 of 3 values"):
        _lib.lists(rows(1, 2, 3), rows(0, 2, 9))
    with pytest.raises(ValueError, match="cannot be read"):
        _lib.lists(rows(1, 2, 3), _lib.Rows(*layout.of_array(np.zeros(0, np.int64))))
    image = _lib.Image(["a.png"], "RGB", [], ("bytes", "hwc"))
    with pytest.raises(ValueError, match="an item of a list"):
        _lib.lists(image, rows(0, 1))
    lists = _lib.lists(rows(1, 2, 3), rows(0, 1, 3))
    for form in ("text", "bytes", "texts", "number", "cell"):
        with pytest.raises(ValueError, match="needs"):
            _lib.Program([lists], _lib.Leaf(0, form))
    with pytest.raises(ValueError, match="number of dimensions"):
        _lib.concat([lists, _lib.lists(lists, rows(0, 2))])
