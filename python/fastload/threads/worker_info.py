"""The worker that a thread runs, and `get_worker_info()` in it, also where that was imported by name.

Owns the thread-local variable that distinguishes worker threads from all others. Torch's own collation calls
`get_worker_info()`, too, to put batches for another process into shared memory; in worker threads it gets None.
"""

import dataclasses
import sys
import threading
from typing import Any, NamedTuple

from torch.utils.data import get_worker_info
from torch.utils.data._utils import collate
from torch.utils.data._utils import worker as torch_worker

from fastload.collate.stacking import allocator
from fastload.pictures.swap import Swap
from fastload.threads.streams import Streams

__all__ = ["SWAP", "ThreadWorker", "answer", "clear", "current", "describe", "run_as"]

_SHARING_CALLERS = {collate.collate_tensor_fn.__code__, allocator.__code__}
"""Callers that ask whether a batch has to reach another process."""


class ThreadWorker(NamedTuple):
    """A worker.

    Attributes:
        info: Torch's `WorkerInfo`.
        streams: Its generators.
    """

    info: Any
    streams: Streams


class _Local(threading.local):
    worker: ThreadWorker | None = None


_local = _Local()


def current() -> ThreadWorker | None:
    """Returns the worker of the calling thread; None if it runs none."""
    return _local.worker


def run_as(worker: ThreadWorker) -> None:
    """Makes the calling thread run a worker."""
    _local.worker = worker


def clear() -> None:
    """Makes the calling thread run no worker."""
    _local.worker = None


def describe(worker: int, number: int, seed: int, dataset: Any, streams: Streams) -> Any:
    """Returns torch's description of worker `worker` of `number`, which is a thread."""
    about = {"id": worker, "num_workers": number, "seed": seed, "dataset": dataset}
    kind = torch_worker.WorkerInfo
    if dataclasses.is_dataclass(kind):  # which has these fields since torch 2.13
        about |= {"rng": streams.rng(), "worker_method": "thread"}
    return kind(**about)


def answer() -> Any:
    """Returns the result of `get_worker_info()` in the calling thread."""
    worker = current()
    if worker is None:
        return torch_worker._worker_info
    caller = sys._getframe(2).f_code
    return None if caller in _SHARING_CALLERS else worker.info


def _stub() -> Any:
    from fastload.threads.worker_info import answer  # its code runs with torch's globals

    return answer()


SWAP = Swap(get_worker_info, _stub)
