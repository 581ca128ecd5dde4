"""`ProcessIter`: torch's iteration with worker processes, over links of our own.

Owns the wait for batches: for the messages and the ends of all workers at once. What is asked of whom and when,
and in which order batches come, is torch's. With page-locked memory, what has come by the time a batch is taken
is copied while the training goes on with that batch: torch's iterator stores it until its turn.
"""

import contextlib
import copy
import logging
import math
import os
import pickle
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import psutil
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data._utils import pin_memory, signal_handling
from torch.utils.data._utils.worker import _IterableDatasetStopIteration, _ResumeIteration

from fastload import _lib
from fastload.iterators.adapted import stand_in
from fastload.iterators.consumer import Maker
from fastload.iterators.cost import Evidence
from fastload.iterators.learned import Logged, stays_here
from fastload.iterators.paced import Paced
from fastload.lowering.reading.compared import is_same
from fastload.machine.auto import Auto, is_elastic
from fastload.processes.admission import Admission
from fastload.processes.arrival import Arrival
from fastload.processes.connection import Terms
from fastload.processes.context import Context
from fastload.processes.failures import EndedProcess, Failures, samples

__all__ = ["ProcessIter"]

_log = logging.getLogger("fastload")

_T = TypeVar("_T")

_END_S = 0.5
"""Seconds that a worker has to end after it was asked to."""
_CATCH_UP_S = 0.2
"""Seconds for which the consumer may make the batches again that a worker has made."""
_PATIENCE_S = 30.0
"""Seconds without a message after which workers that do not run may be taken to hang; twice as long at the first."""
_OF_LONGEST = 50
"""How many times longer than the longest batch so far that must be."""
_SMALL_BATCH = 1 << 20
"""Bytes of a batch of which a copy is kept."""
_OFTEN = 3
"""Epochs in a row that are left before workers have paid or not, after which the next ones are expected to be, too."""


def _copied(batch: Any) -> Any:
    """Returns a copy of a batch, which the training may change; None of one that cannot be copied."""
    try:
        return copy.deepcopy(batch)
    except Exception:
        return None


class ProcessIter(Paced):
    """Batches that worker processes make, in memory of ours.

    Args:
        loader: The loader.
        may_take_over: True if the consumer may make batches itself, if workers cannot or do not pay.
        **changes: Attributes of it that are others for its workers.
    """

    _kind = "worker processes"
    _workers: list[Any]
    # modules may be gone when this is deleted
    _uninterruptibly = staticmethod(_lib.uninterruptibly)

    def __init__(
        self,
        loader: Any,
        *,
        may_take_over: bool = False,
        **changes: Any,
    ) -> None:
        began_s = time.perf_counter()
        self._may_take_over = may_take_over
        # why batches of workers are made again: what they change must stay in this process
        self._fills: str | None = None
        # of a worker that iterates a dataset: why it does not pay, and a copy of the epoch's first batch
        self._is_dear: str | None = None
        self._first: Any = None
        self._lazy_images = bool(loader.lazy_images)
        self._evidence: Evidence | None = None
        if may_take_over and loader._profile is None and loader.worker_init_fn is None:
            self._evidence = Evidence(int(loader.prefetch_factor * loader.num_workers))
            loader._record.unfinished += 1
        self._loader = weakref.ref(loader)
        # also those of a loader that only its iterator outlives, as in `for batch in Loader(dataset)`
        self._users_dataset, self._record = loader.dataset, loader._record
        self._logged = Logged.of(loader)
        self._continue(loader)
        self._is_started = False
        self._is_late = self._is_lost = self._is_stuck = False
        self._longest_s = 0.0
        self._getpid = os.getpid  # modules may be gone when this is deleted
        self._pid = self._getpid()
        budget = loader._budget_bytes
        is_asked = loader.memory_budget is not None
        # a budget of the user's also limits the first batches, whose size is not known yet
        first = budget if is_asked else budget // max(1, int(loader.num_workers))
        self._admission = Admission(budget, first)
        real = loader.multiprocessing_context or torch.multiprocessing
        # forked workers have run it in no time; others begin while the program goes on
        tells_init = loader.worker_init_fn is not None and real.get_start_method() == "fork"
        self._uninitialised: set[int] = set()
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
                tells_init=tells_init,
                hides_worker=may_take_over and loader.worker_init_fn is None,
            ),
            starts_more=is_elastic(loader),
            among=self._later,
        )
        self._links = self._context.links
        self._failures = Failures()
        self._events: deque[tuple[int, Arrival | None]] = deque()
        self._weighed = 0
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
        if tells_init:
            self._await_init()
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

    def _await_init(self) -> None:
        """Waits until the workers that were asked for batches have run `worker_init_fn`; raises its error."""
        asked = enumerate(self._context.tasks)
        self._uninitialised = {place for place, tasks in asked if tasks.in_hand}
        limit_s = self._timeout if self._timeout > 0 else math.inf
        if not self._heard_in_time(
            lambda: self._uninitialised <= {place for place, _ in self._events}, limit_s
        ):
            words = self._late()
            self._abandon()
            raise RuntimeError(words)
        for place, arrival in list(self._events):
            if place in self._uninitialised and arrival is not None:
                self._abandon()
                arrival.open().reraise()

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

    def _step(self) -> Any:
        evidence = self._evidence
        if evidence is None:
            return super()._step()
        began_s = time.perf_counter()
        if not self._is_begun:
            self._begin()
            evidence.started(time.perf_counter() - began_s)
            began_s = time.perf_counter()
        try:
            batch = super()._step()
        except StopIteration:
            self._record.unfinished = 0
            is_open = self._evidence is not None and not self._persistent_workers
            if is_open and (why := evidence.ended()) is not None:
                self._evidence = None
                self._note_here(why)
            raise
        why = evidence.taken(time.perf_counter() - began_s)
        if why is not None and self._keys is None:
            self._is_dear = why
        elif why is not None:
            self._leave_workers(why, logging.INFO)
        return batch

    def _was_set(self) -> None:
        self._evidence = None  # the user set a number of workers
        super()._was_set()

    def take_over(self) -> None:
        """Lets the consumer make the batches that are not assigned to a worker yet."""
        if self._tuner is not None:
            self._tuner.pause(self)
            self._tuner = self._goal = None
        self._evidence = None
        super().take_over()

    def _leave_workers(self, why: str, level: int) -> None:
        """Has the consumer take over, and says why."""
        if self._maker is None:
            self._note_here(why, level)
            self.take_over()

    def _look_back(self) -> None:
        """Has later epochs made in this process, if epochs are left after so few batches that workers do not pay."""
        evidence = self._evidence
        if evidence is None or self._persistent_workers or self._record.unfinished <= _OFTEN:
            return
        self._evidence = None
        if (why := evidence.ended(is_left=True)) is not None:
            self._note_here(f"epochs are left early, where {why}")

    def _note_here(self, why: str, level: int = logging.INFO) -> None:
        """Keeps for other iterators that the samples are made in this process."""
        _log.log(level, "loading in this process from here on: %s", why)
        stays_here(self._users_dataset, why)
        self._record.why_here = why

    def _start_worker(self, worker: int, among: int) -> tuple[int, Any]:
        _lib.park()  # a fork then copies a process without idle threads
        tasks, process = self._context.start(worker, among)
        self._workers[tasks.place : tasks.place + 1] = [process]
        self._context.watch(tasks.place, process)
        return tasks.place, tasks

    def _release_worker(self, place: int) -> bool:
        process = self._workers[place]
        if process.is_alive():
            return False
        self._links.release(place)
        self._events = deque(event for event in self._events if event[0] != place)
        self._workers[place] = EndedProcess(process)
        return True

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

    def _is_here(self) -> bool:
        return self._getpid() == self._pid

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

    def _patience_s(self) -> float:
        """Returns after how long without a message workers may hang; infinite where they alone can make the batch."""
        if not self._may_take_over or self._keys is None or self._rcvd_idx not in self._asked:
            return math.inf
        return (
            max(_PATIENCE_S, _OF_LONGEST * self._longest_s) if self._longest_s else 2 * _PATIENCE_S
        )

    def _activity(self) -> tuple[int, float]:
        """Returns how often workers that make a batch began to run or to wait, and their CPU time, in seconds.

        With the processes that they have started. Linux counts the former of their main threads alone. Both are the same
        as before if each waits for one thing all the time.
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
        self._is_stuck = True
        self._end_workers()
        for place in range(len(self._workers)):
            self._admission.drop(place)
        self._note_here(
            f"no batch has come for {waited_s:.0f} s, and the workers that make one do not run, as where they are "
            "forked while another thread holds a lock that samples need; num_workers=0 or "
            "multiprocessing_context='spawn' avoids that",
            logging.WARNING,
        )
        self.take_over()

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

    def _look(self) -> None:
        """Looks for a worker that has ended, which old systems may not tell."""
        for place, (worker, tasks) in enumerate(
            zip(self._workers, self._context.tasks, strict=True)
        ):
            if not tasks.is_last and not worker.is_alive():
                self._fail(place)

    def _hear(self, time_s: float) -> bool:
        """Waits for what happens next; returns true if there was something in time, if only an empty message."""
        limit_s = time_s if time_s < math.inf else None
        event = self._heard(lambda: self._links.receive(limit_s))
        if event is None:
            return False
        place, message = event
        if message is not None and not message[0]:
            self._uninitialised.discard(place)
            return True
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

    def _why_here(self, arrival: Arrival) -> str | None:
        """Returns why the consumer makes the samples: what they change in a worker ends with the epoch."""
        may_begin_again = self._keys is not None or self._num_yielded == 0
        if arrival.kept and may_begin_again:
            return f"samples make {arrival.kept} and keep it, and each worker would have its own"
        if arrival.filled and self._evidence is not None and may_begin_again:
            return f"samples put data into {arrival.filled}, which only this process keeps"
        if arrival.changed and self._is_iterable and self._may_take_over:
            return f"iterating the dataset changes {arrival.changed}, of which a worker has a copy"
        return None

    def _tell_of_changes(self, names: str) -> None:
        """Logs, once for a loader, that samples change attributes of the dataset."""
        if self._logged.first("attributes"):
            _log.warning(
                "samples of %s change %s: each worker process changes a copy of its own, "
                "which no other process sees",
                type(self._users_dataset).__qualname__,
                names,
            )

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
        if arrival is None:
            return self._made_instead(self._asked.pop(self._rcvd_idx - 1), *rest)
        self._admission.taken(arrival.size)
        data = arrival.open()
        self._keep(arrival.worker, arrival.moved)
        asked = self._asked.pop(arrival.seq, None) if self._keys is not None else None
        why = getattr(data, "why_here", None) if isinstance(data, ExceptionWrapper) else None
        self._fills = self._why_here(arrival) or self._fills
        why = self._fills or why
        if why is not None and self._may_take_over:
            level = logging.INFO if self._fills else logging.WARNING
            if asked is None:
                return self._repeated_here(why, level)
            self._leave_workers(why, level)
            return self._made_instead(asked, *rest)
        if self._evidence is not None and self._keys is None:
            if not self._num_yielded and arrival.size <= _SMALL_BATCH:
                self._first = _copied(data)
            if self._is_dear is not None:
                batch = self._made_again(self._is_dear, self._pinned(data))
                if batch is not None:
                    return batch
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

    def _made_instead(self, asked: tuple[Any, Any], *rest: Any) -> Any:
        """Returns a batch that a worker was asked for, made by the consumer."""
        super()._process_data(None, *rest)
        assert self._maker is not None
        return self._maker.make(*asked)

    def _pinned(self, data: Any) -> Any:
        return pin_memory.pin_memory(data) if self._pins else data  # type: ignore[no-untyped-call]

    def _repeated_here(self, why: str, level: int) -> Any:
        """Iterates an iterable dataset here, as its one worker did, and returns the batch that was to come."""
        self._leave_worker(why, level)
        self._maker = maker = Maker(self)
        cursor = self._cursor
        saved = cursor.datasets.get(0)
        maker.begin_at(cursor, None if saved is None else pickle.loads(saved))
        for _ in range(self._num_yielded - (0 if saved is None else cursor.kept_at)):
            maker.make(self._next_index(), None)
        maker.batches = 0
        return self._made_here(maker)

    def _made_again(self, why: str, batch: Any) -> Any:
        """Returns the batch that has come, if the consumer can go on from it: if it makes the same batches.

        A dataset that does not repeat itself, such as a stream of events, stays with its worker, and so does one whose
        batches so far took long; None is returned then.
        """
        first, self._first, self._is_dear = self._first, None, None
        cursor, record = self._cursor, self._record
        assert self._evidence is not None
        if first is None or self._evidence.made_s > _CATCH_UP_S or not record.repeats:
            return None
        asked = cursor.fetcher, cursor.pack
        made = None
        try:
            maker = Maker(self)
            # from the start: a state that was loaded would stay with the user's dataset
            maker.begin_at(cursor, None)
            for number in range(self._num_yielded + 1):
                made = maker.make(self._next_index(), None)
                if number == 0 and not is_same(made, self._pinned(first)):
                    record.repeats = False
                    break  # before more is read of what may be there once
            else:
                record.repeats = is_same(made, batch)
        except (Exception, SystemExit):  # it may be at its end
            record.repeats = False
        except KeyboardInterrupt:  # which comes behind the batch
            made = None
            signal.raise_signal(signal.SIGINT)
        if made is None or not record.repeats:
            cursor.fetcher, cursor.pack = asked
            return None
        maker.batches = 0
        self._leave_worker(why, logging.INFO)
        self._maker = maker
        return batch

    def _leave_worker(self, why: str, level: int) -> None:
        """Ends the worker that iterates the dataset, whose samples are made in this process from here on."""
        self._note_here(why, level)
        self._evidence = None
        self._end_workers()
        self._shutdown_workers()
        self._task_info = {}
        self._to_drop = 0
        self._generators, self._datasets = {}, {}  # of the worker

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
        words = f"DataLoader timed out after {self._timeout} seconds"
        at_work = [
            f"worker {tasks.worker} (pid {process.pid}) "
            f"{'runs worker_init_fn, and then ' if place in self._uninitialised else ''}"
            f"makes {samples(next(iter(tasks.in_hand.values())))}"
            for place, (process, tasks) in enumerate(
                zip(self._workers, self._context.tasks, strict=True)
            )
            if tasks.in_hand and not tasks.is_last
        ]
        return "; ".join([words, *at_work, "raise timeout if that may take so long"])

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
