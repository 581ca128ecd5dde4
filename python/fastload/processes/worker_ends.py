"""The ends of worker processes: of those that are asked to, that have ended on their own, and that hang.

Owns how long workers may be silent, the error that tells of an end, and the order in which everything is closed. The
batches of workers that hang are the consumer's to make.
"""

import contextlib
import logging
import math
from collections import deque
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import psutil

from fastload import _lib
from fastload.processes.admission import Admission
from fastload.processes.arrival import Arrival
from fastload.processes.context import Context
from fastload.processes.failures import EndedProcess, Failures, samples
from fastload.processes.takeover import TakeOver

__all__ = ["WorkerEnds"]

_T = TypeVar("_T")

_END_S = 0.5
"""Seconds that a worker has to end after it was asked to."""
_PATIENCE_S = 30.0
"""Seconds without a message after which workers that do not run may be taken to hang; twice as long at the first."""
_OF_LONGEST = 50
"""How many times longer than the longest batch so far that must be."""


class WorkerEnds(TakeOver):
    """Iterates over batches of workers, whose ends it handles."""

    _workers: list[Any]
    _context: Context
    _admission: Admission
    _links: _lib.Links
    _failures: Failures
    _events: deque[tuple[int, Arrival | None]]
    _getpid: Callable[[], int]
    _is_finalizing: Callable[[], bool]
    _pid: int
    _is_late = _is_lost = _is_stuck = False
    _longest_s = 0.0
    # modules may be gone when this is deleted
    _uninterruptibly = staticmethod(_lib.uninterruptibly)

    def _release_worker(self, place: int) -> bool:
        process = self._workers[place]
        if process.is_alive():
            return False
        self._links.release(place)
        self._events = deque(event for event in self._events if event[0] != place)
        self._workers[place] = EndedProcess(process)
        return True

    def _is_here(self) -> bool:
        """Returns true in the process that made the workers, until its interpreter ends, and the workers with it."""
        return self._getpid() == self._pid and not self._is_finalizing()

    def _patience_s(self) -> float:
        """Returns after how long without a message workers may hang; infinite where they alone can make the batch."""
        if not self._may_take_over or self._keys is None or self._rcvd_idx not in self._asked:
            return math.inf
        return (
            max(_PATIENCE_S, _OF_LONGEST * self._longest_s) if self._longest_s else 2 * _PATIENCE_S
        )

    def _activity(self) -> tuple[int, float]:
        """Returns the number of context switches of the workers that make a batch, and their CPU time, in seconds.

        The processes that they have started count, too. Linux counts the switches of main threads alone. Both numbers
        are the same as before if each worker waits for one thing all the time.
        """
        switches, cpu_s = 0, 0.0
        for worker, tasks in zip(self._workers, self._context.tasks, strict=True):
            with contextlib.suppress(psutil.Error):  # it has just ended
                process = psutil.Process(worker.pid)
                for each in (process, *process.children(recursive=True)) if tasks.in_hand else ():
                    switches += sum(each.num_ctx_switches())
                    cpu_s += sum(each.cpu_times()[:2])
        return switches, cpu_s

    def _give_up(self, waited_s: float) -> None:
        """Ends workers that hang; the consumer makes what they were asked for, and all that follows."""
        at_work = self._at_work()
        self._is_stuck = True
        self._end_workers()
        for place in range(len(self._workers)):
            self._admission.drop(place)
        self._note_here(
            f"no batch came for {waited_s:.0f} s, and the workers do not run: {at_work}. They may wait for a lock that "
            "another thread held when they were forked; multiprocessing_context='spawn' or num_workers=0 avoids that",
            logging.WARNING,
        )
        self.take_over()

    def _look(self) -> None:
        """Looks for a worker that has ended, which old systems may not tell."""
        for place, (worker, tasks) in enumerate(
            zip(self._workers, self._context.tasks, strict=True)
        ):
            if not tasks.is_last and not worker.is_alive():
                self._fail(place)

    def _fail(self, place: int) -> None:
        """Ends all workers, because one is gone, and says so; with it, of others that are gone."""
        BaseProcess.join(self._workers[place], _END_S)  # for its exit code
        gone = [
            (tasks.worker, worker, dict(tasks.in_hand))
            for each, (worker, tasks) in enumerate(
                zip(self._workers, self._context.tasks, strict=True)
            )
            if each == place or (worker.exitcode is not None and not tasks.is_last)
        ]
        words = self._failures.sentence(gone)
        self._abandon()
        raise RuntimeError(words)

    def _abandon(self) -> None:
        """Ends all workers and the epoch."""
        self._is_lost = True
        self._end_workers()
        self._shutdown_workers()
        loader = self._loader()
        if loader is not None and loader._iterator is self:
            loader._iterator = None  # persistent workers are gone: the next epoch starts others

    def _heard(self, listen: Callable[[], _T]) -> _T:
        """Calls a method of the links that takes in messages.

        Raises:
            OSError: A message could not be taken in: no memory or no descriptor is left. Its batch is lost, so
                the epoch and its workers end.
        """
        try:
            return listen()
        except OSError:
            if self._is_here():
                self._abandon()
            raise

    def _end_workers(self) -> None:
        """Ends workers that are at work, without waiting for their batches."""
        for end in ("terminate", "kill"):
            alive = [worker for worker in self._workers if worker.is_alive()]
            for worker in alive:
                getattr(worker, end)()
            for worker in alive:
                BaseProcess.join(worker, _END_S)  # its own join is interruptible

    def _late(self) -> str:
        """Returns the error message for a batch that did not come in time."""
        words = f"DataLoader timed out after {self._timeout} seconds: {self._at_work()}"
        return f"{words}; raise timeout if a batch may take that long"

    def _at_work(self) -> str:
        """Returns which worker makes which samples."""
        at_work = [
            f"worker {tasks.worker} (pid {process.pid}) is making "
            f"{samples(next(iter(tasks.in_hand.values())))}"
            for process, tasks in zip(self._workers, self._context.tasks, strict=True)
            if tasks.in_hand and not tasks.is_last
        ]
        return ", ".join(at_work) or "no worker is making a batch"

    def _shutdown_workers(self) -> None:
        if not hasattr(self, "_workers") or not self._is_here():
            return  # before there were any; or in a child, to which they do not belong
        if not hasattr(self, "_workers_status"):  # one of them could not be started
            self._end_workers()
            self._links.close()
            return
        self._look_back()
        if self._is_late and not self._shutdown:
            self._end_workers()  # a worker that hangs does not read its queue
        try:
            # but where it waits; no batch is in hand
            self._uninterruptibly(super()._shutdown_workers)
        finally:
            if self._shutdown:
                self._end_workers()  # an interrupt leaves some at work, terminated but not waited for
                self._links.close()
                self._context.close()
