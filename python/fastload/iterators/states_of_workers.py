"""`StatesOfWorkers`: torch's iteration with workers, resumed where samples are drawn by workers.

Owns the states of the workers' generators and datasets: which worker said what, at which batch it counts, and with what
an epoch is begun or continued.
"""

import logging
import pickle
from typing import Any

from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from fastload.faults import REASONS, fault_of, one_line
from fastload.machine.auto import is_elastic
from fastload.resume.iterator import Resumable
from fastload.resume.stateful import report_unkept
from fastload.resume.worker_state import Keeping, Moved
from fastload.sizes import length_of

__all__ = ["StatesOfWorkers"]

_log = logging.getLogger("fastload")


class StatesOfWorkers(Resumable, _MultiProcessingDataLoaderIter):
    """Torch's iteration, whose workers say with batches what they would go on with."""

    _every = 0
    _total: int | None = None
    _made_by = 0
    """The worker of the batch that was taken last."""

    def _continue(self, loader: Any) -> None:
        self._generators: dict[int, bytes] = {}
        self._datasets: dict[int, bytes] = {}
        self._keeps_datasets = True
        self._ended: dict[int, Moved | None] = {}  # what workers said at the end of their streams
        self._begun: dict[int, Moved | None] = {}  # and, if they persist, when they began an epoch
        self._draws_from = "keys" if is_elastic(loader) else "workers"
        super()._continue(loader)
        self._dropped_of = [] if self._restored is None else list(self._restored.from_workers)

    def _keeping(self, loader: Any) -> Keeping | None:
        """Returns the states of generators that workers keep; None where samples are keyed."""
        if is_elastic(loader):
            return None
        self._every = int(loader.snapshot_every_n_steps)
        if self._every and (self._is_iterable or not loader.in_order):
            self._every = 1  # how many batches a worker makes is not known
        self._rewinds = self._every > 0 and (self._is_iterable or loader.in_order)
        if loader.persistent_workers and self._every > 1:
            # the next epoch begins with what is said at the end of this one
            self._total = length_of(loader._index_sampler)
        restored = self._restored
        if restored is None:
            return Keeping(self._every, 0, self._total, {}, {})
        self._generators, self._datasets = dict(restored.workers), dict(restored.datasets)
        pickled = {each: pickle.loads(saved) for each, saved in restored.datasets.items()}
        return Keeping(self._every, restored.taken, self._total, restored.workers, pickled)

    def _begin_states(self) -> None:
        """Keeps the states in which persistent workers begin an epoch, in place of those of the last one."""
        self._ended.clear()
        begun = {worker: moved for worker, moved in self._begun.items() if moved is not None}
        self._begun.clear()
        self._generators = {w: m.generators for w, m in begun.items() if m.generators is not None}
        self._datasets = {w: m.dataset for w, m in begun.items() if m.dataset is not None}
        self._cursor.keep(self._generators, self._datasets)

    def _keep(self, worker: int, moved: Moved | None) -> None:
        """Notes what a worker says with a batch that is handed over."""
        self._cursor.last_worker = worker
        if moved is not None and moved.generators is not None:
            self._generators[worker] = moved.generators
        if moved is not None and moved.error is not None:
            self._keeps_datasets = False
            self._datasets.clear()  # a part of them is no state
            if self._is_iterable:  # read again from the start, with generators of the start
                self._cursor.keep({}, {})
            again = "reads it again" if self._is_iterable else "starts it anew"
            report_unkept(type(self._dataset), moved.error, again)
        if moved is not None and moved.dataset is not None and self._keeps_datasets:
            self._datasets[worker] = moved.dataset

    def _keep_states(self) -> None:
        """Keeps the workers' states at the batches where snapshots are due.

        An iterable dataset without a state is read again from the start of the epoch: the states of that remain.
        """
        taken = self._cursor.taken
        if self._is_iterable and not self._datasets and not self._cursor.is_finished:
            return
        if self._every and (taken % self._every == 0 or taken == self._total):
            self._cursor.keep(self._generators, self._datasets)

    def _was_raised(self, error: Exception) -> bool:
        """Returns true if an error is that of a bad sample in a batch that is made again: it was raised there before.

        Errors of an iterable dataset are raised again, because they may end its iterator.
        """
        is_known = self._to_drop > 0 and not self._is_iterable and fault_of(error) in REASONS
        if is_known:
            _log.warning(
                "resuming: a batch that is made again and dropped failed: %s", one_line(error)
            )
        return is_known

    def _is_dropped(self) -> bool:
        """Returns true if a batch was handed over before the state was saved; it was made again."""
        if self._dropped_of:
            if self._dropped_of[self._made_by] == 0:
                return False
            self._dropped_of[self._made_by] -= 1
        self._to_drop -= 1
        return True

    def _process_data(self, data: Any, *worker: Any) -> Any:
        self._made_by = worker[0] if worker else 0
        return super()._process_data(data, *worker)  # type: ignore[no-untyped-call]
