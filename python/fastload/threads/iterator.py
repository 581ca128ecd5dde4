"""`ThreadIter`: torch's iteration with workers, whose workers are threads.

Torch's own code decides which worker makes which batch, when indices are asked for and in which order
batches come; only what starts, feeds, awaits and ends workers is ours.
"""

import functools
import queue
import threading
import time
import weakref
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data._utils.worker import _IterableDatasetStopIteration, _ResumeIteration
from torch.utils.data.dataloader import _BaseDataLoaderIter, _sharding_worker_init_fn

from fastload import _lib
from fastload.iterators.adapted import stand_in
from fastload.iterators.consumer import check_prefetch_factor
from fastload.iterators.learned import Logged
from fastload.iterators.paced import Paced, batch_bytes
from fastload.lowering.memo import Memo
from fastload.lowering.seam import Seam
from fastload.machine.auto import Auto, is_elastic
from fastload.machine.threads import holds_interpreter
from fastload.registry import name
from fastload.resume.worker_state import Keeping
from fastload.threads.copies import Copied, Found, copied
from fastload.threads.crew import Crew
from fastload.threads.meter import Meter
from fastload.threads.watch import GlobalState, Watch
from fastload.threads.worker import Duties, Result, Worker

__all__ = ["ThreadIter"]

_SLICE_S = 0.1
_WEIGHED = 16
"""Of so many batches, one is weighed."""
_LOOKS = 8
"""Waits in an epoch at whose end the global generators are looked at."""


class ThreadIter(Paced):
    """Batches of a dataset in Python, made by threads of this process.

    Args:
        loader: The loader.
        seam: True if samples begin natively.

    Attributes:
        stats: Reads the counters, also after the iterator is gone.

    Raises:
        AssertionError: `prefetch_factor` is 0.
    """

    _kind = "worker threads"
    _data_queue: Any
    _workers_done_event: Any
    _interruptibly = staticmethod(_lib.interruptibly)  # modules may be gone when this is deleted

    def __init__(self, loader: Any, *, seam: bool) -> None:
        self._loader = weakref.ref(loader)
        self._log = Logged.of(loader)
        loader = stand_in(loader)
        self._continue(loader)
        keeping = self._keeping(loader)  # says where the cursor's states lie
        _BaseDataLoaderIter.__init__(self, loader)
        check_prefetch_factor(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._workers: list[Any] = []  # looked at by loaders that end worker processes themselves
        self._worker_init_fn = loader.worker_init_fn
        if isinstance(self._dataset, IterDataPipe | MapDataPipe):
            self._worker_init_fn = functools.partial(
                _sharding_worker_init_fn, loader.worker_init_fn, self._world_size, self._rank
            )
        self._workers_done_event = threading.Event()
        self._shutdown = False
        # Not a SimpleQueue: until Python 3.12 a signal in the last moment of its timeout makes it wait for ever.
        self._data_queue = queue.Queue()
        self._meter = Meter(self._log)
        self._clocks = time.perf_counter(), time.process_time()
        self.stats = self._meter.read
        self._start(loader, keeping, seam=seam)
        self._reset(loader, first_iter=True)

    def _start(self, loader: Any, keeping: Keeping | None, *, seam: bool) -> None:
        """Copies the dataset for each worker and starts the threads."""
        parts = self._dataset, self._collate_fn, self._worker_init_fn
        first = copied(*parts)
        if first.copies.handles and self._num_workers > 1:
            self._num_workers = self._workers_of_shared(first.copies.handles[0], loader.num_workers)
        if first.copies.handles:
            self.most_workers = 1
        sets = [first, *(copied(*parts) for _ in range(self._num_workers - 1))]
        # as it is now, for workers that are started later
        self._pristine = copied(*parts) if is_elastic(loader) else first
        self._seam = seam
        self._watch = Watch(first.copies.shared)
        self._duties = Duties(
            kind=self._dataset_kind,
            auto_collation=self._auto_collation,
            drop_last=self._drop_last,
            base_seed=int(self._base_seed),
            shared_seed=self._shared_seed,
            number=self._num_workers,
            pinned=bool(self._pin_memory),
            device=torch.cuda.current_device() if torch.cuda.is_initialized() else None,  # type: ignore[no-untyped-call]
            grad=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            results=self._data_queue,
            stopping=self._workers_done_event,
            keeping=keeping,
            policy=loader._ledger.policy if loader._ledger is not None else None,
            tell=self._log,
        )
        self._crew = Crew(self._workers_done_event)
        workers = [self._worker(number, each) for number, each in enumerate(sets)]
        self._index_queues = [worker.tasks for worker in workers]
        self._start_threads(workers)

    def _worker(self, number: int, own: Copied) -> Worker:
        dataset = Seam(own.dataset, Memo()) if self._seam else own.dataset
        parts = dataset, own.collate_fn, own.worker_init_fn
        return Worker(self._duties, number, *parts, self._crew.ended)

    def _start_threads(self, workers: list[Worker]) -> None:
        modules = self._pristine.copies.modules
        initialise = self._worker_init_fn is not None
        self._crew.start(workers, modules, self._log, initialise=initialise)

    def _start_worker(self, worker: int, among: int) -> tuple[int, Any]:
        own = copied(*self._pristine[1:])
        self._duties = self._duties._replace(number=among)
        started = self._worker(worker, own)
        self._start_threads([started])
        return self._crew.workers.index(started), started.tasks

    def _release_worker(self, place: int) -> bool:
        return not self._crew.workers[place].thread.is_alive()

    def _ready(self) -> int:
        return int(self._data_queue.qsize())

    def _free_share(self) -> float:
        """Returns the fraction of the time in which cores were idle; otherwise a worker waits for the interpreter."""
        now_s, busy_s = time.perf_counter(), time.process_time()
        elapsed_s, passed_s = now_s - self._clocks[0], busy_s - self._clocks[1]
        self._clocks = now_s, busy_s
        return max(0.0, 1 - passed_s / max(elapsed_s, 1e-6)) if holds_interpreter() else 1.0

    def _is_here(self) -> bool:
        return self._crew.is_here()

    def _workers_of_shared(self, handle: Found, number: int) -> int:
        """Returns how many workers a dataset gets that threads have to share parts of."""
        what = f"{handle.path} ({name(type(handle.thing))}) has a file position or native handle"
        if isinstance(number, Auto):
            self._log(f"{what} that threads cannot share, so one worker thread is used")
            return 1
        self._log(f"{what}, which {int(number)} worker threads share")
        return int(number)

    def _step(self) -> Any:
        """Returns the next batch.

        Raises:
            RuntimeError: Nothing within `timeout`, or the threads are in another process: then nothing of theirs is
                touched, as a lock that one of them held is held for ever.
        """
        if not self._crew.is_here():
            msg = (
                "this iterator was made before a fork: its worker threads run in the parent process; "
                "iterate the loader again here"
            )
            raise RuntimeError(msg)
        return super()._step()

    def _get_data(self) -> Any:
        """Returns what a worker has finished, as (task, batch)."""
        try:
            result = self._data_queue.get_nowait()
            self._meter.was_ready()
        except queue.Empty:
            result = self._awaited()
        thread = self._crew.native_id(result.worker) if self._stages is not None else None
        self._count(result.task, result.cost, result.finished_s, result.worker, thread)
        if isinstance(result.batch, _IterableDatasetStopIteration):
            self._ended[result.worker] = result.moved
            return result.task, result.batch
        if isinstance(result.task, _ResumeIteration):
            self._begun[result.worker] = result.moved
            return result.task, None
        return result.task, result.batch if result.moved is None else result

    def _awaited(self) -> Result:
        """Waits for a worker, and looks whether global generators move meanwhile."""
        before = GlobalState() if self._looks > 0 else None
        since = time.perf_counter()
        result = self._wait(since)
        self._meter.waited(since, result.finished_s)
        if before is not None:
            self._looks -= 1
            for moved in before.moved():
                self._log(f"{moved} moved while next() waited: worker threads draw from it")
        return result

    def _wait(self, since: float) -> Result:
        while True:
            left = _SLICE_S
            if self._timeout > 0:
                left = min(left, since + self._timeout - time.perf_counter())
                if left <= 0:
                    msg = (
                        f"DataLoader timed out after {self._timeout} seconds: {self._crew.busy()}; "
                        "raise timeout or num_workers"
                    )
                    raise RuntimeError(msg)
            try:
                return self._data_queue.get(timeout=left)  # type: ignore[no-any-return]
            except queue.Empty:
                _lib.check_interrupts()

    def _process_data(self, data: Any, *worker: Any) -> Any:
        if isinstance(data, Result):
            self._keep(data.worker, data.moved)
            data = data.batch
        self._meter.batches += 1
        if self._tuner is not None and self._meter.batches % _WEIGHED == 0:
            self._pace.weighed(batch_bytes(data))
        for path in self._watch.changed():
            self._log(f"{path}, which worker threads share, was changed in place")
        return super()._process_data(data, *worker)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._looks = _LOOKS
        super()._reset(loader, first_iter)

    def _shutdown_workers(self) -> None:
        """Ends the threads, and waits some seconds for what they are doing."""
        crew = self.__dict__.get("_crew")
        if crew is not None:
            self._shutdown = True
            self._interruptibly(crew.close)  # it waits; no batch is in hand
