"""What grows with the batches: memory of the training and of workers, open files."""

import contextlib
import ctypes
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from .planted import finds, planted
from .real_runs import Numbers, Training


class Leaking(Numbers):
    """Samples of which the worker keeps 100 bytes each."""

    def __init__(self, samples: int) -> None:
        super().__init__(samples)
        self.kept: deque[bytes] = deque()

    def __getitem__(self, index: int) -> int:
        self.kept.append(bytes(100 - sys.getsizeof(b"")))
        return index


LEAKED = finds("leak", "data", "the private memory of the workers grows by ", " B per batch")


@planted("a worker keeps 100 B of each batch", LEAKED, slow=True)
def _leaking_worker() -> Iterator[Training]:
    yield Training(
        lambda *_: time.sleep(0.001),
        steps=40_000,
        dataset=Leaking(40_000),
        settings={"lane": "process"},
        every_s=0.025,
    )


GROWS = "the memory of the training process grows by "


@planted("a metric keeps graphs", finds("leak", "own code", GROWS, "kB per batch"), slow=True)
def _kept_graphs() -> Iterator[Training]:
    losses = []
    weights = torch.ones(200, requires_grad=True)

    def train(_step: int, batch: torch.Tensor, _monitor: object) -> None:
        time.sleep(0.001)
        losses.append((weights * batch).tanh().sum())

    yield Training(train, steps=40_000, every_s=0.025)


@planted(
    "native code that frees nothing", finds("leak", "own code", GROWS, "kB per batch"), slow=True
)
def _not_freed() -> Iterator[Training]:
    c = ctypes.CDLL(None)
    c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    c.free.argtypes = [ctypes.c_void_p]
    kept = []

    def train(*_: Any) -> None:
        time.sleep(0.001)
        kept.append(c.malloc(5000))
        ctypes.memset(kept[-1], 1, 5000)

    yield Training(train, steps=40_000, every_s=0.025)
    for each in kept:
        c.free(each)


OPENED = finds(
    "growth", "own code", "the number of open file descriptors grows by ", " per 1,000 batches"
)


@planted("files that stay open", OPENED, slow=True)
def _open_files() -> Iterator[Training]:
    with contextlib.ExitStack() as stack:

        def train(step: int, *_: Any) -> None:
            time.sleep(0.001)
            if step % 50 == 0:
                stack.enter_context(Path(os.devnull).open())

        yield Training(train, steps=40_000, every_s=0.025)
