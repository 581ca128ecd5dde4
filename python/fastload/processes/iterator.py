"""`ProcessIter`: torch's iteration with worker processes, over links of our own.

Owns the wait for batches: for all workers at once, in slices, with an eye on whether they live. What is asked
of whom and when, and in which order batches come, is torch's.
"""

import os
import sys
import time
import weakref
from typing import Any

import psutil
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data._utils import pin_memory, signal_handling

from fastload import _lib
from fastload._iterators import stand_in
from fastload.elastic import is_elastic
from fastload.paced import Paced
from fastload.processes.context import Context, Tasks
from fastload.processes.ended import Ended
from fastload.processes.failures import Failures, samples
from fastload.processes.pickling import loads

__all__ = ["ProcessIter"]

_LOOK_S = 0.5
"""Seconds between two looks for workers that are gone without a word."""

_END_S = 0.5
"""Seconds that a worker has to end when it is told to."""


class ProcessIter(Paced):
    """Batches that worker processes make, in memory of ours.

    Args:
        loader: The loader.
        **changes: Attributes of it that are others for its workers.
    """

    _kind = "worker processes"
    _workers: list[Any]

    def __init__(self, loader: Any, **changes: Any) -> None:
        self._loader = weakref.ref(loader)
        self._getpid = os.getpid  # modules may be gone when this is deleted
        self._pid = self._getpid()
        real = loader.multiprocessing_context or torch.multiprocessing
        self._context = Context(real, starts_more=is_elastic(loader))
        self._links = self._context.links
        self._failures = Failures()
        self._gone: set[int] = set()
        self._weighed = 0
        changes["_DataLoader__multiprocessing_context"] = self._context
        try:
            super().__init__(stand_in(loader, **changes))
        finally:
            self._context.started()

    @property
    def _pin_memory(self) -> bool:
        """Whether torch's own thread pins batches: never."""
        return False

    @_pin_memory.setter
    def _pin_memory(self, value: bool) -> None:
        self._pins = value

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        if first_iter and self._worker_pids_set:
            # torch would raise wherever the program is when a worker ends; here it is told in `next`
            signal_handling._remove_worker_pids(id(self))  # type: ignore[attr-defined]
            self._worker_pids_set = False
        super()._reset(loader, first_iter)

    def _hire(self, worker: int, among: int) -> tuple[int, Any]:
        _lib.park()  # a fork then copies a process without idle threads
        tasks, process = self._context.start(worker, among)
        self._workers[tasks.place : tasks.place + 1] = [process]
        self._gone.discard(tasks.place)
        return tasks.place, tasks

    def _bury(self, place: int) -> bool:
        process = self._workers[place]
        if process.is_alive():
            return False
        self._links.release(place)
        self._workers[place] = Ended(process)
        return True

    def _ready(self) -> int:
        return self._links.ready()

    def _worker_bytes(self) -> int:
        """Returns what one of the workers does not share, a different one each time; it takes a millisecond."""
        self._weighed += 1
        process = self._workers[self._active[self._weighed % len(self._active)]]
        try:
            return int(psutil.Process(process.pid).memory_full_info().uss)
        except psutil.Error:  # it has just ended
            return 0

    def _is_here(self) -> bool:
        return self._getpid() == self._pid

    def memory(self) -> dict[str, int]:
        """Returns what the workers' arenas hold, in bytes, and how many there are."""
        stats = self._links.stats()
        return {
            "arenas": stats["arenas"],
            "arena_bytes": stats["arena_bytes"],
            "worker_bytes": stats["held_bytes"],
        }

    def _get_data(self) -> Any:
        """Waits for a result."""
        begun = time.monotonic()
        while True:
            wait = _LOOK_S
            if self._timeout > 0:
                wait = min(wait, max(0, begun + self._timeout - time.monotonic()))
            event = self._links.receive(wait)
            if event is None:
                self._look()
                if self._timeout > 0 and time.monotonic() >= begun + self._timeout:
                    raise RuntimeError(self._late())
                continue
            place, letter = event
            if letter is not None:
                return self._opened(self._context.tasks[place], *letter)
            self._gone.add(place)
            if not self._context.tasks[place].is_last:
                self._fail([place])

    def _opened(self, tasks: Tasks, payload: bytes, parts: list[Any]) -> tuple[Any, Any]:
        """Returns a result, or an error in the place of one that does not unpickle here."""
        values = loads(payload, parts)
        seq, cost = values.load()
        self._pace.made(cost)
        self._pace.weighed(len(payload) + sum(part.nbytes for part in parts))
        tasks.in_hand.pop(seq, None)
        try:
            data = values.load()
        except Exception:
            where = f"while a batch of DataLoader worker process {tasks.worker} was unpickled"
            data = ExceptionWrapper(sys.exc_info(), where)  # type: ignore[no-untyped-call]
        return seq, data

    def _process_data(self, data: Any, *rest: Any) -> Any:
        note = getattr(data, "note", None) if isinstance(data, ExceptionWrapper) else None
        try:
            data = super()._process_data(data, *rest)  # type: ignore[no-untyped-call]
        except Exception as error:
            if note is not None:
                error.add_note(note)
            raise
        return pin_memory.pin_memory(data) if self._pins else data  # type: ignore[no-untyped-call]

    def _look(self) -> None:
        """Looks for workers that have ended while somebody else holds their end of the link open."""
        dead = [
            place
            for place, worker in enumerate(self._workers)
            if not self._context.tasks[place].is_last
            and (place in self._gone or not worker.is_alive())
        ]
        if dead:
            self._fail(dead)

    def _fail(self, places: list[int]) -> None:
        """Ends all workers, because some are gone, and says so."""
        for place in places:
            self._workers[place].join(_END_S)  # for its exit code
        gone = [(self._context.tasks[place], self._workers[place]) for place in places]
        words = self._failures.sentence(
            (tasks.worker, process, dict(tasks.in_hand)) for tasks, process in gone
        )
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
            f"worker {tasks.worker} (pid {process.pid}) makes "
            f"{samples(next(iter(tasks.in_hand.values())))}"
            for process, tasks in zip(self._workers, self._context.tasks, strict=True)
            if tasks.in_hand and not tasks.is_last
        ]
        return "; ".join([words, *at_work, "raise timeout if that may take so long"])

    def _shutdown_workers(self) -> None:
        if not hasattr(self, "_workers") or not self._is_here():
            return  # before there were any; or in a child, to which they do not belong
        super()._shutdown_workers()
        if self._shutdown:
            self._links.close()
            self._context.close()
