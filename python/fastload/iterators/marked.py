"""torch's iterators, with a `sample_mask` in each batch.

Owns the memory of which indices were asked for, from the pull of a batch to its delivery. The mask is made
where batches are consumed: workers see the dataset and the collate function as they are.
"""

import functools
from collections.abc import Iterator
from typing import Any, TypeVar

from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

from fastload.batching.sample_mask import marks_of, with_mask
from fastload.iterators.consumer import ConsumerIter
from fastload.iterators.tolerant import Tolerant

__all__ = ["check_order", "marked"]

_Kind = TypeVar("_Kind", bound=_BaseDataLoaderIter)


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
        finally:  # an error takes the place of its batch, too
            marks = self.__dict__.get("_marks", {}).pop(self._at(), b"")
        if isinstance(self, Tolerant):
            marks = self._ledger.marks(marks)
        return with_mask(batch, marks, pinned=self._pin_memory)

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
    bases: tuple[type, ...] = (Tolerant, kind) if tolerant else (kind,)
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
            "a sample_mask says which samples of each batch count, and workers with "
            "in_order=False do not say which batch came: leave in_order at True"
        )
        raise ValueError(msg)
