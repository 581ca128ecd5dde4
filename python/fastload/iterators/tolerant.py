"""torch's iterators, whose batches come with the bad samples that were left out of them.

Owns the hand-over: what workers, or this thread, made is counted in the loader's ledger, and the batch alone
goes to the training.
"""

from typing import Any

from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

from fastload.bad_samples import Ledger, tolerate
from fastload.draws import keyed

__all__ = ["Tolerant"]


class Tolerant(_BaseDataLoaderIter):
    """Counts the bad samples of each batch that is handed over."""

    _cursor: Any
    _ledger: Ledger

    def __init__(self, loader: Any, **arguments: Any) -> None:
        self._ledger = loader._ledger
        restored = loader._restored
        self._ledger.begin(() if restored is None else restored.bad_samples)
        super().__init__(loader, **arguments)
        if isinstance(self, _SingleProcessDataLoaderIter):
            fetcher, policy = self._dataset_fetcher, self._ledger.policy
            tolerate(fetcher, self._dataset, policy, save=keyed.saved)

    def _next_data(self) -> Any:
        try:
            fetched: Any = super()._next_data()
        except StopIteration:
            self._ledger.end()
            raise
        return self._ledger.taken(fetched, self._cursor.taken - 1)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        super()._reset(loader, first_iter)
        if not first_iter:
            self._ledger.begin()
