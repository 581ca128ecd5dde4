"""`ProcessIter`: torch's iteration with worker processes, over links of our own.

Owns the start of workers, the wait for batches (for the messages and the ends of all workers at once) and their
delivery. What is asked of whom and when, and in which order batches come, is torch's. With page-locked memory, what has
come by the time a batch is taken is copied while the training goes on with that batch: torch's iterator stores it until
its turn.
"""

import contextlib
import logging
import math
import os
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import psutil
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data._utils import signal_handling
from torch.utils.data._utils.worker import _IterableDatasetStopIteration, _ResumeIteration

from fastload import _lib
from fastload.iterators.adapted import stand_in
from fastload.iterators.cost import Evidence
from fastload.iterators.learned import Logged, goes_to_workers
from fastload.machine.auto import Auto, is_elastic
from fastload.processes.admission import Admission
from fastload.processes.arrival import Arrival
from fastload.processes.connection import Terms
from fastload.processes.context import Context
from fastload.processes.failures import Failures
from fastload.processes.worker_ends import WorkerEnds

__all__ = ["ProcessIter"]

_log = logging.getLogger("fastload")


class ProcessIter(WorkerEnds):
    """Batches that worker processes make, in memory of ours.

    Args:
        loader: The loader.
        may_take_over: True if the consumer may make batches itself, if workers cannot or do not pay.
        **changes: Attributes of it that are others for its workers.
    """

    _kind = "worker processes"
    _is_started = False
    _weighed = 0

    def __init__(
        self,
        loader: Any,
        *,
        may_take_over: bool = False,
        **changes: Any,
    ) -> None:
        began_s = time.perf_counter()
        self._may_take_over = may_take_over
        self._lazy_images = bool(loader.lazy_images)
        if may_take_over and loader._profile is None and loader.worker_init_fn is None:
            self._evidence = Evidence(int(loader.prefetch_factor * loader.num_workers))
            loader._record.unfinished += 1
        self._loader = weakref.ref(loader)
        # also those of a loader that only its iterator outlives, as in `for batch in Loader(dataset)`
        self._users_dataset, self._record = loader.dataset, loader._record
        self._logged = Logged.of(loader)
        self._continue(loader)
        # modules may be gone when this is deleted
        self._getpid, self._is_finalizing = os.getpid, sys.is_finalizing
        self._pid = self._getpid()
        budget = loader._budget_bytes
        is_asked = loader.memory_budget is not None
        # a budget of the user's also limits the first batches, whose size is not known yet
        first = budget if is_asked else budget // max(1, int(loader.num_workers))
        self._admission = Admission(budget, first)
        real = loader.multiprocessing_context or torch.multiprocessing
        source = stand_in(loader, **changes)
        may_wait = is_elastic(loader) and real.get_start_method() == "fork" and not self._to_drop
        if may_wait and source.num_workers > 1:
            self._later = int(source.num_workers)
            vars(source)["num_workers"] = Auto(1)
        self._context = Context(
            real,
            self._admission,
            Terms(
                may_take_over=may_take_over,
                lazy_images=self._lazy_images,
                keeping=self._keeping(loader),
                hides_worker=may_take_over and loader.worker_init_fn is None,
            ),
            starts_more=is_elastic(loader),
            among=self._later,
        )
        self._links = self._context.links
        self._failures = Failures()
        self._events = deque()
        vars(source)["_DataLoader__multiprocessing_context"] = self._context
        try:
            super().__init__(source)
        except BaseException as error:
            # An interrupt, or torch's signal handler: a worker ended while torch had the ids.
            words = str(error) if isinstance(error, RuntimeError) else ""
            if not self._take_back_ids() or "DataLoader worker (pid " not in words:
                raise
            self._reset(source, first_iter=True)  # all that torch had left to do
        finally:
            self._context.started()
        for place, process in enumerate(self._workers):
            self._context.watch(place, process)
        self._is_started = True
        if may_take_over:
            goes_to_workers(self._users_dataset)
        if self._evidence is not None:
            self._evidence.started(time.perf_counter() - began_s)

    def _begin(self) -> None:
        if self._later is None:
            super()._begin()
            return
        depth, self._depth = self._depth, 1
        try:
            super()._begin()
        finally:
            self._depth = depth
        self._start_others(self._later)

    def _start_others(self, number: int) -> None:
        """Starts the workers behind the first, which has its batch by then: each takes as long as some batches."""
        depth = self._depth
        try:
            try:
                while len(self._active) < number:
                    self._resize(len(self._active) + 1, number)
                    self._depth = len(self._active)
                    self._fill()
            finally:
                self.change(len(self._active), depth)
        except OSError as error:
            self._start_no_more(error)

    @property
    def _pin_memory(self) -> bool:
        """True if batches are page-locked; not while torch would start a thread for it."""
        return self._is_started and self._pins

    @_pin_memory.setter
    def _pin_memory(self, value: bool) -> None:
        self._pins = value

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        if first_iter:
            self._take_back_ids()
        super()._reset(loader, first_iter)

    def _take_back_ids(self) -> bool:
        """Takes the workers' ids from torch, whose signal handler raises when a worker ends; here `next` raises.

        Returns:
            True if torch had them.
        """
        self._worker_pids_set = False
        try:
            signal_handling._remove_worker_pids(id(self))  # type: ignore[attr-defined]
        except ValueError:
            return False
        return True

    def _start_worker(self, worker: int, among: int) -> tuple[int, Any]:
        _lib.park()  # a fork then copies a process without idle threads
        tasks, process = self._context.start(worker, among)
        self._workers[tasks.place : tasks.place + 1] = [process]
        self._context.watch(tasks.place, process)
        return tasks.place, tasks

    def _ready(self) -> int:
        return self._heard(self._links.ready) + sum(
            arrival is not None for _, arrival in self._events
        )

    def _worker_bytes(self) -> int:
        """Returns the unshared bytes of one worker, a different one each time; it takes a millisecond."""
        self._weighed += 1
        pid = self._workers[self._active[self._weighed % len(self._active)]].pid
        with contextlib.suppress(psutil.Error):  # it has just ended
            process = psutil.Process(pid)
            try:
                return int(process.memory_full_info().uss)
            except (
                psutil.AccessDenied
            ):  # macOS shows of other processes only all memory, shared or not
                return int(process.memory_info().rss)
        return 0

    def memory(self) -> dict[str, int]:
        """Returns the counters of the workers' arenas and of the batches ahead: bytes and numbers."""
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
        if self._is_lost:
            raise StopIteration  # a state still says where the epoch was
        batch = super()._next_data()
        if self._pins and not self._is_stuck:
            while self._hear(0):
                pass
        return batch

    def _get_data(self) -> tuple[Any, Any]:
        """Waits for a result; returns the number of the batch that is due, and None, once workers hang."""
        seen = 0, 0.0
        while not self._is_stuck:
            limit_s = self._timeout if self._timeout > 0 else self._patience_s() / 2
            if not self._heard_in_time(lambda: bool(self._events), limit_s):
                if self._timeout > 0:
                    self._is_late = True
                    raise RuntimeError(self._late())
                before, seen = seen, self._activity()
                if seen == before and seen[0] > 0 and self._is_here():
                    self._give_up(2 * limit_s)
                continue
            self._is_late = False
            place, arrival = self._events.popleft()
            if arrival is not None:
                return self._opened(place, arrival)
            if not self._context.tasks[place].is_last:
                self._fail(place)
        return self._rcvd_idx, None

    def _heard_in_time(self, has_come: Callable[[], bool], limit_s: float) -> bool:
        """Waits until something has come, no longer than some seconds; returns true if it has."""
        end = time.monotonic() + limit_s
        while not has_come():
            left_s = max(0, end - time.monotonic())
            if not self._hear(min(self._context.look_s, left_s)):
                self._look()
                if time.monotonic() >= end:
                    return False
        return True

    def _hear(self, time_s: float) -> bool:
        """Waits for what happens next; returns true if there was something in time."""
        limit_s = time_s if time_s < math.inf else None
        event = self._heard(lambda: self._links.receive(limit_s))
        if event is None:
            return False
        place, message = event
        arrival = None
        if message is not None:
            tasks = self._context.tasks[place]
            arrival = Arrival(tasks.worker, *message, pins=bool(self._pins))
            pid = self._workers[place].pid
            self._count(arrival.seq, arrival.cost, arrival.made_s, tasks.worker, pid)
            self._longest_s = max(self._longest_s, arrival.cost.wall_s)
            if self._evidence is not None and isinstance(arrival.seq, int):
                self._evidence.made(arrival.cost)
            self._pace.weighed(arrival.size)
            if arrival.changed and not self._fills and self._why_here(arrival) is None:
                self._tell_of_changes(arrival.changed)
            tasks.in_hand.pop(arrival.seq, None)
            if not self._admission.came(arrival.seq, arrival.size):
                arrival.size = 0
        self._events.append((place, arrival))
        return True

    def _opened(self, place: int, arrival: Arrival) -> tuple[Any, Any]:
        """Returns a result; of a batch, the arrival."""
        if isinstance(arrival.seq, int) and arrival.is_copied:
            return arrival.seq, arrival
        began_s = time.thread_time() if self._evidence is not None else 0.0
        data = arrival.open()
        if self._evidence is not None:
            self._evidence.opened(time.thread_time() - began_s)
        if isinstance(data, _IterableDatasetStopIteration):
            self._context.tasks[place].in_hand.clear()
            if self._why_here(arrival) is not None:
                return arrival.seq, arrival
            self._admission.taken(arrival.size)
            self._admission.drop(place)
            self._ended[arrival.worker] = arrival.moved
            return arrival.seq, data
        if isinstance(arrival.seq, _ResumeIteration):
            self._begun[arrival.worker] = arrival.moved
        return arrival.seq, arrival if isinstance(arrival.seq, int) else data

    def _process_data(self, arrival: Any, *rest: Any) -> Any:
        """Returns a batch that has come, or the one that the consumer makes in its place."""
        if arrival is None:
            return self._made_instead(self._asked.pop(self._rcvd_idx - 1), *rest)
        self._admission.taken(arrival.size)
        data = arrival.open()
        self._keep(arrival.worker, arrival.moved)
        asked = self._asked.pop(arrival.seq, None) if self._keys is not None else None
        made = self._in_place_of(arrival, data, asked, *rest)
        if made is not None:
            return made[0]
        note = getattr(data, "note", None) if isinstance(data, ExceptionWrapper) else None
        try:
            data = super()._process_data(data, *rest)
        except BaseException as error:  # under AUTO of any type
            if note is not None:
                error.add_note(note)
            # A frame of torch's `reraise` holds the error, which would keep the workers until garbage is collected.
            error.__traceback__ = None
            raise
        return self._pinned(data)

    def _tell_of_changes(self, names: str) -> None:
        """Logs, once for a loader, that samples change attributes of the dataset."""
        if self._logged.first("attributes"):
            _log.warning(
                "samples of %s change %s: each worker process changes a copy of its own, "
                "which no other process sees",
                type(self._users_dataset).__qualname__,
                names,
            )
