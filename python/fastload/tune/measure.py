"""A run: a loader consumed for some time, and what that took.

Owns the loop of a training, without the training: takes batches, hands each to a step if there is one, and
counts. An error in place of a batch is counted and the next batch asked for, as a training would that
goes on. Invariant: torch's, numpy's and Python's generators are afterwards what they were before.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fastload.tune.deadline import Overdue, within
from fastload.tune.step import Step
from fastload.tune.undisturbed import undisturbed
from fastload.tune.usage import LoadingClock
from fastload.tune.watch import Watch

__all__ = ["STAGES", "Run", "measure", "size_of"]

STAGES = ("read", "decode", "transform", "collate")
"""What native threads do, in order."""

_READY_S = 2e-4
"""A batch that is waited for no longer was ready."""

_WAITS = 0.01
"""A training that waits for less than this part of its time does not wait."""

_MOSTLY = 0.98
"""Nor one that finds this part of its batches ready."""

_WARM = 3
"""The fewest batches that are not counted: the first ones come after the start, and steps get warm on them."""

_WARM_RUNS = 2
"""Most time for all that are not counted, by that which is. They are as many as can be in flight: those are made
while the first is waited for, and taken faster than any could be made."""

_ERRORS = 1_000
"""Errors in a row after which a run is over."""


@dataclass(frozen=True)
class Run:
    """What was measured.

    Attributes:
        lane: How batches were made.
        workers: By how many.
        depth: Most batches in flight.
        seconds: How long it was counted.
        batches: Batches taken meanwhile.
        samples: Samples in them.
        first_s: Seconds from the start to the first batch.
        cpu_cores: Processors that loading kept busy.
        taking_ms: Processor milliseconds of a sample in the thread that takes batches.
        wait_ms: What was waited for a batch, in milliseconds: the mean.
        wait_p99_ms: The same: what 99 of 100 batches do not exceed.
        step_ms: The step beside it: the median; 0 without a step.
        ready: Part of the batches that were there when they were asked for.
        memory_bytes: The most that the process and its workers held.
        batch_bytes: Bytes of a batch's tensors.
        work_ms: Milliseconds per sample and stage, summed over native threads, without the part for which
            others had their processor.
        read_bytes: Encoded bytes read, per sample.
        errors: Batches that were errors.
        error: The first of them, in one line.
        overdue: Whether it was broken off, because a batch took far too long.
    """

    lane: str
    workers: int
    depth: int
    seconds: float = 0.0
    batches: int = 0
    samples: int = 0
    first_s: float = 0.0
    cpu_cores: float = 0.0
    taking_ms: float = 0.0
    wait_ms: float = 0.0
    wait_p99_ms: float = 0.0
    step_ms: float = 0.0
    ready: float = 0.0
    memory_bytes: int = 0
    batch_bytes: int = 0
    work_ms: Mapping[str, float] = field(default_factory=dict)
    read_bytes: float = 0.0
    errors: int = 0
    error: str = ""
    overdue: bool = False

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds if self.seconds else 0.0

    @property
    def steady_rate(self) -> float:
        """Samples per second of a training with the median step: one long step of other causes is no matter."""
        if not self.step_ms or not self.batches:
            return self.rate
        return 1e3 * self.samples / self.batches / (self.step_ms + self.wait_ms)

    @property
    def waiting(self) -> float:
        """Part of the time that is spent waiting for batches."""
        return min(1.0, self.wait_ms * self.batches / 1e3 / self.seconds) if self.seconds else 1.0

    @property
    def keeps_up(self) -> bool:
        """Whether the training does not wait, but for batches being handed over."""
        return self.batches > 0 and (self.waiting <= _WAITS or self.ready >= _MOSTLY)

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds that loading a sample takes."""
        return 1e3 * self.cpu_cores / self.rate if self.rate else 0.0

    @property
    def busy_ms(self) -> float:
        """Milliseconds that workers spend on a sample, on a processor or waiting for files."""
        return sum(self.work_ms.values())


def measure(
    loader: Any,
    seconds: float,
    watch: Watch,
    *,
    lane: str,
    step: Step | None = None,
    depth: int | None = None,
) -> Run:
    """Consumes a loader for some time.

    Args:
        loader: What is measured; its workers end with the run.
        seconds: How long to count.
        watch: Sees the memory.
        lane: How its batches are made.
        step: What is done with each batch.
        depth: Most batches in flight of native threads; None for the loader's own.

    Raises:
        MemoryRefused: The memory is full.
    """
    workers = int(loader.num_workers)
    ahead = (loader.prefetch_factor or 0) * workers
    depth = ahead if depth is None else depth
    taken = _Taken(loader, lane, step, watch, depth)
    with undisturbed(loader):
        try:
            with within(3 + 3 * seconds + (4 * step.alone_s if step else 0.0)):
                taken.run(seconds)
        except Overdue:
            taken.overdue = True
        finally:
            taken.close()
    return taken.result(lane, workers, depth)


class _Taken:
    """The batches of one run."""

    def __init__(self, loader: Any, lane: str, step: Step | None, watch: Watch, depth: int) -> None:
        self._loader, self._lane, self._step, self._watch = loader, lane, step, watch
        self._depth = depth
        self._iterator: Any = None
        self._clock = LoadingClock(lane)
        self._waits: list[float] = []
        self._steps: list[float] = []
        self._samples = 0
        self._batch_bytes = 0
        self._first_s = self._seconds = self._cpu_s = self._queued_s = 0.0
        self._counted: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._peak_bytes = 0
        self._errors = 0
        self._error = ""
        self.overdue = False

    def run(self, seconds: float) -> None:
        """Takes batches: the first ones uncounted, then for some seconds."""
        self._watch.begin(f"{self._lane}, {int(self._loader.num_workers)}")
        began = time.perf_counter()
        try:
            self._begin_epoch()
        except Exception as error:  # its workers cannot be started
            self._errors, self._error = 1, f"{type(error).__name__}: {_line(error)}"
            return
        until = began + _WARM_RUNS * seconds
        for place, _ in enumerate(self._batches(until + 2)):
            if place == 0:
                self._first_s = time.perf_counter() - began
            if place + 1 >= max(_WARM, self._depth) or time.perf_counter() > until:
                break
        else:
            if not self._waits:
                return
        self._waits, self._steps, self._samples = [], [], 0
        self._counted = {}
        self._before = self._stats()
        self._clock.start()
        self._since = time.perf_counter()
        for _ in self._batches(self._since + seconds):
            self._watch.look()
        self._note()

    def _note(self) -> None:
        self._seconds = time.perf_counter() - self._since
        self._cpu_s = self._clock.passed_s()
        self._queued_s = self._clock.queued_s
        self._add_epoch()
        self._watch.see()
        self._peak_bytes = self._watch.peak_bytes

    def _batches(self, until: float) -> Iterator[None]:
        """Takes batches, epoch after epoch, until some time."""
        in_a_row = 0
        clock = time.perf_counter
        fruitless = False
        while in_a_row < _ERRORS:
            began = clock()
            try:
                batch = next(self._iterator)
            except StopIteration:
                if fruitless:
                    return
                fruitless = True
                self._add_epoch()
                self._begin_epoch()
                continue
            except Exception as error:  # takes the place of its batch
                self._errors += 1
                in_a_row += 1
                self._error = self._error or f"{type(error).__name__}: {_line(error)}"
                if clock() >= until:
                    return
                continue
            waited = clock()
            fruitless, in_a_row = False, 0
            self._waits.append(waited - began)
            self._samples += size_of(batch)
            if not self._batch_bytes:
                self._batch_bytes = _bytes_of(batch)
            if self._step is not None:
                self._train(batch)
            del batch
            yield
            if clock() >= until:
                return

    def _train(self, batch: Any) -> None:
        assert self._step is not None
        cpu_s, began = time.thread_time(), time.perf_counter()
        self._step(batch)
        self._steps.append(time.perf_counter() - began)
        self._clock.stepped(time.thread_time() - cpu_s)

    def _begin_epoch(self) -> None:
        self._iterator = iter(self._loader)
        stream = getattr(self._iterator, "_stream", None)
        if stream is not None:
            stream.set_depth(self._depth)
        self._before = {}

    def _stats(self) -> dict[str, float]:
        numbers = self._loader.stats().items()
        return {key: value for key, value in numbers if isinstance(value, int | float)}

    def _add_epoch(self) -> None:
        """Adds what the stream of this epoch counted since `_before`."""
        for key, value in self._stats().items():
            self._counted[key] = self._counted.get(key, 0.0) + value - self._before.get(key, 0.0)
        self._before = {}

    def close(self) -> None:
        """Ends the workers."""
        if self._seconds == 0.0 and self._waits and hasattr(self, "_since"):
            with contextlib.suppress(Exception):
                self._note()  # it was broken off
        iterator, self._iterator = self._iterator, None
        self._loader._iterator = None
        if hasattr(iterator, "_shutdown_workers"):
            iterator._shutdown_workers()

    def result(self, lane: str, workers: int, depth: int) -> Run:
        """Returns what was measured."""
        waits, steps = np.array(self._waits or [0.0]), np.array(self._steps or [0.0])
        made = self._counted.get("samples", 0.0)
        own = self._loader.batch_size is None and self._loader.batch_sampler is not None
        done = len(self._waits if self._step is None else self._steps)
        batches = done if self._seconds else 0
        samples = int(made) if own and made else self._samples
        busy_s = self._counted.get("busy_s", 0.0)
        at_work = 1 - min(0.9, self._queued_s / busy_s) if busy_s > 0 else 1.0
        per_sample = 1e3 * at_work / made if made else 0.0
        stages = {name: self._counted.get(f"{name}_s", 0.0) * per_sample for name in STAGES}
        return Run(
            lane=lane,
            workers=workers,
            depth=depth,
            seconds=self._seconds,
            batches=batches,
            samples=samples if batches else 0,
            first_s=self._first_s,
            cpu_cores=self._cpu_s / self._seconds if self._seconds else 0.0,
            taking_ms=1e3 * self._clock.taking_s / max(1, samples),
            wait_ms=1e3 * float(waits.mean()),
            wait_p99_ms=1e3 * float(np.quantile(waits, 0.99)),
            step_ms=1e3 * float(np.median(steps)),
            ready=float((waits < _READY_S).mean()) if batches else 0.0,
            memory_bytes=self._peak_bytes or self._watch.peak_bytes,
            batch_bytes=self._batch_bytes,
            work_ms=stages if lane == "native" and made else {},
            read_bytes=self._counted.get("read_bytes", 0.0) / made if made else 0.0,
            errors=self._errors,
            error=self._error,
            overdue=self.overdue,
        )


def size_of(batch: Any) -> int:
    """Returns how many samples a batch has: the first length that is found in it."""
    if isinstance(batch, torch.Tensor | np.ndarray):
        return len(batch) if batch.ndim else 1
    if isinstance(batch, Mapping):
        return next((size_of(value) for value in batch.values()), 1)
    if isinstance(batch, tuple | list) and batch:
        first = batch[0]
        plain = isinstance(first, str | bytes | int | float) or first is None
        return len(batch) if plain else size_of(first)
    return 1


def _bytes_of(batch: Any) -> int:
    if isinstance(batch, torch.Tensor | np.ndarray):
        return int(batch.nbytes)
    if isinstance(batch, Mapping):
        return sum(map(_bytes_of, batch.values()))
    if isinstance(batch, tuple | list):
        return sum(map(_bytes_of, batch))
    return len(batch) if isinstance(batch, str | bytes) else 0


def _line(error: BaseException) -> str:
    """Returns the last line of an error: torch puts a worker's traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""
