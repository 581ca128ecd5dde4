"""Token lists of many lengths, padded with mask and lengths: an epoch beside what people write by hand.

200,000 lists of int64, log-normal with mean 50, at most 2048; shuffled, batches of 32. Ours over
`Ragged` and over a column of an Arrow table. The rivals: the best collate function in NumPy over the same
arrays, `pad_sequence` over tensors, Hugging Face `datasets` in torch format with `DataCollatorWithPadding`;
torch's DataLoader with `num_workers` 0, 1, 2 and 4, of which the slow ones make the first batches only, and the
fast ones several epochs.
Limit: the bytes of all batches, copied once.

The split of one `next()` when its batch lies ready: differences between medians of the consumer's own processor
time, as in `rows.py`. Python = Loader - stream; sampler = order fed - order pulled before; a tensor = half of what
mask and lengths cost; hand-over = what remains.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import torch
from _contest import SPEED, Bench, Figures, best, interleave, median, pace
from rows import ready_us
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

import fastload
from fastload import PadCollate, _lib, lanes
from fastload.columns import Arrow, Ragged
from fastload.draws import sampler
from fastload.iterators.native import ahead

LISTS, MEAN, LONGEST, BATCH_SIZE = 200_000, 50, 2048, 32
WORKERS = (0, 1, 2, 4)
FEW = {"NumPy": LISTS, "pad_sequence": 40_000, "datasets": 8_000}
"""Samples of a round of each rival."""
EPOCHS = 6
"""Epochs of a round of ours and of the limit: so each contestant takes some tenths of a second."""
NEXTS = 400
OWN = "own CPU time, µs"


def token_lists() -> tuple[np.ndarray, np.ndarray]:
    """Returns the tokens of all lists, and where each begins."""
    random = np.random.default_rng(0)
    drawn = random.lognormal(np.log(MEAN) - 0.5, 1.0, LISTS).round()
    offsets = np.concatenate([[0], np.cumsum(np.clip(drawn, 1, LONGEST).astype(np.int64))])
    return random.integers(0, 50_000, offsets[-1]), offsets


class Numbers(torch.utils.data.Dataset[int]):
    """Indices: the collate function reads the arrays itself, which saves a call per sample."""

    def __len__(self) -> int:
        return LISTS

    def __getitems__(self, indices: list[int]) -> list[int]:
        return indices


class InNumpy:
    """The best collate function in NumPy that we know: one copy per list, the rest at once."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self._values = values
        self._starts = offsets[:-1]
        self._lengths = np.diff(offsets)

    def __call__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        starts, lengths = self._starts[indices], self._lengths[indices]
        padded = np.zeros((len(indices), lengths.max()), np.int64)
        values = self._values
        for row, start, length in zip(padded, starts.tolist(), lengths.tolist(), strict=True):
            row[:length] = values[start : start + length]
        mask = np.arange(padded.shape[1]) < lengths[:, None]
        named = {"input_ids": padded, "input_ids_lengths": lengths, "attention_mask": mask}
        return {name: torch.from_numpy(array) for name, array in named.items()}


class Tensors(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Samples as most people have them."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self._values, self._offsets = torch.from_numpy(values), offsets.tolist()

    def __len__(self) -> int:
        return LISTS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._values[self._offsets[index] : self._offsets[index + 1]]}


def by_pad_sequence(samples: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Pads as torch's documentation has it."""
    lists = [sample["input_ids"] for sample in samples]
    lengths = torch.tensor([len(each) for each in lists])
    padded = pad_sequence(lists, batch_first=True)
    mask = torch.arange(padded.shape[1]) < lengths[:, None]
    return {"input_ids": padded, "input_ids_lengths": lengths, "attention_mask": mask}


def tokenizer() -> PreTrainedTokenizerFast:
    """Returns what Hugging Face's collator asks for the padding."""
    words = Tokenizer(WordLevel({"[PAD]": 0}, unk_token="[PAD]"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")


def rivals(values: np.ndarray, offsets: np.ndarray) -> dict[str, Callable[[int], DataLoader]]:
    """Returns what makes each rival's loader, of a number of workers."""
    hugging = datasets.Dataset(pa.table({"input_ids": arrow(values, offsets)}))
    parts: dict[str, tuple[Any, Any]] = {
        "NumPy": (Numbers(), InNumpy(values, offsets)),
        "pad_sequence": (Tensors(values, offsets), by_pad_sequence),
        "datasets": (hugging.with_format("torch"), DataCollatorWithPadding(tokenizer())),
    }
    return {
        name: functools.partial(torch_loader, dataset, collate)
        for name, (dataset, collate) in parts.items()
    }


def torch_loader(dataset: Any, collate: Any, workers: int) -> DataLoader:
    """Returns torch's loader, shuffled."""
    return DataLoader(dataset, BATCH_SIZE, shuffle=True, num_workers=workers, collate_fn=collate)


def arrow(values: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Returns the lists as Arrow has them."""
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))


def ours(column: Any, workers: int, **options: Any) -> fastload.Loader:
    """Returns our loader of the same batches."""
    dataset = fastload.Dataset({"input_ids": column})
    collate = PadCollate(**({"mask": "attention_mask"} | options))
    return fastload.Loader(
        dataset, BATCH_SIZE, shuffle=True, num_workers=workers, collate_fn=collate
    )


def copies(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Copies as many bytes as batches have, each batch once."""
    order = np.random.default_rng(1).permutation(lengths)
    batches = [order[start : start + BATCH_SIZE] for start in range(0, LISTS, BATCH_SIZE)]
    sizes = [len(batch) * (int(batch.max()) * 9 + 8) for batch in batches]
    source = np.ones(max(sizes), np.uint8)
    for size in sizes:
        yield source[:size].copy()


def race(bench: Bench, values: np.ndarray, offsets: np.ndarray) -> Figures:
    """Runs all contestants, in turn."""
    made = {}
    for name, loader in rivals(values, offsets).items():
        for workers in WORKERS:
            some = functools.partial(first, functools.partial(loader, workers), FEW[name])
            made[f"torch, {name}, num_workers={workers}"] = some, FEW[name]
    for name, column in (
        ("Ragged", Ragged(values, offsets)),
        ("Arrow", Arrow(arrow(values, offsets))),
    ):
        for workers in (1, 2):
            epochs = functools.partial(several, functools.partial(ours, column, workers))
            made[f"fastload, {name}, num_workers={workers}"] = epochs, EPOCHS * LISTS
    epochs = functools.partial(several, functools.partial(copies, np.diff(offsets)))
    made["the same bytes, copied once"] = epochs, EPOCHS * LISTS
    return interleave(
        {who: functools.partial(pace, iterate, count) for who, (iterate, count) in made.items()},
        bench.rounds,
    )


def first(loader: Callable[[], Iterable[Any]], samples: int) -> Iterable[Any]:
    """Returns the first batches of an epoch."""
    return itertools.islice(loader(), samples // BATCH_SIZE)


def several(epoch: Callable[[], Iterable[Any]]) -> Iterable[Any]:
    """Returns the batches of several epochs, each made anew."""
    return itertools.chain.from_iterable(epoch() for _ in range(EPOCHS))


def split(column: Any) -> dict[str, Callable[[], dict[str, float]]]:
    """Returns variants of one `next()`, whose differences are its parts."""

    def loader() -> Callable[[], Any]:
        return functools.partial(next, iter(ours(column, 1)))

    def stream(options: dict[str, Any], *, fed: bool) -> Callable[[], Any]:
        loader = ours(column, 1, **options)
        program = lanes.choose(loader).program
        order = sampler.recognise(loader.batch_sampler, batched=True)
        depth = ahead(loader, program, order).first
        made = _lib.Stream(program, batched=True, depth=depth, budget_bytes=1 << 30, threads=1)
        if fed:
            made.feed(iter([torch.randperm(LISTS)]), BATCH_SIZE, False, depth)
        else:
            batches = NEXTS + 10
            order = torch.randperm(LISTS)[: batches * BATCH_SIZE]
            made.feed(iter([order]), BATCH_SIZE, False, batches)
        return functools.partial(made.take, 0.0)

    bare = {"mask": None, "lengths": False}
    variants = {
        "next(Loader)": loader,
        "take, fed": functools.partial(stream, {}, fed=True),
        "take, pulled": functools.partial(stream, {}, fed=False),
        "take, pulled, no mask and lengths": functools.partial(stream, bare, fed=False),
    }
    return {name: functools.partial(timed, variant) for name, variant in variants.items()}


def timed(make: Callable[[], Callable[[], Any]]) -> dict[str, float]:
    """Returns what a call costs its thread when the batch lies ready."""
    take = make()
    for _ in range(10):
        take()
    return {OWN: ready_us(take, NEXTS)[0]}


def parts(figures: Figures) -> Figures:
    """Returns the parts of one `next()`, from the variants' medians."""
    whole, fed, pulled, bare = (median(figures, who, OWN) for who in figures)
    tensor = (pulled - bare) / 2
    shares = {
        "sampler": fed - pulled,
        "hand-over": bare - tensor,
        "three tensors made": 3 * tensor,
        "Python": whole - fed,
        "sum: one next()": whole,
    }
    return {part: {"µs": [value]} for part, value in shares.items()}


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    values, offsets = token_lists()
    figures = race(bench, values, offsets)
    torchs = [who for who in figures if who.startswith("torch")]
    title = f"{LISTS:,} token lists, padded with mask and lengths, batches of {BATCH_SIZE}"
    bench.show(title, figures, ratio_of=SPEED, rivals=torchs, more_is_better=True, digits=3)
    for name in ("Ragged", "Arrow"):
        own = [f"fastload, {name}, num_workers={workers}" for workers in (1, 2)]
        fastest = best(figures, SPEED, own, more_is_better=True)
        for rival, promised in (("NumPy", 5), ("pad_sequence", 30), ("datasets", 100)):
            theirs = [who for who in torchs if rival in who]
            ratio = fastest / best(figures, SPEED, theirs, more_is_better=True)
            bench.claim(f"{name}: samples/s by torch with {rival}", ratio, promised, at_least=True)
        limit = median(figures, "the same bytes, copied once", SPEED)
        bench.claim(f"{name}: time by copying the same bytes once", limit / fastest, 4)
    variants = interleave(split(Ragged(values, offsets)), bench.rounds)
    bench.show("One next() when the batch is ready", parts(variants), digits=2)
    bench.close()


if __name__ == "__main__":
    main()
