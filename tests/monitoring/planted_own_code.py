"""Troubles of the training's own code: functions, garbage collection, checkpoints, TensorBoard."""

import contextlib
import gc
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fastload

from .planted import LONG_S, SEARCH_EVERY, finds, planted
from .real_runs import Training, rest

HERE = Path(__file__).name
COLLECT_EVERY, SAVE_EVERY = 50, 100


def optimal_sequence_search() -> None:
    time.sleep(LONG_S)


def add_up(count: int) -> int:
    return sum(range(count))  # one call of C


def now_and_then() -> None:
    time.sleep(LONG_S)


SEARCHED = finds(
    "period",
    "own code",
    f"every {SEARCH_EVERY} steps the training pauses for ",
    f", in optimal_sequence_search ({HERE}:",
)


@planted("a function that sleeps, each 30 steps", SEARCHED)
def _search() -> Iterator[Training]:
    yield Training(_searching)


def _searching(step: int, *rest_of: Any) -> None:
    rest(step, *rest_of)
    if step % SEARCH_EVERY == SEARCH_EVERY - 1:
        optimal_sequence_search()


@planted(
    "a function that computes in C and keeps the interpreter, each 60 steps",
    finds("period", "own code", "every 60 steps the training pauses for ", f", in add_up ({HERE}:"),
)
def _native() -> Iterator[Training]:
    begun = time.thread_time()
    sum(range(1_000_000))
    count = int(1_000_000 * 2 * LONG_S / (time.thread_time() - begun))

    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        if step % 60 == 59:
            add_up(count)

    yield Training(train)


@planted(
    "stalls at random steps",
    finds(
        "stall",
        "own code",
        "steps took up to ",
        "the training's own code",
        f", in now_and_then ({HERE}:",
    ),
)
def _irregular() -> Iterator[Training]:
    chance = random.Random(5)

    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        if chance.random() < 0.05:
            now_and_then()

    yield Training(train)


COLLECTED = finds(
    "period", "garbage collection", f"every {COLLECT_EVERY} steps garbage collection takes "
)


@contextlib.contextmanager
def _much_to_collect() -> Iterator[None]:
    gc.freeze()  # what is there already is not collected
    gc.disable()
    lists = [[[]] for _ in range(400_000)]
    try:
        yield
    finally:
        del lists
        gc.enable()
        gc.unfreeze()


@planted("gc.collect() each 50 steps", COLLECTED)
def _collect() -> Iterator[Training]:
    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        if step % COLLECT_EVERY == COLLECT_EVERY - 1:
            gc.collect()

    with _much_to_collect():
        yield Training(train)


@planted(
    "gc.collect() in each step",
    finds("stall", "garbage collection", "garbage collection takes ", "% of the time"),
)
def _collect_always() -> Iterator[Training]:
    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        gc.collect()

    gc.freeze()  # what is there already is not collected
    lists = [[[]] for _ in range(10_000)]
    try:
        yield Training(train)
    finally:
        gc.unfreeze()
        del lists


SAVED = finds("period", "checkpoint", f"every {SAVE_EVERY} steps the region 'checkpoint' takes ")


class Saved:
    """A model's weights, and the file that they are saved to."""

    def __init__(self, folder: str) -> None:
        self.weights = {f"layer {number}": torch.rand(1 << 20) for number in range(24)}
        self.path = Path(folder, "checkpoint.pt")

    def save_checkpoint(self) -> None:
        torch.save(self.weights, self.path)


@planted("torch.save in a region, each 100 steps", SAVED)
def _checkpoint() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as folder:
        saved = Saved(folder)

        def train(step: int, batch: object, monitor: fastload.Monitor) -> None:
            rest(step, batch, monitor)
            if step % SAVE_EVERY == 0:
                with monitor.region("checkpoint"):
                    saved.save_checkpoint()

        yield Training(train)


@planted(
    "torch.save that is not named, each 60 steps",
    finds(
        "period",
        "own code",
        "every 60 steps the training pauses for ",
        f", in Saved.save_checkpoint ({HERE}:",
    ),
)
def _unnamed_checkpoint() -> Iterator[Training]:
    with tempfile.TemporaryDirectory() as folder:
        saved = Saved(folder)

        def train(step: int, *others: Any) -> None:
            rest(step, *others)
            if step % 60 == 0:
                saved.save_checkpoint()

        yield Training(train)


class Bucket:
    """A file system that can only write whole files, and takes its time: what TensorBoard takes for `s3://`."""

    def exists(self, filename: str) -> bool:
        return True

    def makedirs(self, dirname: str) -> None:
        """Makes no folder: there are none."""

    def join(self, *parts: str) -> str:
        return "/".join(parts)

    def write(self, filename: str, file_content: bytes, binary_mode: bool = False) -> None:
        time.sleep(2 * LONG_S)


@planted(
    "TensorBoard is flushed to slow storage at random steps, by a thread",
    finds(
        "stall", "sink", " steps took up to ", "metrics were logged", ", which calls tensorboard"
    ),
)
def _tensorboard() -> Iterator[Training]:
    gfile = pytest.importorskip("tensorboard.compat.tensorflow_stub.io.gfile")
    from torch.utils.tensorboard import SummaryWriter

    gfile.register_filesystem("bucket", Bucket())
    writer = SummaryWriter("bucket://runs")
    chance = random.Random(6)

    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        if chance.random() < 0.03:
            threading.Thread(target=writer.flush).start()
        writer.add_scalar("loss", 1 / (1 + step), step)

    yield Training(train)
    writer.close()
