"""The worker's end of the link, in place of the two queues and the event of torch's worker loop.

Owns what a worker has in hand: to say of an error which sample it was, to seed its generators where samples
are keyed, and to tell what a batch took. Refuses to change an error: the note travels beside it.
"""

import functools
import pickle
import queue
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch._utils import ExceptionWrapper
from torch.utils.data import IterableDataset, _DatasetKind, get_worker_info
from torch.utils.data._utils import worker

from fastload import _lib
from fastload.draws import keyed
from fastload.faults import ONLY_HERE
from fastload.iterators.cost import Watch
from fastload.lowering.cheap import drawn_from, read_code
from fastload.processes.changes import Changes
from fastload.processes.failures import name_part, samples
from fastload.processes.pickling import WholePickler, dumps, dumps_small
from fastload.resume.worker_state import Keeping, WorkerState

__all__ = ["Connection", "Terms"]


class Terms(NamedTuple):
    """What is agreed with all workers of an iterator.

    Attributes:
        may_take_over: True if the consumer makes the batches that cannot be handed over as they are.
        lazy_images: True if pictures wait in the workers.
        keeping: The states of their generators to keep; None where samples are keyed.
        hides_worker: True if an iterable dataset is iterated as by torch's default, which has no worker: in one, Hugging
            Face's streams, for example, have another order.
    """

    may_take_over: bool
    lazy_images: bool
    keeping: Keeping | None
    hides_worker: bool


class Connection:
    """A worker's queue of tasks, queue of results, and event.

    Args:
        link: The worker's end.
        loop: The arguments of torch's worker loop, by name.
        terms: What is agreed with all workers.
    """

    def __init__(
        self,
        link: _lib.WorkerLink,
        loop: Mapping[str, Any],
        terms: Terms,
    ) -> None:
        self._may_take_over, self._hides_worker = terms.may_take_over, terms.hides_worker
        self._link = link
        self._worker = loop.get("worker_id", 0)
        self._state: WorkerState | None = None
        if terms.keeping is not None:
            workers = loop.get("num_workers", 1)
            self._state = state = WorkerState(terms.keeping, self._worker, workers, keyed.current)
            make = functools.partial(state.open, _DatasetKind.create_fetcher)
            _DatasetKind.create_fetcher = staticmethod(make)  # type: ignore[method-assign]
        self._collate_fn = loop.get("collate_fn")
        self._changes: Changes | None = None
        self._is_stream = loop.get("dataset_kind") == _DatasetKind.Iterable
        if self._is_stream:
            make = functools.partial(self._iterate, _DatasetKind.create_fetcher)
            _DatasetKind.create_fetcher = staticmethod(make)  # type: ignore[method-assign]
        self._auto_collation = bool(loop.get("auto_collation"))
        self._in_hand: Any = None
        self._followed: _lib.Followed | None = None
        self._is_last = False
        self._watch = Watch()
        self._has_begun = self._has_told = False
        self._drawn_from: frozenset[str] | None = None

    def get(self, timeout: float) -> Any:
        """Waits for a task, as a queue does.

        Raises:
            queue.Empty: There is none yet.
        """
        try:
            message = self._link.receive(timeout)
        except EOFError:
            return None
        if message is None:
            raise queue.Empty
        self._watch.run()
        task = pickle.loads(message)
        if task is None:
            self._is_last = True
        if not isinstance(task, tuple):
            return task
        seq, indices, key = task
        if not self._has_begun and (info := get_worker_info()) is not None:
            self._has_begun = True
            if not self._is_stream:
                self._changes = Changes(info.dataset, self._collate_fn, indices)
            if key is not None:
                self._drawn_from = drawn_from(read_code(info.dataset).draws, self._collate_fn)
        if self._state is not None:
            self._state.begin()
        self._in_hand, self._followed = indices, None
        if self._auto_collation and not _takes_lists():
            indices = keyed.follow(indices, key, self._drawn_from)
            self._followed = indices if isinstance(indices, _lib.Followed) else None
        elif key is not None and self._auto_collation:
            keyed.begin_batch(key)
        elif key is not None:
            keyed.begin_sample(key, indices)
        return seq, indices

    def _iterate(self, create: Callable[..., Any], kind: int, dataset: Any, *rest: Any) -> Any:
        """Has an iterable dataset iterated, which may change it at once."""
        if not self._has_begun and self._changes is None:
            self._changes = Changes(dataset, self._collate_fn, goes_on=self._may_take_over)
        if not self._hides_worker:
            return create(kind, dataset, *rest)
        info = worker._worker_info
        fetcher = _seeing(None, create, kind, dataset, *rest)
        # a proxy: in a cycle, an iteration that is left early would not be closed where collections are frozen
        fetch = functools.partial(type(fetcher).fetch, weakref.proxy(fetcher))
        fetcher.fetch = functools.partial(_seeing, None, fetch)
        fetcher.collate_fn = functools.partial(_seeing, info, fetcher.collate_fn)
        return fetcher

    def put(self, result: tuple[Any, Any]) -> None:
        """Sends a result, or its error, and the cost since the last one."""
        seq, data = result
        if isinstance(data, ExceptionWrapper):
            data.note = self._note()  # type: ignore[attr-defined]
            if self._may_take_over and (found := ONLY_HERE.search(data.exc_msg)):
                data.why_here = found[0]  # type: ignore[attr-defined]
        moved = None
        if self._state is not None:  # what is no batch says that the worker begins an epoch
            moved = self._state.moved(seq) if isinstance(seq, int) else self._state.next_epoch()
        cost, lapped_s = self._watch.lap(), self._watch.lapped_s
        changes = "", ("", 0), ""
        if self._changes is not None:
            once = not self._has_told
            asks = once and self._may_take_over
            filled = self._changes.filled() if asks else ("", 0)
            kept = self._changes.kept() if asks else ""
            is_last = isinstance(data, worker._IterableDatasetStopIteration)
            changes = self._changes.changed(is_last=is_last), filled, kept
            self._has_told = True
            if not (self._is_stream and self._may_take_over):
                self._changes = None  # the first batch has told
            self._watch.run()  # to look for changes is no part of a batch, nor of handing it over
        head = seq, tuple(cost), lapped_s, changes, moved
        pickler = WholePickler if self._may_take_over else None
        try:
            small = dumps_small(head, data)
            message = (
                dumps(head, data, memory=self._link, pickler=pickler)
                if small is None
                else (small, [])
            )
        except Exception as error:
            message = dumps(head, self._refused(data, error), memory=self._link)
        self._link.send(*message)
        self._watch.rest()

    def is_set(self) -> bool:
        """Returns true if batches of this worker are no longer needed."""
        return self._is_last or self._link.is_over()

    def cancel_join_thread(self) -> None:
        """Does nothing: there is no thread."""

    def close(self) -> None:
        """Does nothing: the link is the process's."""

    def _refused(self, data: Any, error: Exception) -> ExceptionWrapper:
        """Returns the error that replaces a result that cannot be sent."""
        if isinstance(data, ExceptionWrapper):
            words = f"an exception that does not pickle: {data.exc_msg}"
            info = (RuntimeError, RuntimeError(words), None)
            return _wrapped(info, f"in DataLoader worker process {self._worker}")
        pickler = WholePickler if self._may_take_over else None
        name_part(error, data, "batch", functools.partial(dumps, pickler=pickler))
        wrapped = _wrapped(sys.exc_info(), f"in DataLoader worker process {self._worker}")
        wrapped.note = self._note()  # type: ignore[attr-defined]
        if self._may_take_over:
            wrapped.why_here = str(error)  # type: ignore[attr-defined]
        return wrapped

    def _note(self) -> str:
        """Returns which samples the worker has in hand."""
        indices, followed = self._in_hand, self._followed
        made = f"while worker {self._worker} made"
        if followed is not None and followed.current is not None:
            index = followed.current[0]
            return f"{made} {samples(None) if index is None else f'sample {index}'}"
        of = "the batch of " if isinstance(indices, list | tuple) else ""
        return f"{made} {of}{samples(indices)}"


def _seeing(info: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function, which is given `info` by `get_worker_info()`."""
    before, worker._worker_info = worker._worker_info, info
    try:
        return function(*arguments)
    finally:
        worker._worker_info = before


def _takes_lists() -> bool:
    """Returns true if the dataset makes whole batches; torch asks only map-style ones."""
    info = get_worker_info()
    if info is None or isinstance(info.dataset, IterableDataset):
        return info is None
    return bool(getattr(info.dataset, "__getitems__", None))


def _wrapped(info: Any, where: str) -> ExceptionWrapper:
    return ExceptionWrapper(info, where)  # type: ignore[no-untyped-call]
