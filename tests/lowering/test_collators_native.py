"""transformers' collate functions over columns and lowered datasets, natively; the originals are the oracle."""

import copy

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from fastload import Dataset, Loader, columns
from tests.collate.test_pad_native import ragged, rows
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes
from tests.shared.sizes import SIZES

from .test_collators import COLLATORS, assert_equal, made, tokenizer  # noqa: F401 (a fixture)

transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")

pytestmark = [
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore:.*fast tokenizer.*"),
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy"),
]

LENGTHS = [3, 5, 2, 4, 4, 6, 1, 3]
MODULE = "transformers.data.data_collator"


def lists(fill=None):
    return [[fill] * n if fill is not None else list(range(n)) for n in LENGTHS]


SAMPLES = {
    "plain": {"input_ids": lists()},
    "masked": {
        "attention_mask": lists(1),
        "input_ids": lists(),
        "token_type_ids": lists(0),
        "special_tokens_mask": lists(1),
    },
    "label": {"input_ids": lists(), "label": LENGTHS},
    "score": {"label": [n / 3 for n in LENGTHS], "input_ids": lists(), "weight": [0.1] * 8},
    "label_ids": {"input_ids": lists(), "label_ids": [[n, 1] for n in LENGTHS]},
    "labels": {"labels": [[n] * (n + 1) for n in LENGTHS], "input_ids": lists()},
    "own labels": {"labels": lists(7), "input_ids": lists()},
    "uneven": {"input_ids": lists(), "attention_mask": [[1] * (n % 4) for n in LENGTHS]},
    "text": {"input_ids": lists(), "text": ["a"] * 8},
    "even": {"input_ids": [[1, 2]] * 8, "flag": [True, False] * 4, "scores": [[0.5, 1]] * 8},
    "empty": {"input_ids": [[], [1], [], [], [], [2, 3], [1], []]},
}


def explained(dataset, collator):
    return Loader(dataset, 3, collate_fn=collator, **SIZES).explain()


def check(dataset, collator, batch_size=3):
    """Asserts that batches, and the errors in their places, are the original's."""
    want = outcomes(DataLoader(dataset, batch_size, collate_fn=collator))
    loader = Loader(dataset, batch_size, collate_fn=collator, **SIZES)
    if "lane: native" not in loader.explain():
        loader = Loader(dataset, batch_size, collate_fn=collator, num_workers=0)
    got = outcomes(loader)
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        if isinstance(theirs, Exception):
            assert (type(ours), str(ours)) == (type(theirs), str(theirs))
        else:
            assert_equal(ours, theirs)


@pytest.mark.parametrize("form", [None, "torch", "numpy"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_batches_of_hugging_face_are_those_of_the_original(kind, form, tokenizer):  # noqa: F811
    dataset = datasets.Dataset.from_dict(SAMPLES[kind]).with_format(form)
    for name, options in COLLATORS:
        check(dataset, made(name, options, tokenizer))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(("name", "options"), COLLATORS)
def test_batches_of_columns(name, options, dtype, side, tokenizer, monkeypatch):  # noqa: F811
    monkeypatch.setattr(tokenizer, "padding_side", side)
    tokens = ragged(dtype=dtype, lengths=LENGTHS)
    fields = {"input_ids": tokens, "token_type_ids": tokens, "score": columns.Rows(torch.rand(8))}
    if name == "DataCollatorForSeq2Seq":
        fields["labels"] = ragged(dtype="int32", lengths=[n + 1 for n in LENGTHS])
    if name == "DefaultDataCollator":
        fields = {"x": columns.Rows(torch.rand(8, 2)), "label": columns.Rows(torch.arange(8))}
    collator = made(name, options, tokenizer)
    assert "lane: native" in explained(Dataset(fields), collator)
    check(Dataset(fields), collator)


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("DataCollatorWithPadding", "masked", None),
        ("DataCollatorWithPadding", "label", "torch"),
        ("DataCollatorForSeq2Seq", "labels", None),
        ("DataCollatorForLanguageModeling", "plain", "torch"),
        ("DataCollatorWithFlattening", "own labels", None),
        ("DataCollatorWithFlattening", "text", "numpy"),
        ("DefaultDataCollator", "even", None),
        ("DefaultDataCollator", "even", "torch"),
    ],
)
def test_what_is_common_is_native(name, kind, form, tokenizer):  # noqa: F811
    options = {"mlm": False} if name == "DataCollatorForLanguageModeling" else {}
    dataset = datasets.Dataset.from_dict(SAMPLES[kind]).with_format(form)
    said = explained(dataset, made(name, options, tokenizer))
    assert "lane: native" in said
    assert {"DefaultDataCollator": "default_data_collator"}.get(name, name) in said


def test_the_default_function_over_images(tmp_path):
    for number in range(6):
        np.save(tmp_path / f"{number}.npy", np.full((3, 4), number, "float16"))
    files = columns.Npy(str(tmp_path / "*.npy"))
    dataset = Dataset({"pixel_values": files, "label": columns.Rows(torch.rand(6))})
    assert "lane: native" in explained(dataset, transformers.default_data_collator)
    check(dataset, transformers.default_data_collator)


def test_masks_of_several_dimensions_are_stacked_as_they_are(tokenizer):  # noqa: F811
    tokens, mask = torch.arange(48).view(4, 12), torch.ones(4, 12, 12, dtype=torch.int64)
    dataset = torch.utils.data.StackDataset(input_ids=tokens, attention_mask=mask)
    collator = transformers.DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    expected = next(iter(DataLoader(dataset, 4, collate_fn=collator)))
    assert_equal(next(iter(Loader(dataset, 4, collate_fn=collator, num_workers=1))), expected)


def test_tokens_of_several_dimensions_are_the_originals(tokenizer):  # noqa: F811
    collator = transformers.DataCollatorWithPadding(tokenizer)
    check(Dataset({"input_ids": ragged(2, dtype="int64", lengths=LENGTHS)}), collator)


@pytest.mark.parametrize(
    ("fields", "name", "why"),
    [
        ({"x": lists()}, "DataCollatorWithPadding", "no field 'input_ids'"),
        ({"input_ids": lists(0.5)}, "DataCollatorWithPadding", "'input_ids' is float64"),
        ({"input_ids": lists()}, "DataCollatorForSeq2Seq", "no labels"),
        (SAMPLES["text"], "DataCollatorWithPadding", "'text' is neither a number"),
        ({"input_ids": lists(), "label": [True] * 8}, "DefaultDataCollator", "'label' is bool"),
    ],
)
def test_what_is_not_exact_is_said_and_left_to_python(fields, name, why, tokenizer):  # noqa: F811
    dataset = datasets.Dataset.from_dict(fields)
    collator = made(name, {}, tokenizer)
    said = explained(dataset, collator)
    assert "lane: process" in said
    assert why in said
    check(dataset, collator)


def test_settings_that_are_python_are_said(tokenizer):  # noqa: F811
    dataset = datasets.Dataset.from_dict(SAMPLES["plain"])
    collator = transformers.DataCollatorWithPadding(tokenizer, padding=False)
    assert "does not pad" in explained(dataset, collator)
    assert "Python code" in explained(rows(), len)


class Lists(torch.utils.data.Dataset):
    """Cheap samples, of which the consumer makes the batches."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return {"input_ids": [4, 5, 6, 7, 8, 9, index % 10]}


@pytest.mark.parametrize("size", [20, 60])
@pytest.mark.parametrize("removing", [False, True])
def test_masks_are_keyed_also_where_samples_are_cheap(size, removing, tokenizer):  # noqa: F811
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.mask_token = "w1"
    collator = transformers.DataCollatorForLanguageModeling(tokenizer)
    if removing:
        from transformers.trainer_utils import RemoveColumnsCollator

        collator = RemoveColumnsCollator(collator, ["input_ids"])

    def masks(lane, seed=7, state=None):
        torch.manual_seed(seed)
        loader = Loader(Lists(size), 4, shuffle=True, collate_fn=collator, lane=lane)
        if state is not None:
            loader.load_state_dict(state)
        iterator = iter(loader)
        first = [next(iterator)["labels"]]
        saved, before = loader.state_dict(), torch.get_rng_state()
        first += [batch["labels"] for batch in iterator]
        assert torch.equal(torch.get_rng_state(), before)
        return first, saved

    batches, state = masks("auto")
    assert_same(masks("process")[0], batches)
    assert_same(masks("auto", seed=8, state=state)[0], batches[1:])
