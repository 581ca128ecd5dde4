"""`ProcessIter`: torch's iteration with worker processes, over links of our own.

Owns the wait for batches: for the letters and the ends of all workers at once. What is asked of whom and when,
and in which order batches come, is torch's. With page-locked memory, what has come by the time a batch is taken
is copied while the training goes on with that batch: torch's iterator stores it until its turn.
"""

import math
import os
import time
import weakref
from collections import deque
from typing import Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data._utils import pin_memory, signal_handling
from torch.utils.data._utils.worker import _IterableDatasetStopIteration
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from fastload._iterators import stand_in
from fastload.budget import budget_bytes
from fastload.processes.admission import Admission
from fastload.processes.arrival import Allocate, Arrival, page_locked
from fastload.processes.context import Context
from fastload.processes.failures import Failures, samples

__all__ = ["ProcessIter"]

_END_S = 0.5
"""Seconds that a worker has to end when it is told to."""


class ProcessIter(_MultiProcessingDataLoaderIter):
    """Batches that worker processes make, in memory of ours.

    Args:
        loader: The loader.
        allocate: Makes the memory that batches are copied to where they are to be page-locked.
        **changes: Attributes of it that are others for its workers.
    """

    def __init__(self, loader: Any, *, allocate: Allocate = page_locked, **changes: Any) -> None:
        self._loader = weakref.ref(loader)
        self._allocate = allocate
        self._is_started = False
        self._is_late = False
        self._getpid = os.getpid  # modules may be gone when this is deleted
        self._pid = self._getpid()
        budget = budget_bytes(loader.memory_budget)
        is_asked = loader.memory_budget is not None
        # a budget that was asked for holds for the first batches, too, whose size nobody knows
        first = budget if is_asked else budget // max(1, int(loader.num_workers))
        self._admission = Admission(budget, first)
        context = loader.multiprocessing_context or torch.multiprocessing
        self._context = Context(context, self._admission)
        self._links = self._context.links
        self._failures = Failures()
        self._events: deque[tuple[int, Arrival | None]] = deque()
        changes["_DataLoader__multiprocessing_context"] = self._context
        try:
            super().__init__(stand_in(loader, **changes))
        finally:
            self._context.started()
        loader._files = self._context.files
        self._context.watch(self._workers)
        self._is_started = True

    @property
    def _pin_memory(self) -> bool:
        """Whether batches are page-locked; not while torch would start a thread for it."""
        return self._is_started and self._pins

    @_pin_memory.setter
    def _pin_memory(self, value: bool) -> None:
        self._pins = value

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        if first_iter and self._worker_pids_set:
            # torch would raise wherever the program is when a worker ends; here it is told in `next`
            signal_handling._remove_worker_pids(id(self))  # type: ignore[attr-defined]
            self._worker_pids_set = False
        super()._reset(loader, first_iter)

    def memory(self) -> dict[str, int]:
        """Returns what the workers' arenas hold, and what is ahead, in bytes, and how many there are."""
        stats = self._links.stats()
        return {
            "arenas": stats["arenas"],
            "arena_bytes": stats["arena_bytes"],
            "worker_bytes": stats["held_bytes"],
            "ahead_bytes": self._admission.ahead_bytes,
            "held_tasks": self._admission.held,
            "oversize_batches": self._admission.oversize,
        }

    def _next_data(self) -> Any:
        batch = super()._next_data()  # type: ignore[no-untyped-call]
        if self._pins:
            while self._hear(0):
                pass
        return batch

    def _get_data(self) -> tuple[Any, Any]:
        """Waits for a result."""
        end = time.monotonic() + self._timeout if self._timeout > 0 else math.inf
        while True:
            while not self._events and not self._hear(
                min(self._context.look_s, max(0, end - time.monotonic()))
            ):
                self._look()
                if time.monotonic() >= end:
                    self._is_late = True
                    raise RuntimeError(self._late())
            self._is_late = False
            number, arrival = self._events.popleft()
            if arrival is not None:
                return self._opened(number, arrival)
            if not self._context.tasks[number].is_last:
                self._fail(number)

    def _look(self) -> None:
        """Looks for a worker that has ended, which old systems may not tell."""
        for number, (worker, tasks) in enumerate(
            zip(self._workers, self._context.tasks, strict=True)
        ):
            if not tasks.is_last and not worker.is_alive():
                self._fail(number)

    def _hear(self, time_s: float) -> bool:
        """Waits for what happens next; returns whether there was something in time."""
        event = self._links.receive(time_s if time_s < math.inf else None)
        if event is None:
            return False
        number, letter = event
        arrival = None
        if letter is not None:
            arrival = Arrival(number, *letter, self._allocate if self._pins else None)
            self._context.tasks[number].in_hand.pop(arrival.seq, None)
            if not self._admission.came(arrival.seq, arrival.size):
                arrival.size = 0
        self._events.append((number, arrival))
        return True

    def _opened(self, number: int, arrival: Arrival) -> tuple[Any, Any]:
        """Returns a result; of a batch, the arrival."""
        if isinstance(arrival.seq, int) and arrival.is_copied:
            return arrival.seq, arrival
        data = arrival.open()
        if isinstance(data, _IterableDatasetStopIteration):
            self._context.tasks[number].in_hand.clear()
            self._admission.taken(arrival.size)
            self._admission.drop(number)
            return arrival.seq, data
        return arrival.seq, arrival if isinstance(arrival.seq, int) else data

    def _process_data(self, arrival: Any, *rest: Any) -> Any:
        self._admission.taken(arrival.size)
        data = arrival.open()
        note = getattr(data, "note", None) if isinstance(data, ExceptionWrapper) else None
        try:
            data = super()._process_data(data, *rest)  # type: ignore[no-untyped-call]
        except Exception as error:
            if note is not None:
                error.add_note(note)
            raise
        return pin_memory.pin_memory(data) if self._pins else data  # type: ignore[no-untyped-call]

    def _fail(self, number: int) -> None:
        """Ends all workers, because one is gone, and says so; with it, of others that are gone."""
        self._workers[number].join(_END_S)  # for its exit code
        gone = [
            (each, worker, dict(tasks.in_hand))
            for each, (worker, tasks) in enumerate(
                zip(self._workers, self._context.tasks, strict=True)
            )
            if each == number or (worker.exitcode is not None and not tasks.is_last)
        ]
        words = self._failures.sentence(gone)
        self._end_workers()
        self._shutdown_workers()
        loader = self._loader()
        if loader is not None and loader._iterator is self:
            loader._iterator = None  # persistent workers are gone: the next epoch starts others
        raise RuntimeError(words)

    def _end_workers(self) -> None:
        """Ends workers that are at work, without waiting for what they do."""
        for end in ("terminate", "kill"):
            alive = [worker for worker in self._workers if worker.is_alive()]
            for worker in alive:
                getattr(worker, end)()
            for worker in alive:
                worker.join(_END_S)

    def _late(self) -> str:
        """Returns what is said when no batch came in time."""
        words = f"DataLoader timed out after {self._timeout} seconds"
        at_work = [
            f"worker {number} (pid {worker.pid}) makes {samples(next(iter(tasks.in_hand.values())))}"
            for number, (worker, tasks) in enumerate(
                zip(self._workers, self._context.tasks, strict=True)
            )
            if tasks.in_hand and not tasks.is_last
        ]
        return "; ".join([words, *at_work, "raise timeout if that may take so long"])

    def _shutdown_workers(self) -> None:
        if not hasattr(self, "_workers") or self._getpid() != self._pid:
            return  # before there were any; or in a child, to which they do not belong
        if self._is_late and not self._shutdown:
            self._end_workers()  # who hangs does not hear that it is over
        super()._shutdown_workers()
        if self._shutdown:
            self._links.close()
