"""Worker processes: torch's iterator and torch's worker loop, with memory and messages of our own.

Torch decides what is asked of which worker and when; its `_worker_loop` runs in the workers. Ours is what
lies between: one socket per worker, and arenas of shared memory whose slots batches are written into and
tensors are made over. It goes in where torch asks a start method's context for queues, events and processes.
"""

import functools
import sys
from typing import Any

from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from fastload.bad_samples import in_workers
from fastload.draws import keyed
from fastload.iterators.adapted import marked, stand_in
from fastload.lowering.seam import Seam
from fastload.processes.context import UnpicklableError
from fastload.resume.iterator import Resumable

__all__ = ["UnpicklableError", "iterate"]


def iterate(
    loader: Any, *, seam: bool, marks: bool, may_take_over: bool
) -> _MultiProcessingDataLoaderIter:
    """Starts worker processes for a loader; where there is no link of ours, with torch's queues.

    Args:
        loader: The loader.
        seam: True if its samples begin natively.
        marks: True if each batch has a mask of the samples that count.
        may_take_over: True if the consumer may make batches itself, if workers cannot or do not pay.

    Raises:
        UnpicklableError: Workers have to be given something that does not pickle; none was started.
    """
    changes: dict[str, Any] = {"dataset": Seam(loader.dataset, loader._memo)} if seam else {}
    tolerant = loader._ledger is not None
    if tolerant:
        policy = loader._ledger.policy
        changes["worker_init_fn"] = functools.partial(
            in_workers, policy, keyed.saved, loader.worker_init_fn
        )
    iterator: _MultiProcessingDataLoaderIter
    if sys.platform in ("linux", "darwin"):
        from fastload.processes.iterator import ProcessIter

        iterator = marked(ProcessIter, wanted=marks, tolerant=tolerant)(
            loader, may_take_over=may_take_over, **changes
        )
    else:
        iterator = marked(_QueueIter, wanted=marks, tolerant=tolerant)(stand_in(loader, **changes))
    return iterator


class _QueueIter(Resumable, _MultiProcessingDataLoaderIter):
    """Torch's own iterator, which says how many batches were taken, and nothing of its workers.

    So they make again what they made, from the start of the epoch.
    """

    _draws_from = "workers"

    def __init__(self, loader: Any) -> None:
        self._continue(loader)
        super().__init__(loader)

    def _next_data(self) -> Any:
        try:
            while self._to_drop > 0:
                self._to_drop -= 1
                super()._next_data()  # type: ignore[no-untyped-call]
            batch = super()._next_data()  # type: ignore[no-untyped-call]
        except StopIteration:
            self._cursor.is_finished = True
            raise
        self._cursor.taken += 1
        return batch
