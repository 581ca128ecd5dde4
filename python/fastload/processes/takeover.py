"""The consumer that goes on in place of a worker: where workers do not pay, or cannot make the samples.

Owns the reasons, and the batch from which on the training thread makes them itself: no batch is lost, or comes twice.
Later iterators of the dataset are told.
"""

import copy
import logging
import pickle
import signal
import time
from abc import abstractmethod
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data._utils import pin_memory

from fastload.iterators.consumer import Maker
from fastload.iterators.cost import Evidence
from fastload.iterators.learned import Record, is_others, stays_here
from fastload.iterators.paced import Paced
from fastload.lowering.reading.compared import is_same
from fastload.processes.arrival import Arrival

__all__ = ["TakeOver"]

_log = logging.getLogger("fastload")

_CATCH_UP_S = 0.2
"""Seconds for which the consumer may make the batches again that a worker has made."""
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


class TakeOver(Paced):
    """Iterates over batches of workers, some or all of which the consumer makes."""

    _may_take_over: bool
    _users_dataset: Any
    _record: Record
    _pins: bool
    _evidence: Evidence | None = None
    _fills: str | None = None
    """Why batches of workers are made again: what they change must stay in this process."""
    _is_dear: str | None = None
    """Of a worker that iterates a dataset: why it does not pay."""
    _first: Any = None
    """Of such a worker: a copy of the epoch's first batch."""

    @abstractmethod
    def _end_workers(self) -> None:
        """Ends workers that are at work, without waiting for their batches."""

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
                self._note_here(why, is_measured=True)
            raise
        why = evidence.taken(time.perf_counter() - began_s)
        if why is not None and is_others(self._users_dataset):
            self._evidence = None
        elif why is not None and self._keys is None:
            self._is_dear = why
        elif why is not None:
            self._leave_workers(why, logging.INFO, is_measured=True)
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

    def _leave_workers(self, why: str, level: int, *, is_measured: bool = False) -> None:
        """Has the consumer take over, and says why."""
        if self._maker is None:
            self._note_here(why, level, is_measured=is_measured)
            self.take_over()

    def _look_back(self) -> None:
        """Has later epochs made in this process, if epochs are left after so few batches that workers do not pay."""
        evidence = self._evidence
        if evidence is None or self._persistent_workers or self._record.unfinished <= _OFTEN:
            return
        self._evidence = None
        if (why := evidence.ended(is_left=True)) is not None:
            self._note_here(f"epochs are left early, where {why}", is_measured=True)

    def _note_here(self, why: str, level: int = logging.INFO, *, is_measured: bool = False) -> None:
        """Keeps for other iterators that the samples are made in this process."""
        _log.log(level, "loading in this process from here on: %s", why)
        stays_here(self._users_dataset, why)
        self._record.why_here, self._record.is_measured = why, is_measured

    def _why_here(self, arrival: Arrival) -> str | None:
        """Returns why the consumer makes the samples: what they change in a worker ends with the epoch."""
        may_begin_again = self._keys is not None or self._num_yielded == 0
        if arrival.kept and may_begin_again:
            return f"samples make {arrival.kept} and keep it, and each worker would make its own"
        if arrival.filled and self._evidence is not None and may_begin_again:
            return (
                f"samples put data into {arrival.filled}, which a worker would lose with each epoch"
            )
        if arrival.changed and self._is_iterable and self._may_take_over:
            return f"iterating the dataset changes {arrival.changed}, and a worker changes a copy"
        return None

    def _in_place_of(
        self, arrival: Arrival, data: Any, asked: Any, *rest: Any
    ) -> tuple[Any] | None:
        """Returns the batch with which the consumer goes on in place of the worker; None if it does not.

        Args:
            arrival: The worker's batch.
            data: Its data.
            asked: What the worker was asked for; None if it iterates a dataset.
            *rest: Torch's further arguments of a batch.
        """
        why = getattr(data, "why_here", None) if isinstance(data, ExceptionWrapper) else None
        self._fills = self._why_here(arrival) or self._fills
        why = self._fills or why
        if why is not None and self._may_take_over:
            level = logging.INFO if self._fills else logging.WARNING
            if asked is None:
                return (self._repeated_here(why, level),)
            self._leave_workers(why, level)
            return (self._made_instead(asked, *rest),)
        if self._evidence is not None and self._keys is None:
            if not self._num_yielded and arrival.size <= _SMALL_BATCH:
                self._first = _copied(data)
            if self._is_dear is not None:
                batch = self._made_again(self._is_dear, self._pinned(data))
                return None if batch is None else (batch,)
        return None

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
