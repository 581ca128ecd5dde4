"""`Worker`: one of torch's workers, run by a thread.

Does what torch's worker processes do, in their order: seeds, `get_worker_info()`, `worker_init_fn`,
then batches of the indices it is sent. Refers to nothing that belongs to the iterator, so that an
iterator can be dropped while its threads are busy.
"""

import contextvars
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sized
from queue import Queue, SimpleQueue
from typing import Any, NamedTuple

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import IterDataPipe
from torch.utils.data._utils import pin_memory
from torch.utils.data._utils.worker import _IterableDatasetStopIteration, _ResumeIteration
from torch.utils.data.dataloader import _DatasetKind
from torch.utils.data.graph_settings import apply_random_seed

from fastload.bad_samples import OnError, tolerate
from fastload.draws.keyed import Key
from fastload.iterators.cost import Cost, Watch
from fastload.machine.threads import RenewedLock
from fastload.resume.worker_state import Keeping, Moved, WorkerState
from fastload.threads import worker_info
from fastload.threads.streams import Streams
from fastload.threads.torch_streams import Routed

__all__ = ["Duties", "Result", "Worker"]

# torch walks a graph of datapipes by a hook that it sets on their class: one thread at a time.
_walking_pipes = RenewedLock()

_MANY = 8
"""Indices that a message names."""


class Result(NamedTuple):
    """The result of one task of a worker.

    Attributes:
        task: The number of the batch, or the resumption that is confirmed.
        batch: The batch, a failure, or the end of an iterable dataset.
        finished_s: When.
        cost: The cost since the last result.
        worker: The worker that has finished it.
        moved: The changed state of the worker, to be kept.
    """

    task: Any
    batch: Any
    finished_s: float
    cost: Cost
    worker: int = 0
    moved: Moved | None = None


class Duties(NamedTuple):
    """The settings that the workers of an iterator share.

    Attributes:
        kind: Torch's kind of the dataset.
        auto_collation: True if a task is a list of indices.
        drop_last: True if a last batch that is too short is dropped.
        base_seed: The iterator's.
        shared_seed: That of data pipes.
        number: Number of workers.
        pinned: True if batches are page-locked.
        device: The CUDA device of the thread that iterates; None without one.
        grad: True if operations of that thread record gradients; torch keeps it by thread, as the next.
        inference: True if it is in inference mode.
        results: Takes what is finished.
        stopping: Set when no more batches are needed.
        keeping: The generators of workers that are kept; None where samples are keyed.
        policy: The policy for bad samples; None to raise their errors.
        tell: Called with what the worker does against the rules.
    """

    kind: int
    auto_collation: bool
    drop_last: bool
    base_seed: int
    shared_seed: int | None
    number: int
    pinned: bool
    device: int | None
    grad: bool
    inference: bool
    results: "Queue[Result]"
    stopping: threading.Event
    keeping: Keeping | None
    policy: OnError | None
    tell: Callable[[str], None]


class _Left(BaseException):
    """Ends a batch that is no longer needed."""


class Failure(ExceptionWrapper):
    """The exception that is being handled, on its way to the consumer.

    Re-raised as torch re-raises those of worker processes, with a note that names worker and sample.

    Args:
        where: The place, in torch's words: `"in DataLoader worker thread 1"`.
        note: The work of the worker.
    """

    def __init__(self, where: str, note: str) -> None:
        kind, error, trace = sys.exc_info()
        if isinstance(error, Exception):
            super().__init__(where=where)  # type: ignore[no-untyped-call]
        else:  # it would end a process
            message = f"the dataset's code raised {kind.__name__ if kind else None}: {error}"
            wrapped = RuntimeError(message)
            super().__init__((RuntimeError, wrapped, trace), where)  # type: ignore[no-untyped-call]
        self._note = note

    def reraise(self) -> None:
        """Raises the exception.

        Raises:
            Exception: One of its type whose message is the worker's traceback; RuntimeError if its type
                takes no message.
        """
        try:
            super().reraise()  # type: ignore[no-untyped-call]
        except Exception as error:
            error.add_note(self._note)
            raise


class Worker:
    """A worker and its thread.

    Args:
        duties: The settings that all workers share.
        number: Its own number.
        dataset: Its copy of the dataset.
        collate_fn: Its copy.
        init_fn: Its copy of `worker_init_fn`.
        ended: Called in the thread when it is about to end.

    Attributes:
        tasks: Takes (task, indices), a resumption, or None to end.
        number: Its own number.
        thread: The thread.
        initialised: Set when `worker_init_fn` is done.
        doing: Its present work, in words, or the sample that it makes, as (index,).
    """

    def __init__(
        self,
        duties: Duties,
        number: int,
        dataset: Any,
        collate_fn: Any,
        init_fn: Any,
        ended: Callable[[], None],
    ) -> None:
        self.tasks: SimpleQueue[Any] = SimpleQueue()
        self.initialised = threading.Event()
        self.doing: str | tuple[Any] = ""
        self.number = number
        self._duties = duties
        self._where = f"in DataLoader worker thread {number}"
        self._dataset = dataset
        self._collate_fn = collate_fn
        self._init_fn = init_fn
        self._ended = ended
        self._keyed: tuple[Key, Any, int] | None = None
        self.thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._run,),
            name=f"fastload-worker-{number}",
            daemon=True,
        )

    def _run(self) -> None:
        # One thread for operations, in this thread and, until the starter corrects it, in new ones;
        # which a thread finds out at its first question.
        torch.set_num_threads(1)
        torch.get_num_threads()
        duties = self._duties
        self._streams = streams = Streams(duties.base_seed, self.number)
        keeping = duties.keeping or Keeping(0, 0, None, {}, {})
        self._state = WorkerState(keeping, self.number, duties.number, lambda: streams.generators)
        try:
            with (
                torch.inference_mode(duties.inference),
                torch.set_grad_enabled(duties.grad),
                Routed(streams, duties.tell),
            ):
                self._serve(self._initialise())
        finally:
            worker_info.clear()
            self.initialised.set()
            self._dataset = self._collate_fn = self._init_fn = None
            self._ended()

    def _sit(self, streams: Streams) -> None:
        seed, duties = self._duties.base_seed + self.number, self._duties
        if isinstance(self._dataset, IterDataPipe):
            self._seed_pipe(duties.shared_seed)
        info = worker_info.describe(self.number, duties.number, seed, self._dataset, streams)
        worker_info.run_as(worker_info.ThreadWorker(info, streams))

    def _initialise(self) -> Any:
        """Returns torch's fetcher of batches, or the failure that takes the first batch's place."""
        try:
            self._sit(self._streams)
            if self._duties.device is not None:
                torch.cuda.set_device(self._duties.device)
            if self._init_fn is not None:
                self.doing = "running worker_init_fn"
                self._init_fn(self.number)
            self.initialised.set()
            return self._fetcher()
        except BaseException:
            return self._failure()

    def _fetcher(self) -> Any:
        self.doing = "starting to iterate the dataset"
        duties = self._duties
        parts = self._dataset, duties.auto_collation, self._collate_fn, duties.drop_last
        fetcher = self._state.open(_DatasetKind.create_fetcher, duties.kind, *parts)
        if duties.policy is not None:
            tolerate(fetcher, self._dataset, duties.policy, repeat=self._repeat, save=self._saved)
        return fetcher

    def _saved(self) -> Callable[[], None]:
        generators = self._streams.generators
        return functools.partial(generators.restore, generators.save())

    def _repeat(self, _: Any) -> None:
        """Keys the generators again for the sample that is being made."""
        if self._keyed is not None:
            self._streams.begin_sample(*self._keyed)

    def _serve(self, fetcher: Any) -> None:
        """Makes batches until it is asked to end."""
        results, ended = self._duties.results, False
        self.initialised.set()
        self.doing = ""
        watch = Watch()
        state = self._state
        while (task := self.tasks.get()) is not None:
            watch.run()
            if self._duties.stopping.is_set():
                continue
            if isinstance(task, _ResumeIteration):
                begun, now_s = state.next_epoch(), time.perf_counter()
                results.put(Result(task, None, now_s, watch.lap(), self.number, begun))
                fetcher, ended = self._resume(task), False
            elif not ended:
                try:
                    state.begin()
                    data = self._made(fetcher, *task[1:])
                    if data is None:
                        continue
                    moved = state.moved(task[0])
                except BaseException:  # without a result next() would wait for ever
                    data, moved = (self._failure(),), None
                ended = isinstance(data[0], _IterableDatasetStopIteration)
                cost = watch.lap()
                results.put(Result(task[0], data[0], watch.lapped_s, cost, self.number, moved))
                del data
            del task
            self.doing = ""

    def _resume(self, task: Any) -> Any:
        try:
            if isinstance(self._dataset, IterDataPipe):
                self._seed_pipe(task.seed)
            return self._fetcher()
        except BaseException:
            return self._failure()

    def _made(self, fetcher: Any, indices: Any, key: Key | None = None) -> tuple[Any] | None:
        """Returns a batch, a failure, or the end of an iterable dataset; None if it is no longer needed."""
        if isinstance(fetcher, Failure):
            return (fetcher,)
        try:
            batch = fetcher.fetch(self._noted(indices, key))
        except _Left:
            return None
        except BaseException as error:
            if isinstance(error, StopIteration) and self._duties.kind == _DatasetKind.Iterable:
                return (_IterableDatasetStopIteration(self.number),)
            return (self._failure(),)
        if not self._duties.pinned:
            return (batch,)
        try:
            return (pin_memory.pin_memory(batch),)  # type: ignore[no-untyped-call]
        except Exception:
            where = f"in pin memory thread for device {self._duties.device}"
            return (Failure(where, f"while worker {self.number} page-locked a batch"),)

    def _noted(self, indices: Any, key: Key | None) -> Any:
        """Returns indices whose iteration notes which sample is made, and seeds the generators for it."""
        if self._duties.kind == _DatasetKind.Iterable:
            self.doing = "iterating the dataset"
            return indices
        if not self._duties.auto_collation:
            self.doing = f"making sample {_named(indices)}"
            if key is not None:
                self._keyed = key, indices, 0
                self._streams.begin_sample(key, indices, 0)
            return indices
        if getattr(self._dataset, "__getitems__", None):
            self.doing = f"making samples {_named(indices)}"
            if key is not None:
                self._streams.begin_batch(key)
            return indices
        return self._followed(indices, key)

    def _followed(self, indices: Any, key: Key | None) -> Iterator[Any]:
        """Yields the indices of a batch; raises when it is no longer needed."""
        for place, index in enumerate(indices):
            if self._duties.stopping.is_set():
                raise _Left
            self.doing = (index,)
            if key is not None:
                self._keyed = key, index, place
                self._streams.begin_sample(key, index, place)
            yield index
        self.doing = f"collating samples {_named(indices)}"
        if key is not None:
            self._streams.begin_batch(key)

    def does(self) -> str:
        """Returns its present work, in words."""
        doing = self.doing
        return doing if isinstance(doing, str) else f"making sample {_named(*doing)}"

    def _failure(self) -> Failure:
        return Failure(self._where, f"while worker {self.number} was {self.does()}")

    def _seed_pipe(self, seed: int | None) -> None:
        assert seed is not None
        shared = torch.Generator().manual_seed(seed)
        with _walking_pipes.held():
            self._dataset = apply_random_seed(self._dataset, shared)


def _named(indices: Any) -> str:
    """Returns indices in few words."""
    try:
        if not isinstance(indices, Sized) or isinstance(indices, str) or len(indices) <= _MANY:
            return repr(indices)
    except Exception:  # a scalar tensor has no length, and a user's class may fail at anything
        return f"a {type(indices).__qualname__}"
    try:
        first = ", ".join(repr(indices[n]) for n in range(_MANY))  # type: ignore[index]
    except Exception:
        return f"{len(indices)} samples"
    return f"[{first}, ...] ({len(indices)} in all)"
