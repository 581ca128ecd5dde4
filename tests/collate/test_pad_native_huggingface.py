"""`PadCollate` over Hugging Face datasets, natively; torch's loader over them is the oracle."""

import pytest
import torch
from torch.utils.data import DataLoader, StackDataset

from fastload import Keep, Loader, Pad, PadCollate, Unpadded
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes
from tests.shared.sizes import SIZES

from .test_pad_native import native, shown

datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")

pytestmark = MANY_WORKERS

LENGTHS = [3, 0, 5, 0, 0, 0, 2, 7, 1, 4]
FEATURES = {
    "input_ids": datasets.List(datasets.Value("int32")),
    "scores": datasets.List(datasets.Value("float64")),
    "flags": datasets.List(datasets.Value("bool")),
    "label": datasets.Value("int64"),
    "text": datasets.Value("string"),
    "box": datasets.List(datasets.Value("float32"), length=4),
}


def made(form, *columns):
    rows = {
        "input_ids": [list(range(length)) for length in LENGTHS],
        "scores": [[number / 3 for number in range(length)] for length in LENGTHS],
        "flags": [[number % 2 == 0 for number in range(length)] for length in LENGTHS],
        "label": list(range(10)),
        "text": ["ü" * length for length in LENGTHS],
        "box": [[length, 0.5, 1, 2] for length in LENGTHS],
    }
    columns = columns or tuple(rows)
    features = datasets.Features({name: FEATURES[name] for name in columns})
    dataset = datasets.Dataset.from_dict({name: rows[name] for name in columns}, features)
    return dataset.with_format(form)


@pytest.mark.parametrize("form", [None, "torch", "numpy"])
@pytest.mark.parametrize(
    "collate",
    [
        PadCollate(),
        PadCollate(mask=True, mask_dtype=torch.int64, lengths=False),
        PadCollate(
            {"input_ids": Pad(0, padding_side="left", pad_to_multiple_of=8)}, num_tokens=True
        ),
        PadCollate(
            {"input_ids": Unpadded("flat"), "scores": Unpadded(), "flags": Unpadded("jagged")}
        ),
        PadCollate({"label": Keep(), "input_ids": Keep(), "text": Keep(), "box": Keep()}),
    ],
    ids=str,
)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_every_format_makes_the_batch_of_pythons(form, collate, batch_size):
    dataset = made(form)
    try:
        want = list(DataLoader(dataset, batch_size, collate_fn=collate))
    except Exception as error:  # samples that Python cannot collate either
        want = error
    if isinstance(want, Exception):
        with pytest.raises(type(want)):
            list(Loader(dataset, batch_size, collate_fn=collate, num_workers=1))
        return
    got = list(native(dataset, collate, batch_size=batch_size))
    assert_same(shown(got), shown(want))


def test_lists_of_text_are_passed_on_by_keep():
    words = {"words": [["a"] * length for length in LENGTHS], "n": LENGTHS}
    dataset = datasets.Dataset.from_dict(words)
    collate = PadCollate({"words": Keep()})
    want = list(DataLoader(dataset, 3, collate_fn=collate))
    assert_same(list(native(dataset, collate, batch_size=3)), want)
    said = Loader(dataset, 3, collate_fn=PadCollate(), **SIZES).explain()
    assert "list of text" in said
    assert "give it the rule Keep()" in said


def test_text_in_tuples_is_a_list_as_pythons():
    dataset = StackDataset(made(None, "text", "label"), made("torch", "input_ids"))
    want = list(DataLoader(dataset, 3, collate_fn=PadCollate()))
    assert_same(list(native(dataset, PadCollate(), batch_size=3)), want)


NESTED = [
    [[[1, 2], [3, 4]], [[5, 6]], [[7, 8], [9, 10], [11, 12]]],
    [[[1], [2, 3]], [[4]], [[5], [6]]],
    [[[1], [2]], [], [[3]]],
    [[[]], [[]], [[], [1]]],
    [[[1, 2]], [[3]], [[4, 5, 6]]],
]


@pytest.mark.parametrize("rows", NESTED, ids=str)
@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize(
    "rule",
    [Pad(), Pad(dim=(0, 1)), Pad(dim=0, padding_side="left"), Unpadded("flat"), Keep()],
    ids=str,
)
def test_lists_in_lists_are_arrays_where_python_says_so(rows, rule, batch_size):
    dataset = datasets.Dataset.from_dict({"x": rows, "y": [1, 2, 3]})
    collate = PadCollate({"x": rule})
    want = outcomes(DataLoader(dataset, batch_size, collate_fn=collate))
    got = outcomes(native(dataset, collate, batch_size=batch_size))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        if isinstance(theirs, Exception):
            assert type(ours) is type(theirs)
        else:
            assert_same(ours, theirs)


def test_lists_in_lists_as_tensors_are_pythons():
    dataset = datasets.Dataset.from_dict({"x": [[[1], [2, 3]], [[4]]]})
    for made, rule in [(dataset, Unpadded()), (dataset.with_format("torch"), Pad())]:
        said = Loader(made, 2, collate_fn=PadCollate({"x": rule}), **SIZES).explain()
        assert "lane: process" in said
