"""`get_worker_info()`, answered for the thread that asks, also where it was imported by name.

Torch's own collation asks it, too, to put batches for another process into shared memory; that is
told that there is no worker.
"""

import dataclasses
import sys
from typing import Any

from torch.utils.data import get_worker_info
from torch.utils.data._utils import collate
from torch.utils.data._utils import worker as torch_worker

from fastload.collate import shared
from fastload.pictures.swap import Swap
from fastload.threads import seat
from fastload.threads.streams import Streams

__all__ = ["SWAP", "answer", "worker_info"]

_TO_SHARE = {collate.collate_tensor_fn.__code__, shared.allocator.__code__}
"""Who asks whether a batch has to reach another process."""


def worker_info(worker: int, number: int, seed: int, dataset: Any, streams: Streams) -> Any:
    """Returns torch's description of a worker that is a thread."""
    about = {"id": worker, "num_workers": number, "seed": seed, "dataset": dataset}
    kind = torch_worker.WorkerInfo
    if dataclasses.is_dataclass(kind):  # which has these fields since torch 2.13
        about |= {"rng": streams.rng(), "worker_method": "thread"}
    return kind(**about)


def answer() -> Any:
    """Returns what `get_worker_info()` returns here."""
    worker = seat.here()
    if worker is None:
        return torch_worker._worker_info
    asks = sys._getframe(2).f_code
    return None if asks in _TO_SHARE else worker.info


def _stub() -> Any:
    from fastload.threads.asked import answer

    return answer()


SWAP = Swap(get_worker_info, _stub)
