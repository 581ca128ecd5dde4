"""Training on samples of different lengths: the same losses, to the bit, as with torch's loader."""

import functools
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

from fastload import Dataset, Loader, PackCollate, Pad, PadCollate, TokenBatchSampler, columns
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import SIZES

from .lengths import tokens

pytestmark = MANY_WORKERS

COUNT, WORDS = 60, 23
LENGTHS = tokens(COUNT, seed=3, longest=40)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def texts():
    random = np.random.default_rng(1)
    return [random.integers(1, WORDS, length) for length in LENGTHS]


def labelled(texts):
    """Samples as a map-style dataset of Python."""
    return [{"input_ids": text.tolist(), "label": len(text) % 2} for text in texts]


def columnar(texts):
    """The same samples, which native threads make."""
    ids = columns.Ragged(np.concatenate(texts), np.cumsum([0, *map(len, texts)]))
    labels = columns.Rows(np.array([len(text) % 2 for text in texts]))
    return Dataset({"input_ids": ids, "label": labels})


def by_hand(samples):
    """What people write in place of `PadCollate`."""
    ids = [torch.tensor(sample["input_ids"]) for sample in samples]
    lengths = torch.tensor([len(each) for each in ids])
    padded = pad_sequence(ids, batch_first=True)
    return {
        "input_ids": padded,
        "input_ids_lengths": lengths,
        "attention_mask": torch.arange(padded.shape[1]) < lengths[:, None],
        "label": torch.tensor([sample["label"] for sample in samples]),
    }


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, 2)

    def forward(self, batch):
        packed = pack_padded_sequence(
            self.words(batch["input_ids"]),
            batch["input_ids_lengths"],
            batch_first=True,
            enforce_sorted=False,
        )
        _, (last, _) = self.lstm(packed)
        return cross_entropy(self.out(torch.cat([*last], 1)), batch["label"])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, 2)

    def forward(self, batch):
        mask = batch["attention_mask"].bool()
        hidden = self.encoder(self.words(batch["input_ids"]), src_key_padding_mask=~mask)
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return cross_entropy(self.out(mean), batch.get("label", batch.get("labels")))


def trained(model, loader):
    """Returns the loss of each step of two epochs."""
    torch.manual_seed(5)
    model = model()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(2):
        for batch in loader:
            loss = model(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


COLLATE = PadCollate({"input_ids": Pad(0)}, mask="attention_mask")


def order(budget):
    if budget is not None:
        return {"batch_sampler": TokenBatchSampler(LENGTHS, budget)}
    return {"batch_size": 8, "shuffle": True, "generator": torch.Generator().manual_seed(2)}


def python_loaders(budget):
    samples = labelled(texts())
    yield DataLoader(samples, collate_fn=COLLATE, **order(budget))
    yield Loader(samples, collate_fn=COLLATE, num_workers=0, **order(budget))
    yield Loader(samples, collate_fn=COLLATE, num_workers=1, **order(budget))


@functools.cache
def losses_by_hand(model, budget):
    losses = trained(model, DataLoader(labelled(texts()), collate_fn=by_hand, **order(budget)))
    assert len(losses) >= 2 * COUNT / 8
    assert len(set(losses)) == len(losses)
    return losses


@pytest.mark.parametrize("model", [Recurrent, Transformer])
@pytest.mark.parametrize("budget", [None, 160])
def test_losses_of_python_samples_are_those_of_padding_by_hand(model, budget):
    for loader in python_loaders(budget):
        assert trained(model, loader) == losses_by_hand(model, budget)


@pytest.mark.parametrize("model", [Recurrent, Transformer])
@pytest.mark.parametrize("budget", [None, 160])
def test_losses_of_columns_are_those_of_padding_by_hand(model, budget):
    lists = columnar(texts())
    loader = Loader(lists, collate_fn=COLLATE, lane="native", **SIZES, **order(budget))
    assert trained(model, loader) == losses_by_hand(model, budget)


def test_losses_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = {f"w{number}": number for number in range(WORDS)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="w0")), pad_token="w0"
    )
    collate = transformers.DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    samples, lists = labelled(texts()), columnar(texts())

    def order():
        return {"batch_size": 8, "shuffle": True, "generator": torch.Generator().manual_seed(2)}

    theirs = trained(Transformer, DataLoader(samples, collate_fn=collate, **order()))
    for loader in (
        Loader(samples, collate_fn=collate, num_workers=1, **order()),
        Loader(lists, collate_fn=collate, **SIZES, **order()),
    ):
        assert trained(Transformer, loader) == theirs


class Packed(nn.Module):
    """A language model whose attention keeps documents apart by `cu_seq_lens_q`."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.places = nn.Embedding(64, 16)
        self.project = nn.Linear(16, 48)
        self.out = nn.Linear(16, WORDS)

    def forward(self, batch):
        hidden = self.words(batch["input_ids"]) + self.places(batch["position_ids"])
        queries, keys, values = self.project(hidden)[0].chunk(3, -1)
        attended = [
            nn.functional.scaled_dot_product_attention(
                queries[None, start:stop],
                keys[None, start:stop],
                values[None, start:stop],
                is_causal=True,
            )[0]
            for start, stop in pairwise(batch["cu_seq_lens_q"].tolist())
        ]
        scores = self.out(torch.cat(attended))
        return cross_entropy(scores[:-1], batch["labels"][0, 1:])


def flattened(samples):
    """Returns a batch of whole documents as transformers lays it out."""
    transformers = pytest.importorskip("transformers")
    return transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)(samples)


def test_losses_are_those_of_flattened_documents():
    samples = [{"input_ids": text.tolist()} for text in texts()]
    theirs = trained(Packed, DataLoader(samples, 6, collate_fn=flattened))
    collate = PackCollate(10_000, "first_fit")
    assert trained(Packed, Loader(samples, 6, collate_fn=collate, num_workers=1)) == theirs


def test_batches_are_those_of_trl_without_padding():
    pytest.importorskip("trl")
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    collate = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    samples = [{"input_ids": text.tolist()} for text in texts()]
    theirs = collate(samples)
    ours = PackCollate(10_000, "first_fit")(samples)
    for name, value in ours.items():
        if isinstance(value, torch.Tensor):
            assert value.dtype == theirs[name].dtype
            assert torch.equal(value, theirs[name]), name
        else:
            assert value == theirs[name]
    assert set(theirs) - set(ours) <= {"seq_idx"}
