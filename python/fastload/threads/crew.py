"""`Crew`: the worker threads of an iterator, from start to end.

Owns when they start and how they end. They end when the code that they run returns: Python cannot
end a thread. Invariant: while one of them lives the routes are installed, and the interpreter does not
take itself apart.
"""

import logging
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from fastload.threads import routes, worker_info
from fastload.threads.watch import GlobalState
from fastload.threads.worker import Worker

__all__ = ["Crew"]

_log = logging.getLogger("fastload")

_PATIENCE_S = 5.0
_SLICE_S = 0.1

_threads = 1
_crews: "weakref.WeakSet[Crew]" = weakref.WeakSet()


class Crew:
    """Worker threads.

    Args:
        stopping: Set when no more batches are needed.

    Attributes:
        workers: The workers, each in the place of one that has ended, if there was one.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self.workers: list[Worker] = []
        self._stopping = stopping
        self._alive = 0
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._over = False

    def start(
        self,
        workers: list[Worker],
        modules: Iterable[str],
        tell: Callable[[str], None],
        *,
        initialise: bool,
    ) -> None:
        """Starts the threads and waits until each has run `worker_init_fn`.

        Args:
            workers: The workers.
            modules: The modules of their code.
            tell: Called with what that did to the training process.
            initialise: True if there is a `worker_init_fn`, whose traces are removed.
        """
        _note_threads()
        before = GlobalState(accelerators=True) if initialise else None
        self._starting(modules)
        try:
            for worker in workers:
                with self._lock:
                    self._alive += 1
                try:
                    worker.thread.start()
                except BaseException:
                    self.ended()
                    raise
                place = self._free()
                self.workers[place : place + 1] = [worker]
                _crews.add(self)
                while not worker.initialised.wait(_SLICE_S):
                    pass
        finally:
            _give_threads_back()
            self.ended()
        if before is not None and (moved := before.moved()):
            before.restore()
            tell(f"worker_init_fn changed the state of {' and '.join(moved)}; it was restored")

    def _free(self) -> int:
        """Returns the lowest place that no living worker has."""
        alive = [worker.thread.is_alive() for worker in self.workers]
        return [*alive, False].index(False)

    def _starting(self, modules: Iterable[str]) -> None:
        """Counts the starter, until it is done; the first thing that is counted installs the routes."""
        with self._lock:
            first = not self._alive
            self._alive += 1
        if not first:
            return
        try:
            routes.acquire(modules)
        except BaseException:
            with self._lock:
                self._alive -= 1
            raise

    def ended(self) -> None:
        """Counts a thread that is about to end; the last one uninstalls the routes."""
        with self._lock:
            self._alive -= 1
            last = not self._alive
        if last:
            routes.release()

    def native_id(self, number: int) -> int | None:
        """Returns the system's number of a worker's thread; None if it is not known."""
        threads = (worker.thread for worker in self.workers if worker.number == number)
        return next((thread.native_id for thread in threads), None)

    def is_here(self) -> bool:
        """Returns true if the threads belong to this process, not to the one that it was forked from."""
        return os.getpid() == self._pid

    def close(self) -> None:
        """Tells the threads to end and waits some seconds until they have; then says which have not.

        Does nothing the second time, when the interpreter may have taken itself apart.
        """
        if self._over or not self.is_here():
            return
        try:
            self._dismiss()
        except BaseException:  # Ctrl-C; a finalizer is not called again
            self._dismiss()
            raise
        self._over = True
        if worker_info.current() is None:  # not a worker thread that drops an iterator
            self._join()

    def _dismiss(self) -> None:
        """Tells the threads to end; to tell one twice does no harm."""
        self._stopping.set()
        for worker in self.workers:
            worker.tasks.put(None)

    def _join(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        for worker in self.workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))
        for worker in self.workers:
            if worker.thread.is_alive():
                _log.warning("%s; its thread ends when that returns", _whereabouts(worker))

    def busy(self) -> str:
        """Returns what the workers do, in words."""
        alive = [worker for worker in self.workers if worker.thread.is_alive()]
        return ", ".join(f"worker {w.number} is {w.does() or 'idle'}" for w in alive)


def _note_threads() -> None:
    """Notes how many threads an operation of torch's uses where there are no workers."""
    global _threads
    if worker_info.current() is None:
        _threads = torch.get_num_threads()


def _give_threads_back() -> None:
    """Has threads to come use so many again; no thread can do that without doing so itself."""
    other = threading.Thread(
        target=torch.set_num_threads, args=(_threads,), name="fastload-threads"
    )
    other.start()
    other.join()


def _whereabouts(worker: Worker) -> str:
    """Returns where the code is that keeps a thread from ending."""
    frame = sys._current_frames().get(worker.thread.ident or 0)
    place = f", in {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    return f"{worker.thread.name} is still {worker.does() or 'ending'}{place}"


def _at_exit() -> None:
    """Ends all threads before the interpreter takes itself apart; a second Ctrl-C ends the process."""
    threads = [worker.thread for crew in _crews if crew.is_here() for worker in crew.workers]
    try:
        for crew in list(_crews):
            crew.close()
        for thread in threads:
            while thread.is_alive():
                thread.join(_SLICE_S)
    except KeyboardInterrupt:
        _end_now()


def _end_now() -> Any:
    """Ends the process as Ctrl-C ends one that does not handle it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


# Before threads are joined at exit; `concurrent.futures` does the same.
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
