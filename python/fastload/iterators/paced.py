"""`Paced`: Python workers whose number follows what the training takes.

Owns what the tuner measures of an iterator whose batches are made in Python, and what it sets there. A call
of `next` starts at most one worker, so no call takes longer than one start. Where the number of workers is
fixed, nothing here does anything.
"""

import logging
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fastload import _lib
from fastload.draws.keyed import count_of
from fastload.iterators.cost import Cost
from fastload.iterators.elastic import Elastic

if TYPE_CHECKING:
    from fastload.monitoring.stages import StageSpans
    from fastload.tune import Online

__all__ = ["Pace", "Paced", "batch_bytes"]

_log = logging.getLogger("fastload")

_STEPS = 64
"""Steps of the training whose median is kept."""
_DENSE = torch.strided, torch.jagged
"""Layouts whose tensors have `nbytes`: sparse ones raise an error, or count their zeros."""


class Pace:
    """Counts what the consumer and the workers did since the last window."""

    def __init__(self) -> None:
        self._returned_s: float | None = None
        self._restart()

    def _restart(self) -> None:
        self._since_s = time.perf_counter()
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._stepped_s = 0.0
        self._longest_s = 0.0
        self._ready: list[int] = []
        self._batches = 0
        self._asked, self._asked_samples = 0, 0
        self._made, self._spent = 0, Cost()
        self._bytes = 0

    def asked(self, samples: int) -> None:
        """Counts a batch that is requested from a worker."""
        self._asked += 1
        self._asked_samples += samples

    def made(self, cost: Cost) -> None:
        """Counts a batch that a worker has made."""
        self._made += 1
        so_far = self._spent
        self._spent = Cost(
            so_far.wall_s + cost.wall_s,
            so_far.cpu_s + cost.cpu_s,
            so_far.queued_s + cost.queued_s,
        )

    def weighed(self, size: int) -> None:
        """Notes the bytes of a batch."""
        self._bytes = max(self._bytes, size)

    def called(self, ready: int) -> None:
        """Notes that the consumer asks for a batch while `ready` batches are finished."""
        self._called_s = time.perf_counter()
        self._ready.append(ready)
        if self._returned_s is not None:
            step_s = self._called_s - self._returned_s
            self._steps.append(step_s)
            self._stepped_s += step_s
            self._returned_s = None

    def returned(self) -> None:
        """Notes that the consumer gets a batch."""
        self._returned_s = time.perf_counter()
        self._longest_s = max(self._longest_s, self._returned_s - self._called_s)
        self._batches += 1

    def window(
        self, *, worker_bytes: float, memory_share: float, free_share: float = 1.0
    ) -> _lib.Window:
        """Returns the measurements, and starts the next window.

        Args:
            worker_bytes: Memory of one worker.
            memory_share: Fraction of the memory that is in use, 0 to 1.
            free_share: Of the time in which a worker did not compute, the fraction in which it could
                have, 0 to 1. In the rest it waited for the interpreter.
        """
        elapsed_s = time.perf_counter() - self._since_s
        batches, made = self._batches, max(1, self._made)
        wait_s = max(0.0, elapsed_s - self._stepped_s) / max(1, batches)
        wall_s, cpu_s, queued_s = (seconds / made for seconds in self._spent[:3])
        waited_s = max(0.0, wall_s - cpu_s)
        window = _lib.Window(
            elapsed_s=elapsed_s,
            batches=batches,
            samples=batches * self._asked_samples / max(1, self._asked),
            step_s=float(np.median(self._steps)) if self._steps else 0.0,
            wait_s=wait_s,
            work_s=cpu_s + waited_s * free_share,
            cpu_s=cpu_s,
            queued_s=queued_s,
            tail_s=max(0.0, self._longest_s - wait_s),
            least_ready=min(self._ready, default=0),
            most_ready=max(self._ready, default=0),
            batch_bytes=self._bytes,
            worker_bytes=worker_bytes,
            memory_share=memory_share,
        )
        self._restart()
        return window


class Paced(Elastic):
    """Torch's iteration with as many workers as the training needs, where the user chose no number."""

    _kind: str
    _tuner: "Online | None" = None
    _goal: int | None = None
    _stages: "StageSpans | None" = None

    def _record_spans(self, stages: "StageSpans | None", epoch: int) -> None:
        """Records when workers make batches from now on, as an epoch of this number; None to stop."""
        self._stages, self._recorded_epoch = stages, epoch
        self._first_batch = max(0, self._num_yielded - self._rcvd_idx)

    def _count(self, seq: Any, cost: Cost, end_s: float, worker: int, thread: int | None) -> None:
        """Counts what a worker has made, and records it if it is a batch.

        Args:
            seq: Number of the batch since the iterator was started; of another type if it is none.
            cost: Its cost.
            end_s: The monotonic clock when it was made.
            worker: Number of the worker.
            thread: The system's number of its process or thread.
        """
        self._pace.made(cost)
        if self._stages is not None and isinstance(seq, int):
            batch = self._first_batch + seq
            self._stages.add((worker, thread or 0), batch, self._recorded_epoch, end_s, cost.wall_s)

    def window(self, pool_cpu_s: float, memory_share: float) -> _lib.Window:  # noqa: ARG002
        """Returns the measurements since the last call, or since the epoch began.

        Args:
            pool_cpu_s: Ignored: the workers send their own CPU time.
            memory_share: Fraction of the memory that is in use, 0 to 1.
        """
        return self._pace.window(
            worker_bytes=self._worker_bytes(),
            memory_share=memory_share,
            free_share=self._free_share(),
        )

    def set(self, workers: int, depth: int) -> None:
        """Sets how many workers there are, as soon as they are started, and how far ahead they work."""
        self._goal = workers
        self.change(min(workers, self._num_workers), depth)

    def watch(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Schedules one call of `look` by the consumer, in place of the call scheduled before.

        Args:
            seconds: Earliest time of the call, from now.
            batches: Fewest further batches before the call.
            look: The function to call.
        """
        self._due.set(seconds, batches, look)

    def _was_set(self) -> None:
        self._goal = None
        if self._tuner is not None:
            self._tuner.workers, self._tuner.depth = self._num_workers, self._depth

    @abstractmethod
    def _ready(self) -> int:
        """Returns how many batches are finished and have not been received."""

    def _worker_bytes(self) -> int:
        """Returns the memory of one worker."""
        return 0

    def _free_share(self) -> float:
        """Returns the fraction of the time in which a worker can compute when it wants to."""
        return 1.0

    def _first_depth(self) -> int:
        depth = super()._first_depth()
        loader = self._loader()
        if loader is None or self.most_workers == 1:
            return depth
        self._tuner = loader._start_tuner(
            workers=self._planned_workers,
            depth=depth,
            budget_bytes=loader._budget_bytes,
            kind=self._kind,
            whole_batches=True,
            may_look_ahead=self._schedule is None,
        )
        if self._tuner is None:
            return depth
        self._tuner.workers = self._planned_workers
        return self._tuner.depth

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._pace, self._due = Pace(), _lib.Watch()  # what ran between two epochs is not loading
        super()._reset(loader, first_iter)
        if self._tuner is not None:
            self._tuner.attach(self)

    def _indices(self) -> Any:
        indices = super()._indices()
        self._pace.asked(count_of(indices, batched=self._auto_collation))
        return indices

    def _step(self) -> Any:
        if self._tuner is None:
            return super()._step()
        finished = sum(len(task) == 2 for task in self._task_info.values())
        self._pace.called(finished + self._ready())
        try:
            batch = super()._step()
        except StopIteration:
            self._tuner.pause(self)
            raise
        if not self._due.tick() and self._goal is not None:
            self._grow(self._goal)
        self._pace.returned()
        return batch

    def _grow(self, goal: int) -> None:
        """Starts one worker, if there are fewer than `goal`."""
        if self._num_workers >= goal or self._shutdown:
            self._goal = None
            return
        try:
            self.change(self._num_workers + 1, self._depth)
        except Exception as error:  # loading goes on with the workers there are
            self._start_no_more(error)

    def _start_no_more(self, error: Exception) -> None:
        """Goes on with the workers there are, and says so."""
        _log.warning("no more than %d %s can be started: %s", self._num_workers, self._kind, error)
        self._goal = None
        if self._tuner is not None:
            self._tuner.workers = self._num_workers


def batch_bytes(batch: Any) -> int:
    """Returns the bytes of a batch's dense tensors and arrays, in dicts, lists and tuples."""
    if isinstance(batch, torch.Tensor):
        return batch.nbytes if batch.layout in _DENSE else 0
    if isinstance(batch, np.ndarray):
        return batch.nbytes
    if isinstance(batch, Mapping):
        return sum(map(batch_bytes, batch.values()))
    if isinstance(batch, list | tuple):
        return sum(map(batch_bytes, batch))
    return 0
