"""Feature sequences of many lengths: tensors of a Python dataset, `.npy` files, recordings.

Tensors: T x 256 float32, T from 20 to 400, batches of 16: the collate function as torch's own `collate_fn`,
the function alone, and whole epochs of a dataset in Python with `num_workers` 0, 1, 2 and 4. Files: 3,000 of
(T, 128) float32 as `.npy`, and 3,000 recordings of half a second to one and a half at 16 kHz as WAV; shuffled,
batches of 32. The rivals pad with `pad_sequence`, and read with `numpy.load` and `soundfile.read`.
"""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from _contest import SPEED, Bench, against_torch, best, interleave, median, pace
from _files import READ, Files, made, read
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

import fastload
from demo.meter import page_faults
from fastload import Pad, PadCollate
from fastload.columns import Audio, Npy

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "sequences"
FILES, FEATURES, RATE_HZ, FILES_PER_BATCH = 3_000, 128, 16_000, 32
TENSORS, WIDTH, SHORTEST, LONGEST, TENSORS_PER_BATCH = 1_600, 256, 20, 400, 16
BATCH, FAULTS = "µs/batch", "page faults/batch"
REST_S = 0.02
"""Before a function begins: torch's threads look for more work for 8 ms after an operation."""


class Sequences(Dataset[torch.Tensor]):
    """Tensors in memory."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        lengths = random.integers(SHORTEST, LONGEST + 1, TENSORS).tolist()
        self.tensors = [torch.randn(length, WIDTH) for length in lengths]

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tensors[index]


def by_pad_sequence(samples: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pads as torch's documentation has it."""
    lengths = torch.tensor([len(sample) for sample in samples])
    return pad_sequence(samples, batch_first=True), lengths


def recording(path: Path) -> np.ndarray:
    """Reads the one channel of a recording: (frames,)."""
    samples, _ = soundfile.read(path, dtype="float32")
    return samples


def files(kind: str) -> list[Path]:
    """Returns the files of a kind, time first; makes them once."""

    def write(path: Path, random: np.random.Generator) -> None:
        if kind == "npy":
            length = random.integers(SHORTEST, LONGEST + 1)
            np.save(path, random.standard_normal((length, FEATURES), np.float32))
        else:
            frames = int(RATE_HZ * random.uniform(0.5, 1.5))
            soundfile.write(path, 0.1 * random.standard_normal(frames), RATE_HZ)

    return made(CACHE / kind, kind, FILES, write)


def per_batch(work: Callable[[], Any], batches: int) -> dict[str, float]:
    """Returns what work costs for each of so many batches, on CPUs that the one before has left."""
    time.sleep(REST_S)
    faults, began_s = page_faults(), time.perf_counter()
    work()
    passed_s = time.perf_counter() - began_s
    return {BATCH: 1e6 * passed_s / batches, FAULTS: (page_faults() - faults) / batches}


def exhaust(collate: Callable[[Any], Any], dataset: Sequences) -> None:
    """Takes all batches of torch's loader, each in place of the one before, as a training does."""
    for _batch in DataLoader(dataset, TENSORS_PER_BATCH, shuffle=True, collate_fn=collate):
        pass


def call(collate: Callable[[Any], Any], batches: list[Any]) -> None:
    """Calls a function with batch after batch, and keeps nothing that it returns."""
    for batch in batches:
        collate(batch)


def collated(bench: Bench, dataset: Sequences) -> None:
    """Races the functions as torch's own `collate_fn`, and alone; with one of torch's threads, and with all."""
    starts = range(0, TENSORS, TENSORS_PER_BATCH)
    batches = [dataset.tensors[start : start + TENSORS_PER_BATCH] for start in starts]
    ours = PadCollate({(): Pad(0.0, dim=0)}, lengths=True)
    padded, lengths = ours(batches[0])
    assert torch.equal(padded, by_pad_sequence(batches[0])[0])
    assert torch.equal(lengths, by_pad_sequence(batches[0])[1])
    memory = torch.empty(TENSORS_PER_BATCH * LONGEST, WIDTH)
    rival, own = "torch, pad_sequence", "fastload, PadCollate"
    contestants: dict[str, Callable[[Any], Any]] = {
        rival: by_pad_sequence,
        own: ours,
        "the samples copied, without padding": lambda samples: torch.cat(
            samples, out=memory[: sum(map(len, samples))]
        ),
    }
    threads = torch.get_num_threads()
    for count in dict.fromkeys((1, threads)):
        torch.set_num_threads(count)
        for where, work, samples in (
            ("in torch's DataLoader", exhaust, dataset),
            ("alone", call, batches),
        ):
            epochs = {
                who: functools.partial(
                    per_batch, functools.partial(work, fn, samples), len(batches)
                )
                for who, fn in contestants.items()
            }
            title = f"{where}, {count} threads"
            figures = interleave(epochs, 3 * bench.rounds)
            bench.show(f"Collating, {title}", figures)
            ratio = median(figures, rival, BATCH) / median(figures, own, BATCH)
            bench.claim(f"pad_sequence / PadCollate, {title}", ratio, 1.5, at_least=True)


def whole(bench: Bench, dataset: Sequences) -> None:
    """Races whole epochs of the Python dataset."""
    collate = PadCollate({(): Pad(0.0, dim=0)}, lengths=True)
    contestants: dict[str, Callable[[], Any]] = {}
    for workers in (0, 1, 2, 4):
        for name, maker, fn in (
            ("torch", DataLoader, by_pad_sequence),
            ("fastload", fastload.Loader, collate),
        ):
            contestants[f"{name}, num_workers={workers}"] = functools.partial(
                maker, dataset, TENSORS_PER_BATCH, shuffle=True, num_workers=workers, collate_fn=fn
            )
    paces = {who: functools.partial(pace, make, TENSORS) for who, make in contestants.items()}
    figures = interleave(paces, bench.rounds)
    torchs = [who for who in figures if who.startswith("torch")]
    bench.show(
        "A dataset in Python", figures, digits=3, ratio_of=SPEED, rivals=torchs, more_is_better=True
    )
    ours = [who for who in figures if who.startswith("fastload")]
    ratio = best(figures, SPEED, ours, more_is_better=True) / best(
        figures, SPEED, torchs, more_is_better=True
    )
    bench.claim("best of fastload / best of torch", ratio, 1, at_least=True)


def from_files(bench: Bench, kind: str, column: Any, load: Any, promised: float) -> None:
    """Races epochs of files."""
    paths = files(kind)
    theirs = Files(paths, load)
    assert torch.equal(column[7], theirs[7])
    collate = PadCollate({(): Pad(0.0, dim=0)}, lengths=True)

    def loader(maker: Any, workers: int) -> Any:
        dataset, fn = (column, collate) if maker is fastload.Loader else (theirs, by_pad_sequence)
        return maker(dataset, FILES_PER_BATCH, shuffle=True, num_workers=workers, collate_fn=fn)

    assert "lane: native" in loader(fastload.Loader, 2).explain()
    against_torch(
        bench,
        f"{FILES:,} .{kind} files, padded",
        loader,
        FILES,
        promised=promised,
        limits={
            "fastload, num_workers=1": functools.partial(loader, fastload.Loader, 1),
            READ: functools.partial(read, paths),
        },
    )


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=5)
    dataset = Sequences()
    collated(bench, dataset)
    whole(bench, dataset)
    from_files(bench, "npy", Npy(files("npy")), np.load, 3)
    from_files(bench, "wav", Audio(files("wav"), mono=True), recording, 3.5)
    bench.close()


if __name__ == "__main__":
    main()
