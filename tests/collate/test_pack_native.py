"""`PackCollate` over columns, made by native threads; the same collate function in torch's loader is the oracle."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from fastload import Dataset, Loader, PackBatchSampler, PackCollate, columns
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .test_pad_native import LENGTHS, check, files, native, ragged, rows

pytestmark = MANY_WORKERS

STYLES = ["hf", "flash", "segment_ids"]
STRATEGIES = ["best_fit", "first_fit", "concat_split"]


def tokens(dtype="int64", lengths=LENGTHS):
    return ragged(dtype=dtype, lengths=lengths)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("overlong", ["truncate", "split", "drop"])
def test_every_style_strategy_and_length(style, strategy, overlong):
    documents = Dataset({"input_ids": tokens(), "id": rows()})
    for max_length, pad_rows in [(4, None), (20, True), (20, False), (1, None)]:
        collate = PackCollate(
            max_length,
            strategy,
            overlong,
            style,
            pad_rows=pad_rows,
            padding_value=7,
            num_tokens=True,
        )
        check(documents, collate, batch_size=5)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64", "float32"])
def test_labels_and_other_fields_of_any_dtype(style, dtype):
    documents = Dataset(
        {
            "weight": tokens("float64"),
            "labels": tokens("int32"),
            "flag": tokens("bool"),
            "input_ids": tokens(dtype),
        }
    )
    check(documents, PackCollate(6, style=style, fields={"weight": -0.5, "flag": True}))
    check(documents, PackCollate(6, overlong="split", style=style, rows=9))


@pytest.mark.parametrize("number", [1, 2, 8])
@pytest.mark.parametrize("batch_size", [1, 4, 12])
def test_any_number_of_threads(number, batch_size):
    check(tokens("int32"), PackCollate(5, overlong="split"), batch_size, num_workers=number)


@pytest.mark.parametrize("style", STYLES)
def test_files_whose_lengths_their_headers_tell(style, tmp_path):
    shapes = [(length,) for length in LENGTHS]
    documents = Dataset({"input_ids": files(tmp_path, shapes, "int64"), "labels": tokens()})
    check(documents, PackCollate(6, overlong="split", style=style))


def test_documents_whose_lengths_show_once_they_are_read(tmp_path):
    for number, length in enumerate(LENGTHS):
        np.savez_compressed(tmp_path / f"{number:02}.npz", x=np.arange(length, dtype="int32"))
    unknown = columns.Npz(str(tmp_path / "*.npz"), "x")
    for documents in (
        unknown,
        Dataset({"input_ids": unknown, "labels": tokens()}),
        Dataset({"input_ids": tokens(), "labels": unknown}),
    ):
        check(documents, PackCollate(6, overlong="split", num_tokens=True))


def test_lists_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    made = {
        "input_ids": [list(range(length)) for length in LENGTHS],
        "labels": [[-100] * length for length in LENGTHS],
        "weight": [[0.5] * length for length in LENGTHS],
        "text": ["a"] * len(LENGTHS),
    }
    for form in (None, "torch", "numpy"):
        documents = datasets.Dataset.from_dict(made).with_format(form)
        for batch_size in (1, 5):
            collate = PackCollate(6, fields={"weight": 1})
            want = list(DataLoader(documents, batch_size, collate_fn=collate))
            assert_same(list(native(documents, collate, batch_size=batch_size)), want)


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    batch_size=st.integers(1, 7),
    max_length=st.integers(1, 12),
    strategy=st.sampled_from(STRATEGIES),
    style=st.sampled_from(STYLES),
    pad_rows=st.sampled_from([None, True, False]),
)
@settings(max_examples=60, deadline=None)
def test_any_lengths(lengths, batch_size, max_length, strategy, style, pad_rows):
    collate = PackCollate(max_length, strategy, "split", style, pad_rows=pad_rows)
    documents = tokens("int32", lengths)
    want = list(DataLoader(documents, batch_size, collate_fn=collate))
    assert_same(list(native(documents, collate, batch_size=batch_size)), want)


def test_rows_that_were_planned_are_packed():
    sampler = PackBatchSampler(LENGTHS, 8, "best_fit", "split", rows=2, shuffle=False)
    collate = PackCollate(8, "best_fit", "split", rows=2, pad_rows=True)
    want = list(DataLoader(tokens(), batch_sampler=sampler, collate_fn=collate))
    sampler.set_epoch(0)
    assert_same(list(native(tokens(), collate, batch_sampler=sampler)), want)


@pytest.mark.parametrize(
    ("collate", "parts"),
    [
        (PackCollate(4, overlong="error"), ["'input_ids'", "sample 1", "(5,)", "max_length=4"]),
        (PackCollate(9, rows=1), ["'input_ids'", "2 rows", "rows=1"]),
    ],
)
def test_a_batch_that_cannot_be_packed_is_an_error_and_the_next_one_comes(collate, parts):
    documents = Dataset({"input_ids": tokens(lengths=[1, 2, 4, 5, 4, 0, 2])})
    if collate._arguments["rows"] is None:
        parts = [*parts, "sample 3 of the dataset"]
    else:
        documents = Dataset({"input_ids": tokens(lengths=[1, 2, 5, 6, 2, 0, 2])})
    batches = iter(native(documents, collate, batch_size=2))
    next(batches)
    with pytest.raises(ValueError, match="cannot collate field") as caught:
        next(batches)
    for part in parts:
        assert part in str(caught.value)
    assert next(batches)["input_ids"].numel() == documents[4]["input_ids"].numel()


@pytest.mark.parametrize("known", [True, False])
def test_labels_of_another_length_name_the_sample(known, tmp_path):
    lengths = [2, 3, 2, 4]
    other = [2, 3, 2, 5]
    for number, length in enumerate(other):
        np.savez_compressed(tmp_path / f"{number}.npz", x=np.arange(length))
    labels = tokens(lengths=other) if known else columns.Npz(str(tmp_path / "*.npz"), "x")
    documents = Dataset({"input_ids": tokens(lengths=lengths), "labels": labels})
    batches = iter(native(documents, PackCollate(8), batch_size=2))
    next(batches)
    with pytest.raises(ValueError, match=r"'labels'.*sample 1.*\(5,\).*\(4,\).*sample 3 of the"):
        next(batches)


@pytest.mark.parametrize(
    ("structure", "collate", "why"),
    [
        (lambda: {"ids": tokens()}, PackCollate(4), "no field 'input_ids'"),
        (lambda: (tokens(), tokens()), PackCollate(4), "no field 'input_ids'"),
        (lambda: {"input_ids": {"x": tokens()}}, PackCollate(4), "is a dict"),
        (lambda: {"input_ids": tokens()}, PackCollate(4, fields={"w": 0}), "no field 'w'"),
        (lambda: {"input_ids": tokens("uint8")}, PackCollate(4, padding_value=0.5), "0.5"),
    ],
)
def test_what_is_an_error_of_every_batch_is_said_and_left_to_python(structure, collate, why):
    loader = Loader(Dataset(structure()), 4, collate_fn=collate, **SIZES)
    said = loader.explain()
    if "lane: native" in said:
        with pytest.raises(ValueError, match=why):
            next(iter(loader))
    else:
        assert why in said


def test_explain_says_what_is_packed_and_what_is_left_out():
    said = native(Dataset({"input_ids": tokens(), "y": rows()}), PackCollate(8)).explain()
    assert "with PackCollate" in said
    assert "packed" in said
    assert "left out" in said


def test_documents_of_two_dimensions_are_an_error_that_names_the_field():
    batches = iter(native(Dataset({"input_ids": ragged(2)}), PackCollate(4), batch_size=2))
    with pytest.raises(ValueError, match=r"'input_ids'.*one dimension"):
        next(batches)
    assert torch.is_tensor(next(iter(native(tokens(), PackCollate(4))))["labels"])
