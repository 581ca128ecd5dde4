"""Cheap samples at defaults: `Loader(dataset, 32)` beside the best of torch's `num_workers` 0, 1 and 2.

Data in memory, of which a sample takes microseconds, and pure Python of 20 µs, 200 µs and 2 ms. An epoch is timed
from before the loader is made, over a dataset that no loader has seen, so that whatever is started or found out
counts; then once more with what was learned. Epochs of 64 and of 256 samples come fifty in a row, from one loader.
The first batch is timed by itself. `--quick` takes a tenth of the samples.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from _contest import Bench, Figures, best, interleave, median
from torch.utils.data import DataLoader, Dataset, IterableDataset

import fastload

EPOCH, AGAIN = "samples/s, first epoch", "samples/s, next epoch"
SHORT = {samples: f"samples/s, 50 epochs of {samples}" for samples in (64, 256)}
FIRST = "ms to the first batch"
OURS = "fastload, defaults"
BATCH_SIZE, REPEATS = 32, 50


class Sized(Dataset[Any]):
    """So many samples."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples


class Ints(Sized):
    """The index."""

    def __getitem__(self, index: int) -> int:
        return index


class Rows(Sized):
    """A row of 16 floats."""

    def __init__(self, samples: int) -> None:
        super().__init__(samples)
        self.rows = torch.rand(samples, 16)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


class Dicts(Sized):
    """Five numbers, by name."""

    def __getitem__(self, index: int) -> dict[str, float]:
        return {"a": index, "b": index * 2, "c": index * 0.5, "d": -index, "e": 1.0}


class Tokens(Sized):
    """Between 20 and 84 tokens."""

    def __init__(self, samples: int) -> None:
        super().__init__(samples)
        self.tokens = [list(range(20 + index % 64)) for index in range(samples)]

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.tokens[index], "label": index % 3}


class Waveforms(Sized):
    """A second of sound at 16 kHz."""

    def __init__(self, samples: int) -> None:
        super().__init__(samples)
        self.sounds = np.random.default_rng(0).random((256, 16_000), np.float32)

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], int]:
        return self.sounds[index % 256], index % 10


class Stream(IterableDataset[int]):
    """Numbers, one after the other."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.samples))


class Busy(Sized):
    """Pure Python for so long."""

    def __init__(self, samples: int, seconds: float) -> None:
        super().__init__(samples)
        self.steps = int(seconds * _steps_per_s())

    def __getitem__(self, index: int) -> int:
        total = index
        for step in range(self.steps):
            total ^= step
        return total


@functools.cache
def _steps_per_s() -> float:
    began_s, total = time.process_time(), 0
    for step in range(2_000_000):
        total ^= step
    return 2_000_000 / (time.process_time() - began_s)


CASES: dict[str, tuple[Callable[[int], Any], int, dict[str, Any], float]] = {
    "ints": (Ints, 32_000, {}, 0.95),
    "rows": (Rows, 32_000, {}, 0.95),
    "dicts": (Dicts, 32_000, {}, 0.95),
    "tokens": (Tokens, 16_000, {"collate_fn": fastload.PadCollate()}, 0.95),
    "waveforms": (Waveforms, 8_000, {}, 0.95),
    "stream": (Stream, 32_000, {}, 0.95),
    "20us": (functools.partial(Busy, seconds=20e-6), 16_000, {}, 0.95),
    "200us": (functools.partial(Busy, seconds=200e-6), 8_000, {}, 1.0),
    "2ms": (functools.partial(Busy, seconds=2e-3), 1_600, {}, 1.0),
}
SHORT_CASES = ("ints", "rows", "dicts")


def epochs(make: Callable[[Any], Any], dataset: Any, samples: int) -> dict[str, float]:
    """Takes two epochs of a loader."""
    rates = {}
    began_s = time.perf_counter()
    loader = make(dataset)
    for measure in (EPOCH, AGAIN):
        batches = iter(loader)
        next(batches)
        first_s = time.perf_counter() - began_s
        for _ in batches:
            pass
        rates[measure] = samples / (time.perf_counter() - began_s)
        if measure == EPOCH:
            rates[FIRST] = 1e3 * first_s
        began_s = time.perf_counter()
    return rates


def short_epochs(make: Callable[[Any], Any], kind: Callable[[int], Any]) -> dict[str, float]:
    """Takes many short epochs of a loader of each length."""
    rates = {}
    for samples, measure in SHORT.items():
        dataset = kind(samples)
        began_s = time.perf_counter()
        loader = make(dataset)
        for _ in range(REPEATS):
            for _ in loader:
                pass
        rates[measure] = REPEATS * samples / (time.perf_counter() - began_s)
    return rates


def ratio(figures: Figures, measure: str, rivals: list[str]) -> float:
    """Returns ours by torch's best."""
    return median(figures, OURS, measure) / best(figures, measure, rivals, more_is_better=True)


def race(bench: Bench, case: str, *, quick: bool) -> None:
    """Races one case."""
    kind, samples, arguments, promised = CASES[case]
    samples = samples // 10 if quick else samples
    torchs = {f"torch, num_workers={workers}": workers for workers in (0, 1, 2)}
    makers: dict[str, Callable[[Any], Any]] = {
        who: functools.partial(DataLoader, batch_size=BATCH_SIZE, num_workers=number, **arguments)
        for who, number in torchs.items()
    }
    makers[OURS] = functools.partial(fastload.Loader, batch_size=BATCH_SIZE, **arguments)
    rivals = [*torchs]

    def whole(make: Callable[[Any], Any]) -> dict[str, float]:
        return epochs(make, kind(samples), samples)

    figures = interleave(
        {who: functools.partial(whole, make) for who, make in makers.items()}, bench.rounds
    )
    bench.show(case, figures, digits=0, ratio_of=AGAIN, rivals=rivals, more_is_better=True)
    for measure in (EPOCH, AGAIN):
        by = ratio(figures, measure, rivals)
        bench.claim(f"{case}: {measure}, by torch's best", by, promised, at_least=True)
    bench.claim(f"{case}: {FIRST}", median(figures, OURS, FIRST), 100)
    if case not in SHORT_CASES:
        return

    def short(make: Callable[[Any], Any]) -> dict[str, float]:
        return short_epochs(make, kind)

    torchs_best = {rivals[0]: makers[rivals[0]], OURS: makers[OURS]}  # workers take a second
    figures = interleave(
        {who: functools.partial(short, make) for who, make in torchs_best.items()}, bench.rounds
    )
    for measure in SHORT.values():
        by = ratio(figures, measure, rivals[:1])
        bench.claim(f"{case}: {measure}, by torch's default", by, 0.9, at_least=True)


def main() -> None:
    """Races the cases."""
    quick = "--quick" in sys.argv
    sys.argv = [each for each in sys.argv if each != "--quick"]
    bench = Bench(__doc__ or "", rounds=3 if quick else 5, cases=[*CASES])
    for case in bench.cases:
        race(bench, case, quick=quick)
    bench.close()


if __name__ == "__main__":
    main()
