"""torch's iterators, adapted: the loader that they are given, the bad samples of batches, and a `sample_mask` in each.

Owns the memory of which indices were asked for, from the pull of a batch to its delivery, and the count of bad
samples. Both are taken where batches are consumed: workers see the dataset and the collate function as they are.
"""

import functools
from collections.abc import Iterator
from typing import Any, TypeVar

from torch.utils.data import default_collate
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from fastload.bad_samples import Ledger, tolerate
from fastload.batching.sample_mask import marks_of, with_mask
from fastload.collate import stacking
from fastload.draws import keyed
from fastload.iterators.consumer import ConsumerIter
from fastload.lowering import collators
from fastload.machine.auto import Auto, is_auto

__all__ = ["check_order", "marked", "stand_in"]

_Kind = TypeVar("_Kind", bound=_BaseDataLoaderIter)


def stand_in(loader: Any, **changes: Any) -> Any:
    """Returns a loader for one of torch's iterators, which reads its attributes and leaves it.

    It collates natively where `collate_fn` is recognised; and where that is torch's default, an error
    about samples of different shapes says what to write instead. It has the number of workers of now.
    """
    other = object.__new__(type(loader))
    collate_fn = loader.collate_fn
    if collate_fn is default_collate:
        collate_fn = stacking.default_collate
    else:
        collate_fn = collators.native(collate_fn) or collate_fn
    changes["collate_fn"] = collate_fn
    if loader._workers_now is not None and is_auto(loader):
        changes["num_workers"] = Auto(loader._workers_now)
    other.__dict__.update(loader.__dict__, **changes)
    return other


class _Tolerant(_BaseDataLoaderIter):
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


class _Marked(_BaseDataLoaderIter):
    """Adds the mask to each batch; `_at` says which batch was handed over last."""

    def _next_index(self) -> Any:
        index = super()._next_index()  # type: ignore[no-untyped-call]
        if isinstance(index, Iterator):  # which can be read once
            index = list(index)
        self.__dict__.setdefault("_marks", {})[self._pulled()] = marks_of(index)
        return index

    def _next_data(self) -> Any:
        try:
            batch: Any = super()._next_data()
        except KeyboardInterrupt:  # the batch comes at the next call
            raise
        except BaseException:  # an error takes the place of its batch
            self._taken_marks()
            raise
        marks = self._taken_marks()
        if isinstance(self, _Tolerant):
            marks = self._ledger.marks(marks)
        return with_mask(batch, marks, pinned=self._pin_memory)

    def _taken_marks(self) -> bytes:
        marks: bytes = self.__dict__.get("_marks", {}).pop(self._at(), b"")
        return marks

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._marks: dict[int, bytes] = {}
        super()._reset(loader, first_iter)

    def _pulled(self) -> int:
        return 0

    def _at(self) -> int:
        return 0


class _MarkedAhead(_Marked):
    """The same where indices are taken ahead, and batches come in their order."""

    _send_idx: int
    _rcvd_idx: int

    def _pulled(self) -> int:
        return self._send_idx

    def _at(self) -> int:
        return self._rcvd_idx - 1


@functools.cache
def marked(kind: type[_Kind], *, wanted: bool, tolerant: bool = False) -> type[_Kind]:
    """Returns a kind of iterator of torch's that adds a mask to each batch, if that is wanted.

    Args:
        kind: The kind.
        wanted: True if batches have a mask.
        tolerant: True if its batches come with bad samples, which are counted.
    """
    bases: tuple[type, ...] = (_Tolerant, kind) if tolerant else (kind,)
    if wanted:
        is_ahead = issubclass(kind, _MultiProcessingDataLoaderIter | ConsumerIter)
        bases = (_MarkedAhead if is_ahead else _Marked, *bases)
    elif not tolerant:
        return kind
    return type(f"{'Marked' * wanted}{'Tolerant' * tolerant}{kind.__name__}", bases, {})


def check_order(loader: Any) -> None:
    """Refuses workers that hand batches over as they are finished.

    Raises:
        ValueError: They do.
    """
    if not loader.in_order:
        msg = (
            "batches with a `sample_mask` (sample_mask=True, on_error='mask' or remainder='mask') need in_order=True: "
            "workers that hand batches over as they finish do not say which batch came"
        )
        raise ValueError(msg)
