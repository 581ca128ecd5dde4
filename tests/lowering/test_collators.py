"""Collate functions of transformers, made natively; the originals are the oracle."""

import copy
import os
import pickle

import numpy as np
import pytest
import torch

from fastload import Loader
from fastload.lowering import collators
from tests.shared.compare import assert_same

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = Tokenizer(WordLevel({f"w{n}": n for n in range(20)} | {"[PAD]": 20}, unk_token="w0"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def plain(n):
    return {"input_ids": list(range(n))}


def masked(n):
    return {
        "attention_mask": [1] * n,
        "input_ids": list(range(n)),
        "token_type_ids": [0] * n,
        "special_tokens_mask": [1] * n,
    }


def tensors(n):
    return {"input_ids": torch.arange(n, dtype=torch.int32), "score": torch.tensor(0.5)}


def arrays(n):
    return {"input_ids": np.arange(n), "attention_mask": np.ones(n, "i8"), "label": np.int64(n)}


SAMPLES = {
    "plain": plain,
    "masked": masked,
    "tensors": tensors,
    "arrays": arrays,
    "label": lambda n: plain(n) | {"label": n},
    "label of NumPy": lambda n: tensors(n) | {"label": np.int32(n)},
    "score": lambda n: plain(n) | {"label": n / 3},
    "label_ids": lambda n: plain(n) | {"label_ids": [n, 1], "flags": [True, False]},
    "labels": lambda n: plain(n) | {"labels": list(range(n + 1))},
    "arrays of labels": lambda n: arrays(n) | {"labels": np.arange(n + 2)},
    "no labels": lambda n: plain(n) | {"labels": None},
    "ragged": lambda n: plain(n) | {"words": list(range(n))},
    "text": lambda n: plain(n) | {"text": "a"},
    "bare": lambda n: list(range(n)),
    "bare tensors": lambda n: torch.arange(n, dtype=torch.int32),
    "empty": lambda n: {"input_ids": list(range(n - 2))},
}

MAKERS = {
    "DataCollatorWithPadding": [
        {},
        {"pad_to_multiple_of": 8},
        {"padding": "max_length", "max_length": 9},
        {"padding": "max_length", "max_length": 9, "pad_to_multiple_of": 8},
        {"padding": "max_length", "max_length": 4},
    ],
    "DataCollatorForSeq2Seq": [
        {},
        {"pad_to_multiple_of": 4, "label_pad_token_id": -7},
        {"padding": "max_length", "max_length": 9},
        {"padding": "max_length", "max_length": 9, "pad_to_multiple_of": 8},
    ],
    "DataCollatorForLanguageModeling": [{"mlm": False}, {"mlm": False, "pad_to_multiple_of": 8}],
    "DefaultDataCollator": [{}],
    "DataCollatorWithFlattening": [
        {},
        {"return_flash_attn_kwargs": True},
        {"return_flash_attn_kwargs": True, "return_seq_idx": True, "return_position_ids": False},
        {"separator_id": 3, "position_ids_start": 2},
    ],
}
COLLATORS = [(name, settings) for name, several in MAKERS.items() for settings in several]


def made(name, settings, tokenizer):
    needs_tokenizer = name not in ("DefaultDataCollator", "DataCollatorWithFlattening")
    first = (tokenizer,) if needs_tokenizer else ()
    return getattr(transformers, name)(*first, **settings)


def outcome(call, samples):
    try:
        return call(samples)
    except Exception as error:
        return type(error), str(error)


def assert_equal(got, want):
    assert type(got) is type(want)
    if isinstance(want, transformers.BatchEncoding):
        got, want = got.data, want.data
    assert_same(got, want)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize(("name", "settings"), COLLATORS)
@pytest.mark.filterwarnings("ignore")
def test_a_batch_is_that_of_the_original(name, settings, kind, side, tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "padding_side", side)
    original = made(name, settings, tokenizer)
    native = collators.native(original)
    for sizes in [(3, 5, 2), (4, 4), (6,)]:
        want = outcome(original, [SAMPLES[kind](n) for n in sizes])
        assert_equal(outcome(native, [SAMPLES[kind](n) for n in sizes]), want)


@pytest.mark.parametrize(("name", "settings"), COLLATORS)
def test_common_batches_do_not_need_the_original(name, settings, tokenizer, monkeypatch):
    native = collators.native(made(name, settings, tokenizer))
    monkeypatch.setattr(native, "original", None)
    sizes = (4, 4) if name == "DefaultDataCollator" or settings.get("max_length") == 4 else (3, 4)
    assert native([plain(n) for n in sizes])["input_ids"].dtype is torch.int64


def test_the_default_function_is_recognised():
    native = collators.native(transformers.default_data_collator)
    samples = [{"label": n, "x": [0.5, n], "text": "a", "y": np.ones(2)} for n in (1, 2)]
    assert_equal(native(samples), transformers.default_data_collator(samples))


def test_pickles_as_the_original(tokenizer):
    native = collators.native(transformers.DataCollatorWithPadding(tokenizer))
    again = pickle.loads(pickle.dumps(native))
    assert_equal(again([plain(2), plain(3)]), native([plain(2), plain(3)]))


class Own(transformers.DefaultDataCollator):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda tokenizer: Own(),
        lambda tokenizer: transformers.DefaultDataCollator(return_tensors="np"),
        lambda tokenizer: transformers.DataCollatorWithPadding(tokenizer, padding=False),
        lambda tokenizer: transformers.DataCollatorForSeq2Seq(tokenizer, model=object()),
        lambda tokenizer: transformers.DataCollatorForTokenClassification(tokenizer),
        lambda tokenizer: len,
        lambda tokenizer: torch.utils.data.default_collate,
    ],
)
def test_nothing_else_is_recognised(make, tokenizer):
    assert collators.native(make(tokenizer)) is None


def test_a_replaced_method_is_not_recognised(tokenizer, monkeypatch):
    collator = transformers.DataCollatorWithPadding(tokenizer)
    monkeypatch.setattr(type(tokenizer), "_pad", lambda *_, **__: {}, raising=False)
    assert collators.native(collator) is None


def test_a_loader_collates_natively(tokenizer):
    samples = [plain(n) | {"label": n} for n in (3, 5, 2, 4)]
    collator = transformers.DataCollatorWithPadding(tokenizer)
    loader = Loader(samples, 2, collate_fn=collator, num_workers=0)
    batches = iter(loader)
    assert type(batches._collate_fn) is collators.Collator
    assert loader.collate_fn is collator
    for at, batch in enumerate(batches):
        assert_equal(batch, collator(samples[2 * at : 2 * at + 2]))


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        os.getpid()
        return {"input_ids": list(range(2, 6 + index % 5))}


class Around:
    def __init__(self, collator):
        self.collator = collator

    def __call__(self, samples):
        return self.collator(samples)


@pytest.mark.parametrize("around", [Around, lambda collator: collator])
def test_masks_of_a_seed_are_those_of_torchs_default(around, tokenizer):
    """The collator makes its generator with its first batch: workers would have one each."""
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.add_special_tokens({"mask_token": "w1"})

    def epochs(kind):
        made = transformers.DataCollatorForLanguageModeling(tokenizer, seed=3)
        loader = kind(Tokens(), 4, collate_fn=around(made))
        return [dict(batch) for _ in range(2) for batch in loader]

    assert_same(epochs(Loader), epochs(torch.utils.data.DataLoader))


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.tokens = torch.arange(40).reshape(8, 5) % 19

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "attention_mask": self.tokens[index] * 0 + 1}


class Looped(Rows):
    """Its cost is not known, and it only reads."""

    def __getitem__(self, index):
        mask = [1 for _ in range(len(self.tokens[index]))]
        while len(mask) < 5:
            mask.append(1)
        return {"input_ids": self.tokens[index], "attention_mask": torch.tensor(mask)}


CHANGES = {
    "masks": lambda collator: setattr(collator, "mlm", True),
    "multiple": lambda collator: setattr(collator, "pad_to_multiple_of", 8),
    "side": lambda collator: setattr(collator.tokenizer, "padding_side", "left"),
    "token": lambda collator: setattr(collator.tokenizer, "pad_token", "w3"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("make", [Rows, Looped, lambda: [plain(n % 5 + 3) for n in range(8)]])
def test_settings_that_change_between_epochs_count_from_the_next_one(make, change, tokenizer):
    def epochs(kind):
        own = copy.deepcopy(tokenizer)
        own.add_special_tokens({"mask_token": "w1"})
        collator = transformers.DataCollatorForLanguageModeling(own, False, mlm_probability=1.0)
        loader = kind(make(), 4, collate_fn=collator)
        for epoch in range(4):
            if epoch == 2:
                change(collator)
            # which tokens are masked is certain, what stands in their places is not
            yield [batch["labels"] for batch in loader]

    assert_same(list(epochs(Loader)), list(epochs(torch.utils.data.DataLoader)))


def test_masks_that_are_asked_for_between_epochs_draw_nothing_of_the_programs(tokenizer):
    own = copy.deepcopy(tokenizer)
    own.add_special_tokens({"mask_token": "w1"})
    collator = transformers.DataCollatorForLanguageModeling(own, False)
    loader = Loader(Rows(), 4, collate_fn=collator, on_error="skip")
    list(loader)
    collator.mlm = True
    before = torch.get_rng_state()
    torch.randint(1 << 60, ())  # the seed of an epoch
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    list(loader)
    assert torch.get_rng_state().equal(after)


class Configured:
    """Takes its attributes from a mapping, which has no others."""

    def __init__(self):
        self.settings = {"factor": 2}
        self.tokenizer = {}

    def __getattr__(self, name):
        return vars(self)["settings"][name]

    def __call__(self, samples):
        return torch.tensor(samples) * self.factor


@pytest.mark.parametrize("workers", [0, 2])
def test_attributes_of_other_collate_functions_are_not_asked_for(workers):
    collate = Configured()
    collate.tokenizer = Configured()
    expected = list(torch.utils.data.DataLoader(range(4), 2, collate_fn=collate))
    assert_same(list(Loader(range(4), 2, collate_fn=collate, num_workers=workers)), expected)
