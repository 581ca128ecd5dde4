"""A run: a loader consumed for some time, and its measurements.

Runs the loop of a training without the training: takes batches, and hands each to a step if there is one.
An error in place of a batch is counted and the next batch is taken. Torch's, NumPy's and Python's
generators have the same states before and after.
"""

import contextlib
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from fastload.faults import one_line
from fastload.iterators.paced import batch_bytes
from fastload.sizes import rows_of
from fastload.tune.machine import LoadingClock
from fastload.tune.memory import Watch
from fastload.tune.step import Step
from fastload.tune.target import restored_generators

STAGES = ("read", "decode", "transform", "collate")  # the work of native threads, in order
# Milliseconds per sample below which work takes no measurable time: no rate follows from it
NOTHING_MS = 5e-5
_READY_S = 2e-4  # longest wait for a batch that was ready
_WAITS = 0.01  # a training that waits for a smaller share of its time keeps up with its loader
_MOSTLY = 0.98  # so does one that finds this share of its batches ready
_WARM = 3  # fewest batches that are not counted: loaders start and steps warm up with them
_WARM_RUNS = 2
"""Longest time that is not counted, in lengths of the run. As many batches are left out as can be in flight: they
are made while the first one is waited for, and then taken faster than batches can be made."""

_ERRORS = 1_000  # errors in a row that end a run


@dataclass(frozen=True)
class Run:
    """One measurement, with its settings."""

    lane: str  # how batches were made
    workers: int  # threads or processes that made them
    depth: int  # most batches in flight
    seconds: float = 0.0  # length of the counted part
    batches: int = 0  # batches taken in it
    samples: int = 0  # samples in them
    first_s: float = 0.0  # seconds from the start to the first batch
    cpu_cores: float = 0.0  # cores that loading kept busy
    taking_ms: float = 0.0  # CPU milliseconds per sample in the thread that takes batches
    wait_ms: float = 0.0  # milliseconds that the training waited for a batch; the mean
    wait_p99_ms: float = 0.0  # the same, the 99th percentile
    step_ms: float = 0.0  # milliseconds of the step beside the loader; the median; 0 without a step
    ready: float = 0.0  # fraction of the batches that were ready when they were asked for
    memory_bytes: int = 0  # peak memory of the process and its workers
    batch_bytes: int = 0  # bytes of a batch's tensors
    # milliseconds per sample and stage, summed over native threads, without the time in which other programs had their core
    work_ms: Mapping[str, float] = field(default_factory=dict)
    read_bytes: float = 0.0  # encoded bytes read per sample
    # batches that were errors, and bad samples that the loader's `on_error` took care of
    errors: int = 0
    error: str = ""  # the first of them, in one line
    overdue: bool = False  # true if the run was stopped because a batch took far too long

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds if self.seconds else 0.0

    @property
    def steady_rate(self) -> float:
        """Samples per second of a training with the median step; single long steps do not count."""
        if not self.step_ms or not self.batches:
            return self.rate
        return 1e3 * self.samples / self.batches / (self.step_ms + self.wait_ms)

    @property
    def waiting(self) -> float:
        """Fraction of the time in which the training waits for batches."""
        return min(1.0, self.wait_ms * self.batches / 1e3 / self.seconds) if self.seconds else 1.0

    @property
    def keeps_up(self) -> bool:
        """True if the training waits for nothing but the hand-over of batches."""
        return self.batches > 0 and (self.waiting <= _WAITS or self.ready >= _MOSTLY)

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds of loading per sample."""
        return 1e3 * self.cpu_cores / self.rate if self.rate else 0.0

    @property
    def busy_ms(self) -> float:
        """Milliseconds per sample in which workers computed or waited for files."""
        return sum(self.work_ms.values())


class Overdue(BaseException):
    """Something took far longer than it was given; `except Exception` in a dataset does not catch it."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stops the block after some time, whatever it waits for.

    Raises:
        Overdue: The time is over.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Overdue

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, stop)
    outer_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer_s:  # a timer of the program goes on
            left_s = outer_s - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left_s, 1e-6), interval_s)


def measure(
    loader: Any,  # the loader; its workers end with the run
    seconds: float,  # length of the counted part
    watch: Watch,  # reads the memory
    *,
    lane: str,  # how its batches are made
    step: Step | None = None,  # called with each batch
    depth: int | None = None,  # most batches in flight of native threads; None for the loader's own
) -> Run:
    """Consumes a loader for some time."""
    workers = int(loader.num_workers)
    depth = (loader.prefetch_factor or 0) * workers if depth is None else depth
    consumer = _Consumer(loader, lane, step, watch, depth)
    with restored_generators(loader):
        try:
            with within(3 + 3 * seconds + (4 * step.alone_s if step else 0.0)):
                consumer.run(seconds)
        except Overdue:
            consumer.overdue = True
        finally:
            consumer.close()
    return consumer.result()


class _Consumer:
    """The consumer of one run."""

    def __init__(self, loader: Any, lane: str, step: Step | None, watch: Watch, depth: int) -> None:
        self._loader, self._lane, self._step, self._watch = loader, lane, step, watch
        self._depth = depth
        self._iterator: Any = None
        self._clock = LoadingClock(lane)
        self._waits: list[float] = []
        self._steps: list[float] = []
        self._samples = self._batch_bytes = self._peak_bytes = self._errors = 0
        self._first_s = self._since = self._seconds = self._cpu_s = 0.0
        self._counted: defaultdict[str, float] = defaultdict(float)
        self._before: dict[str, float] = {}
        self._error = ""
        self.overdue = False

    def run(self, seconds: float) -> None:
        """Takes batches: the first ones uncounted, then counted for some seconds."""
        self._watch.begin(f"{self._lane}, {int(self._loader.num_workers)}")
        began = time.perf_counter()
        try:
            self._begin_epoch()
        except Exception as error:  # its workers cannot be started
            self._errors, self._error = 1, one_line(error)
            return
        until = began + _WARM_RUNS * seconds
        for count, _ in enumerate(self._batches(until + 2), 1):
            self._first_s = self._first_s or time.perf_counter() - began
            if count >= max(_WARM, self._depth) or time.perf_counter() > until:
                break
        if not self._waits:
            return
        self._waits, self._steps, self._samples = [], [], 0
        self._counted.clear()
        self._before = self._stats()
        self._clock.start()
        self._since = time.perf_counter()
        for _ in self._batches(self._since + seconds):
            self._watch.look()
        self._stop_counting()

    def close(self) -> None:
        """Ends the workers."""
        if self._since and not self._seconds and self._waits:  # it was stopped
            with contextlib.suppress(Exception):
                self._stop_counting()
        iterator, self._iterator = self._iterator, None
        end_workers(self._loader, iterator)

    def result(self) -> Run:
        """Returns the measurements."""
        waits, steps = np.array(self._waits or [0.0]), np.array(self._steps or [0.0])
        made, busy_s = self._counted["samples"], self._counted["busy_s"]
        batches = len(self._waits if self._step is None else self._steps) if self._seconds else 0
        sampled = self._loader.batch_size is None and self._loader.batch_sampler is not None
        samples = int(made) if sampled and made else self._samples
        running = 1 - min(0.9, self._clock.queued_s / busy_s) if busy_s > 0 else 1.0
        per_sample = 1e3 * running / made if made else 0.0
        is_native = self._lane == "native" and made
        return Run(
            lane=self._lane,
            workers=int(self._loader.num_workers),
            depth=self._depth,
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
            work_ms={name: self._counted[f"{name}_s"] * per_sample for name in STAGES}
            if is_native
            else {},
            read_bytes=self._counted["read_bytes"] / made if made else 0.0,
            errors=self._errors,
            error=self._error,
            overdue=self.overdue,
        )

    def _batches(self, until: float) -> Iterator[None]:
        """Takes batches, epoch after epoch, until some time."""
        in_a_row = 0
        is_empty = False
        clock = time.perf_counter
        while in_a_row < _ERRORS:
            began = clock()
            try:
                batch = next(self._iterator)
            except StopIteration:
                if is_empty:
                    return
                is_empty = True
                self._end_epoch()
                self._begin_epoch()
                continue
            except Exception as error:  # takes the place of its batch
                self._errors += 1
                in_a_row += 1
                self._error = self._error or one_line(error)
                if clock() >= until:
                    return
                continue
            self._waits.append(clock() - began)
            is_empty, in_a_row = False, 0
            self._samples += rows_of(batch) or 1
            self._batch_bytes = self._batch_bytes or batch_bytes(batch)
            if self._step is not None:
                cpu_s, began = time.thread_time(), time.perf_counter()
                self._step(batch)
                self._steps.append(time.perf_counter() - began)
                self._clock.exclude(time.thread_time() - cpu_s)
            del batch
            yield
            if clock() >= until:
                return

    def _begin_epoch(self) -> None:
        self._iterator = iter(self._loader)
        stream = getattr(self._iterator, "_stream", None)
        if stream is not None:
            stream.set_depth(self._depth)
        self._before = {}

    def _end_epoch(self) -> None:
        """Adds what the loader counted since `_before`, and the bad samples of the epoch."""
        if bad := self._loader.bad:
            self._errors += len(bad)
            self._error = self._error or bad[0].error
        for key, value in self._stats().items():
            self._counted[key] += value - self._before.get(key, 0.0)
        self._before = {}

    def _stats(self) -> dict[str, float]:
        numbers = self._loader.stats().items()
        return {key: value for key, value in numbers if isinstance(value, int | float)}

    def _stop_counting(self) -> None:
        self._seconds = time.perf_counter() - self._since
        self._cpu_s = self._clock.passed_s()
        self._end_epoch()
        self._watch.see()
        self._peak_bytes = self._watch.peak_bytes


def end_workers(loader: Any, iterator: Any = None) -> None:
    """Ends the workers of an iterator; of the one that its loader keeps unless given."""
    if iterator is None:
        iterator = loader._iterator
    loader._iterator = None
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()
