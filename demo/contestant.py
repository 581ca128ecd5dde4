"""A contestant in a process of its own, so that neither pays for what the other left behind."""

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from demo.loaders import BATCH_SIZE, CONTESTANTS
from demo.meter import PeakMemory, tree_own_bytes
from demo.training import Epoch, Trainer


class Contestant:
    """A process that trains for an epoch, from the same first weights, whenever it is told to."""

    def __init__(self, name: str, root: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, multiprocessing.get_start_method(), name, root)
        )
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it has warmed up
        self._before_bytes = tree_own_bytes(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pipe.close()
        self._process.join()

    def epoch(self) -> Epoch:
        """Trains for one epoch there, undisturbed."""
        self._pipe.send("train")
        return self._pipe.recv()

    def extra_bytes(self) -> int:
        """Trains for one epoch there, watched from here.

        An epoch of its own: to walk the page tables of a process ten times a second slows it down.

        Returns:
            The most that its process tree held, as `tree_own_bytes` counts it, above what it held
            before its first epoch.
        """
        with PeakMemory(self._process.pid) as memory:
            self.epoch()
        return memory.peak_bytes - self._before_bytes


def _serve(pipe: Connection, start_method: str, name: str, root: Path) -> None:
    # A spawned process would spawn torch's workers too, which takes seconds. They are to start as
    # they do in a user's program.
    multiprocessing.set_start_method(start_method, force=True)
    torch.set_num_threads(1)  # one core trains, whoever loads
    loader = CONTESTANTS[name](root)
    # torch's own first-time costs (kernels chosen, threads started) belong to no contestant.
    Trainer().step(torch.zeros(BATCH_SIZE, 3, 224, 224), torch.zeros(BATCH_SIZE, dtype=torch.long))
    pipe.send("ready")
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        loader.generator.manual_seed(2026)  # every round is the same epoch
        pipe.send(Trainer().epoch(loader))
