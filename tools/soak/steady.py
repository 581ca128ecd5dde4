"""Loaders with fixed settings, run for some seconds each, so that memory can be followed per batch.

A stretch begins with a loader of its own and gives one slope of each figure; its first part is warm-up. Every
batch is compared with torch's here, too.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import fastload
from fastload import columns
from fastload.machine.auto import Auto
from tools.soak import oracle, verdict, watch
from tools.soak.rounds import SLICE_S, Beat, Finding, seed_all
from tools.soak.sources import Numbered

SAMPLES = 20_000
SEED = 18
SAMPLING_S = 0.1
WARM_UP = 0.3
WARM_UP_BATCHES = 1000
WARM_UP_BATCHES_OF_WORKERS = 25_000
"""The memory of a worker process grows by some hundred kB before that: pages of its heap are touched first."""
LEAST_BATCHES = 1000
"""A slope of fewer is that of the warm-up."""
WINDOWS = 8
LONGEST = 4
"""Where a machine is slow, a stretch takes so many times its seconds at most."""
LONG_S = SLICE_S / 2
"""Shorter waits are not remembered."""


@dataclass
class Lane:
    """One loader of the stretches.

    Attributes:
        loader: Makes it.
        torchs: Makes torch's.
        share: Of the time of all stretches; processes make fewer batches in a second.
        workers: Whether it has processes to look at.
    """

    loader: Callable[[], Any]
    torchs: Callable[[], Any]
    share: float = 1
    workers: bool = False
    expected: list[oracle.Event] | None = None

    def digests(self) -> list[oracle.Event]:
        """Returns those of torch's loader, which is asked once."""
        if self.expected is None:
            seed_all(SEED)
            self.expected = [oracle.of_batch(batch) for batch in self.torchs()]
        return self.expected


class Stretch(NamedTuple):
    """What a stretch came to: how many batches, the slope of each figure, and waits that were long."""

    batches: int
    slopes: dict[str, float]
    waits: list[float]


def lanes(folder: Path) -> dict[str, Lane]:
    """Returns the loaders by name; files are written into `folder`."""
    rng = np.random.default_rng(4)
    rows = TensorDataset(torch.arange(8 * SAMPLES).reshape(SAMPLES, 8), torch.arange(SAMPLES))
    lengths = rng.integers(1, 20, SAMPLES)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ragged = columns.Ragged(torch.arange(int(offsets[-1])), offsets)
    paths = [folder / f"{number}.npy" for number in range(400)]
    for path in paths:
        np.save(path, rng.standard_normal((4, 3)))
    two, one = {"num_workers": 2}, {"num_workers": 1, "prefetch_factor": 1}
    order = random.Random(3).sample(range(SAMPLES), SAMPLES)

    def native(
        dataset: Any, size: int, sizes: dict[str, int], share: float = 1, **arguments: Any
    ) -> Lane:
        shared = {"batch_size": size, "shuffle": True, **arguments}
        ours = {"lane": "native", "tune": False, **sizes}
        return Lane(
            lambda: fastload.Loader(dataset, **shared, **ours),
            lambda: DataLoader(dataset, **shared),
            share,
        )

    def python(workers: int, kind: str, *, auto: bool = False, share: float = 1) -> Lane:
        dataset = Numbered(SAMPLES)
        shared: dict[str, Any] = {"batch_size": 4, "sampler": order}

        def loader() -> Any:
            further = {"persistent_workers": True, "tune": False} if workers else {}
            made = fastload.Loader(dataset, num_workers=workers, lane=kind, **shared, **further)
            if auto:
                made.num_workers = Auto(workers)
            return made

        return Lane(loader, lambda: DataLoader(dataset, **shared), share, kind == "process")

    return {
        "native": native(rows, 16, two),
        "native, padded": native(ragged, 16, two, collate_fn=fastload.PadCollate()),
        "native, files": native(columns.Npy(paths), 4, two),
        # the consumer itself makes small batches that are late: here it has to wait
        "native, depth 1": native(columns.Npy(paths), 40, one, share=0.6),
        "processes, AUTO": python(2, "process", auto=True, share=4),
        "processes, chosen": python(2, "process", share=4),
        "threads": python(2, "threads"),
        "inline": python(0, "auto", share=0.6),
    }


def run(lane: Lane, seconds: float, beat: Beat) -> Stretch:
    """Runs a loader for so long.

    Raises:
        Finding: A batch is not torch's.
    """
    expected, loader = lane.digests(), lane.loader()
    begun, batches = time.monotonic(), 0
    warm_up = WARM_UP_BATCHES_OF_WORKERS if lane.workers else WARM_UP_BATCHES
    due = begun + WARM_UP * seconds
    x: list[float] = []
    figures: dict[str, list[float]] = {}
    waits: list[float] = []

    def is_enough() -> bool:
        return len(x) > WINDOWS and x[-1] - x[0] >= LEAST_BATCHES

    def over(now: float) -> bool:
        return now > begun + (seconds if is_enough() else LONGEST * seconds)

    while True:
        seed_all(SEED)
        number, left = 0, time.monotonic()
        for batch in loader:
            if (waited := time.monotonic() - left) > LONG_S:
                waits.append(waited)
            beat()
            event = oracle.of_batch(batch)
            if event != expected[number]:
                raise Finding(_named(lane, number, batch, event, expected))
            number += 1
            batches += 1
            left = now = time.monotonic()
            if over(now):
                break
            if now < due or batches < warm_up:
                continue
            due = now + SAMPLING_S
            x.append(batches)
            seen = watch.light()
            if lane.workers:
                seen["workers"] = watch.workers_bytes()
            for kind, value in seen.items():
                figures.setdefault(kind, []).append(value)
            left = time.monotonic()
        else:
            if number != len(expected):
                msg = f"{number} batches came in place of {len(expected)}"
                raise Finding(msg)
        if over(time.monotonic()):
            break
    slopes = {}
    if is_enough():
        slopes = {
            kind: verdict.theil_sen(*verdict.minima(x, values, WINDOWS))
            for kind, values in figures.items()
        }
    return Stretch(batches, slopes, waits)


def _named(
    lane: Lane, number: int, batch: Any, event: oracle.Event, expected: list[oracle.Event]
) -> str:
    if event in expected[max(0, number - 9) : number + 10]:
        return f"batch {number} came in another order: it is batch {expected.index(event)}"
    seed_all(SEED)
    for at, want in enumerate(lane.torchs()):
        if at == number:
            return f"batch {number} differs: {oracle.difference(batch, want)}"
    return f"batch {number} differs"
