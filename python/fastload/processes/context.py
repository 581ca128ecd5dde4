"""The context that torch's iterator asks for queues, an event and processes.

Owns the order in which torch asks: a queue for results; the event that ends the workers; then for each
worker a queue for its tasks, and the process. Refuses everything else that a context can do.
"""

import functools
import inspect
import math
import os
import pickle
import warnings
from multiprocessing import connection
from multiprocessing.reduction import DupFd
from typing import Any

from fastload import _lib
from fastload.draws import keyed
from fastload.pictures import ready
from fastload.processes import entry
from fastload.processes.admission import Admission
from fastload.processes.connection import Terms
from fastload.processes.image import Image
from fastload.processes.pickling import dumps
from fastload.processes.snapshot import Snapshot

__all__ = ["Context", "Terms", "UnpicklableError"]

_LOOK_S = 0.5
_signature = functools.cache(inspect.signature)


class UnpicklableError(Exception):
    """An object for the workers does not pickle; the cause is the error that pickling raised."""


class Context:
    """A start method, with our own links to the processes.

    Args:
        real: The start method's own context, or the module that stands for the default one.
        admission: Lets tasks in.
        terms: What is agreed with all workers.
        starts_more: True if workers are started later, too; they get what the first ones got.
        among: Number of workers that there will be, if torch starts fewer.

    Attributes:
        links: The links to the processes.
        tasks: Their queues of tasks.
        look_s: Seconds between two checks of processes whose end is not signalled; infinite if there are none.
    """

    def __init__(
        self,
        real: Any,
        admission: Admission,
        terms: "Terms",
        *,
        starts_more: bool,
        among: int | None,
    ) -> None:
        self.links = _lib.Links()
        self.tasks: list[Tasks] = []
        self.look_s = math.inf
        self._admission = admission
        self._real = real
        self._terms = terms
        self._starts_more = starts_more
        self._among = among
        self._first: tuple[Any, dict[str, Any]] | None = None
        self._results: object = None
        self._end: End | None = None
        self._image: Image | None = None
        self._snapshot: Snapshot | None = None
        self._is_imaged = False
        entry.contexts.add(self)

    def Queue(self) -> Any:  # noqa: N802 (a context's name)
        """Returns the queue of results, then the queues of tasks."""
        if self._results is None:
            self._results = object()  # the iterator takes them from the links itself
            return self._results
        self._close_end()
        place, descriptor = self.links.open()
        self._end = End(descriptor, self._terms)
        self.tasks[place : place + 1] = [Tasks(self.links, place, self._admission)]
        return self.tasks[place]

    def Event(self) -> Any:  # noqa: N802
        """Returns the event that tells the workers to stop."""
        return Done(self.links)

    def Process(self, target: Any, args: tuple[Any, ...]) -> Any:  # noqa: N802
        """Returns a process that will call `target` with the queue and event of its worker."""
        return self._process(target, dict(_signature(target).bind(*args).arguments))

    def _process(self, target: Any, named: dict[str, Any]) -> Any:
        assert self._end is not None
        is_first = self._first is None and self._starts_more
        if is_first:
            named["num_workers"] = self._among or named["num_workers"]
            self._first = target, named
        named = {
            name: self._end if arg is self._results or isinstance(arg, Tasks | Done) else arg
            for name, arg in named.items()
        }
        forks = self._real.get_start_method() == "fork"
        if not forks:
            named = self._imaged(named)
        elif is_first:
            self._snapshot = Snapshot(named.values())
        snapshot = None if is_first else self._snapshot
        given = self._end, target, named, self._image, snapshot
        process = self._real.Process(target=entry.run, args=given)
        if forks:
            # it inherits where the generators' states lie, which takes 2 ms to find, and the modules of pictures
            keyed.current()
            if self._terms.lazy_images:
                ready()
            process.start = functools.partial(_start_uninterruptibly, process)
        else:
            process.start = functools.partial(_start_pickled, process)
        return process

    def start(self, worker: int, among: int) -> tuple["Tasks", Any]:
        """Starts one more worker; returns its tasks and its process.

        Raises:
            OSError: The system refuses another process.
        """
        assert self._first is not None
        target, named = self._first
        tasks = self.Queue()
        tasks.worker = worker
        own = {"index_queue": tasks, "worker_id": worker, "num_workers": among}
        try:
            process = self._process(target, named | own)
            process.daemon = True
            with warnings.catch_warnings():
                # of threads beside a fork: it is not the user who starts a worker here
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
        except BaseException:
            tasks.is_last = True
            self.links.release(tasks.place)
            if tasks is self.tasks[-1]:
                self.tasks.pop()
            raise
        finally:
            self.started()
        return tasks, process

    def watch(self, place: int, process: Any) -> None:
        """Has the links notice when a process ends that has started."""
        sentinel = _sentinel(process)
        if sentinel is None:
            self.look_s = _LOOK_S
        else:
            self.links.watch(place, sentinel)
        kind: Any = type(process)
        process.__class__ = _interruptible(kind)

    def started(self) -> None:
        """Closes and undoes what only the start of the processes needed."""
        self._close_end()
        if not self._starts_more:
            self.close()

    def close(self) -> None:
        """Lets go of what further workers would be given."""
        self._image = self._snapshot = None

    def _imaged(self, named: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments without what all workers have in an image, if there is one."""
        held = named.get("dataset_holder")  # in which newer versions of torch hand it over
        dataset = named["dataset"] if held is None else held[0]
        init_fn = named["init_fn"]
        values = {
            "dataset": dataset,
            "collate_fn": named["collate_fn"],
            "worker_init_fn": init_fn,
        }
        if not self._is_imaged:
            self._is_imaged = True
            try:
                self._image = Image.of(values)
            except Exception as error:  # of any `__reduce__`
                raise UnpicklableError(str(error)) from error
        if self._image is None or not self._image.is_of(values):
            return named
        place = "dataset" if held is None else "dataset_holder"
        given = {place: entry.Imaged("dataset", is_held=held is not None)}
        given["collate_fn"] = entry.Imaged("collate_fn")
        if init_fn is not None:
            given["init_fn"] = entry.Imaged("worker_init_fn")
        return named | given

    def _close_end(self) -> None:
        if self._end is not None:
            os.close(self._end.descriptor)
            self._end = None


def _start_uninterruptibly(process: Any) -> None:
    """Starts a process with Ctrl-C held back: Python only prints what is raised in the hooks of a fork."""
    del process.start  # restores that of the class
    _lib.uninterruptibly(process.start)


def _start_pickled(process: Any) -> None:
    """Starts a process that is not forked.

    Raises:
        UnpicklableError: It cannot be given its arguments.
    """
    del process.start  # restores that of the class
    try:
        process.start()
    except (OSError, RuntimeError):  # of the system, and of a main module without a guard
        raise
    except Exception as error:
        raise UnpicklableError(str(error)) from error


@functools.cache
def _interruptible(kind: Any) -> Any:
    """Returns a class of processes that are waited for with Ctrl-C raising, even where Ctrl-C is held back.

    Once the process has ended, Ctrl-C may not come between the system call that tells the exit code, once, and its
    being kept: the process would be listed as alive for good.
    """

    def join(process: Any, timeout: float | None = None) -> None:
        if _lib.interruptibly(connection.wait, [process.sentinel], timeout):
            _lib.uninterruptibly(kind.join, process, timeout)

    return type(kind.__name__, (kind,), {"join": join})


def _sentinel(process: Any) -> int | None:
    """Returns a descriptor that is readable once a process has ended, whatever it has forked.

    A process's own `sentinel` may be open still in processes that it has forked.
    """
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # an old system; or it has ended, and its own parent knows
        return None


class End:
    """A worker's end of its link: a descriptor that its process has, whichever way it starts."""

    def __init__(self, descriptor: int, terms: Terms) -> None:
        self.descriptor = descriptor
        self.terms = terms

    def __getstate__(self) -> Any:
        return DupFd(self.descriptor), self.terms

    def __setstate__(self, state: tuple[Any, Terms]) -> None:
        descriptor, self.terms = state
        self.descriptor = descriptor.detach()
        os.set_inheritable(self.descriptor, False)


class Tasks:
    """The queue of tasks of one worker.

    Args:
        links: The links.
        place: The number of the worker's link.
        admission: Lets tasks in.

    Attributes:
        place: The same.
        worker: The worker's own number.
        in_hand: The indices of the batches that it was sent and that have not come, by their number.
        is_last: True if it will be asked for nothing more.
    """

    def __init__(self, links: _lib.Links, place: int, admission: Admission) -> None:
        self.place = place
        self.worker = place
        self.in_hand: dict[int, Any] = {}
        self.is_last = False
        self._links = links
        self._admission = admission

    def put(self, task: Any) -> None:
        """Sends a task as soon as it is let in.

        Args:
            task: A number and indices, and the key of samples that are keyed; None for the last.

        Raises:
            Exception: The indices do not pickle.
        """
        if isinstance(task, tuple):
            seq, indices, *key = task
            task = (seq, indices, key[0] if key else None)
            # plain pickling has no hook for integers
            is_plain = type(indices) is list and set(map(type, indices)) <= {int}
            message = pickle.dumps(task, 5) if is_plain else dumps(task)[0]
            send = functools.partial(self._send, seq, indices, message)
            self._admission.add(seq, self.place, send)
            return
        if task is None:
            self.is_last = True
        else:
            self._admission.flush()  # an epoch that was left early: torch's workers make the rest, too
        self._links.send(self.place, dumps(task)[0])

    def _send(self, seq: int, indices: Any, message: bytes) -> None:
        self.in_hand[seq] = indices
        self._links.send(self.place, message)

    def cancel_join_thread(self) -> None:
        """Does nothing: there is no thread."""

    def close(self) -> None:
        """Does nothing: the link is closed with all others."""


class Done:
    """The event that ends all workers."""

    def __init__(self, links: _lib.Links) -> None:
        self._links = links
        self._is_set = False

    def set(self) -> None:
        """Tells the workers."""
        self._is_set = True
        self._links.finish()

    def is_set(self) -> bool:
        """Returns true if the event is set."""
        return self._is_set
