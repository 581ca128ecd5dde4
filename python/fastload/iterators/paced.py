"""`Paced`: workers whose number follows what the training takes.

Owns what a tuner sees of an iterator whose batches Python makes, and what it sets there. It grows by one
worker in a call of `next`: so no call takes longer than one start. Where the number is not to change,
nothing here does anything.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from torch._C._autograd import _profiler_enabled

from fastload import _lib
from fastload.draws.keyed import count_of
from fastload.iterators.elastic import Elastic
from fastload.tune.online import Online
from fastload.tune.pace import Pace
from fastload.tune.start import online

__all__ = ["Paced"]

_log = logging.getLogger("fastload")


class Paced(Elastic):
    """Torch's iteration with as many workers as the training needs, where nobody chose a number."""

    _kind: str
    _tuner: Online | None = None
    _goal: int | None = None

    def window(self, pool_cpu_s: float, memory_share: float) -> _lib.Window:  # noqa: ARG002
        """Returns what was measured since the last call, or since the epoch began.

        Args:
            pool_cpu_s: Not looked at: what workers spent, they have told.
            memory_share: Part of the memory that is used, 0 to 1.
        """
        return self._pace.window(
            worker_bytes=self._worker_bytes(),
            memory_share=memory_share,
            free_share=self._free_share(),
        )

    def set(self, workers: int, depth: int) -> None:
        """Lets so many workers be at work from now on, as soon as they are started, so far ahead."""
        self._goal = workers
        self.change(min(workers, self._num_workers), depth)

    def watch(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Has `look` called once, by the consumer that takes a batch then, in place of any other.

        Args:
            seconds: How long after now, at the earliest.
            batches: After how many further batches, at the earliest.
            look: What is called.
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
        """Returns the memory that a worker takes by itself."""
        return 0

    def _free_share(self) -> float:
        """Returns in which part of the time a worker can compute when it wants to."""
        return 1.0

    def _first_depth(self) -> int:
        depth = super()._first_depth()
        loader = self._loader()
        if loader is None or self.most_workers == 1:
            return depth
        self._tuner = online(
            loader,
            workers=int(self._num_workers),
            depth=depth,
            budget_bytes=loader._budget_bytes,
            kind=self._kind,
            whole_batches=True,
            may_look_ahead=self._schedule is None,
        )
        if self._tuner is None:
            return depth
        self._tuner.workers = int(self._num_workers)
        return self._tuner.depth

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        if first_iter:
            self._pace, self._due = Pace(), _lib.Watch()
        super()._reset(loader, first_iter)
        if self._tuner is not None:
            self._tuner.attach(self)

    def _indices(self) -> Any:
        indices = super()._indices()
        self._pace.asked(count_of(indices, batched=self._auto_collation))
        return indices

    def __next__(self) -> Any:
        """Returns the next batch."""
        if self._tuner is None:
            return self._advance()
        finished = sum(len(task) == 2 for task in self._task_info.values())
        self._pace.called(finished + self._ready())
        try:
            batch = self._advance()
        except StopIteration:
            self._tuner.pause(self)
            raise
        if not self._due.tick() and self._goal is not None:
            self._grow(self._goal, self._tuner)
        self._pace.returned()
        return batch

    def _advance(self) -> Any:
        """Returns the next batch as torch does, but without what torch does for profilers, if there is none."""
        is_counted = self._IterableDataset_len_called is not None
        if is_counted or self._sampler_iter is None or _profiler_enabled():
            return super().__next__()
        batch = self._next_data()
        self._num_yielded += 1
        return batch

    def _grow(self, goal: int, tuner: Online) -> None:
        """Starts one worker, if there shall be more."""
        if self._num_workers >= goal or self._shutdown:
            self._goal = None
            return
        try:
            self.change(self._num_workers + 1, self._depth)
        except Exception as error:  # whatever hinders it: there are workers
            _log.warning(
                "no more than %d %s can be started: %s", self._num_workers, self._kind, error
            )
            self._goal = None
            tuner.workers = self._num_workers
