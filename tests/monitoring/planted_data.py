"""Troubles of the data: samples, files and workers that are late, stopped or too slow."""

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch.utils.data import Dataset, get_worker_info

from fastload.columns import Image
from tests.shared.photographs import operations, write_photographs

from .planted import LONG_S, SEARCH_EVERY, finds, planted, program
from .real_runs import STEP_S, Numbers, Training, rest


class Uneven(Dataset):
    """Samples of which each 30th is slow to make."""

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        if index % SEARCH_EVERY == SEARCH_EVERY - 1:
            time.sleep(LONG_S)
        return index


LATE = finds("period", "data", f"every {SEARCH_EVERY} steps the batch is late by ")


@planted("each 30th sample is slow, in threads", LATE)
def _uneven() -> Iterator[Training]:
    yield Training(rest, dataset=Uneven(), settings={"lane": "threads"})


@planted("each 30th sample is slow, without workers", LATE)
def _uneven_inline() -> Iterator[Training]:
    yield Training(rest, dataset=Uneven(), settings={"num_workers": 0})


class SlowCollate:
    """A collate function that is slow at each 30th batch."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def __call__(self, samples: list[Any]) -> torch.Tensor:
        if next(self.calls) % SEARCH_EVERY == SEARCH_EVERY - 1:
            time.sleep(LONG_S)
        return torch.tensor(samples)


@planted("each 30th batch is slow to collate, in a process", LATE)
def _slow_collation() -> Iterator[Training]:
    settings = {"lane": "process", "collate_fn": SlowCollate()}
    yield Training(rest, dataset=Numbers(1000), settings=settings)


STALL_EVERY = 64
STALLED = finds("period", "data", f"every {STALL_EVERY} steps the batch is late by ")


@contextlib.contextmanager
def _stalling_file(folder: Path, content: Path) -> Iterator[Path]:
    """Yields a file from which something comes only after a while: a FIFO."""
    path = folder / "stalls"
    os.mkfifo(path)
    writes = f'while :; do {{ sleep {2 * LONG_S}; cat "$1"; }} > "$0"; done'
    with program("sh", "-c", writes, str(path), str(content)):
        yield path


@planted("a file stalls each 64th batch, natively read", STALLED)
def _stalled_reading() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as folder:
        photographs = write_photographs(Path(folder), 8)
        with _stalling_file(Path(folder), photographs[0]) as stalls:
            files = [
                stalls if step % STALL_EVERY == STALL_EVERY - 1 else photographs[step % 8]
                for step in range(1000)
            ]
            yield Training(rest, dataset=Image(files, transform=operations()))


class Read(Dataset):
    """Samples of which each is read from a file."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> int:
        return len(self.paths[index].read_bytes())


@planted("a file stalls each 64th batch, read in a process", STALLED)
def _stalledprogram() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as folder:
        usual = Path(folder, "usual")
        usual.write_bytes(b"sample")
        with _stalling_file(Path(folder), usual) as stalls:
            files = [stalls if i % STALL_EVERY == STALL_EVERY - 1 else usual for i in range(1000)]
            yield Training(rest, dataset=Read(files), settings={"lane": "process"})


class SlowWorker(Numbers):
    """Samples that the first of some workers is slow to make."""

    def __getitem__(self, index: int) -> int:
        if get_worker_info().id == 0:
            time.sleep(4 * STEP_S * get_worker_info().num_workers)
        return index


@planted(
    "one of three workers is slow",
    finds(
        "period",
        "data",
        "every 3 steps the batch is late by ",
        "the period is the number of workers",
    ),
)
def _slow_worker() -> Iterator[Training]:
    settings = {"lane": "process", "num_workers": 3, "prefetch_factor": 1}
    yield Training(rest, dataset=SlowWorker(1500), steps=1500, settings=settings)


@planted(
    "the worker is stopped for seven seconds",
    finds("stall", "data", "step 4", " has waited ", " s for its batch, which has not come"),
    finds("stall", "data", " took ", " s longer: the batches were late"),
    slow=True,
)
def _stopped_worker() -> Iterator[Training]:
    with contextlib.ExitStack() as stack:

        def train(step: int, *others: Any) -> None:
            rest(step, *others)
            if step == 400:
                worker = psutil.Process().children()[-1]
                worker.suspend()
                stack.enter_context(program("sh", "-c", f"sleep 7; kill -CONT {worker.pid}"))

        yield Training(train, dataset=Numbers(1000), settings={"lane": "process"})


@planted(
    "samples that are slow to make, in workers",
    finds("starvation", "data", "the training waits for batches ", "mostly for workers"),
)
def _slow_samples() -> Iterator[Training]:
    settings = {"lane": "process", "num_workers": 2}
    yield Training(rest, dataset=Numbers(1000, 10 * STEP_S), settings=settings)


@planted(
    "images that are slow to decode",
    finds(
        "starvation",
        "data",
        "the training waits for batches ",
        "mostly for decoding and transforms",
    ),
)
def _slow_decoding() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.jpg")
        import PIL.Image

        noise = np.random.default_rng(0).integers(0, 256, (1000, 1500, 3), np.uint8)
        PIL.Image.fromarray(noise).save(path)
        yield Training(rest, dataset=Image([path] * 1000, transform=operations()))


@planted(
    "workers that are started for each short epoch",
    finds("period", "data", "at each start of an epoch the first batches are late by "),
)
def _short_epochs() -> Iterator[Training]:
    yield Training(rest, steps=600, dataset=Numbers(40), settings={"lane": "process"})
