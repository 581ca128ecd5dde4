"""torch's iterators, with a `sample_mask` in each batch.

Owns the memory of which indices were asked for, from the pull of a batch to its delivery. The mask is made
where batches are consumed: workers see the dataset and the collate function as they are.
"""

from typing import Any

from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from fastload._iterators import FallbackIter, SeamIter, stand_in
from fastload.batching.sample_mask import marks_of, with_mask

__all__ = ["marked"]


class _Marked(_BaseDataLoaderIter):
    """Adds the mask to each batch; `_at` says which batch was handed over last."""

    def _next_index(self) -> Any:
        index = super()._next_index()  # type: ignore[no-untyped-call]
        self.__dict__.setdefault("_marks", {})[self._pulled()] = marks_of(index)
        return index

    def _next_data(self) -> Any:
        try:
            batch: Any = super()._next_data()
        finally:  # an error takes the place of its batch, too
            marks = self.__dict__.get("_marks", {}).pop(self._at(), b"")
        return with_mask(batch, marks, pinned=self._pin_memory)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._marks: dict[int, bytes] = {}
        super()._reset(loader, first_iter)

    def _pulled(self) -> int:
        return 0

    def _at(self) -> int:
        return 0


class _MarkedInline(_Marked, _SingleProcessDataLoaderIter):
    """Inline, where a batch is made when it is asked for."""


class _MarkedFallback(_Marked, FallbackIter):
    """The same, in place of worker processes."""


class _MarkedProcess(_Marked, _MultiProcessingDataLoaderIter):
    """With worker processes, in the order of the indices."""

    def _pulled(self) -> int:
        return self._send_idx

    def _at(self) -> int:
        return self._rcvd_idx - 1


class _MarkedSeam(_MarkedProcess, SeamIter):
    """The same, with samples that begin natively."""


def marked(loader: Any, *, fallback: bool, seam: bool) -> _BaseDataLoaderIter:
    """Returns the iterator of a loader outside of the native lane, with a mask in each batch.

    Args:
        loader: The loader.
        fallback: Whether it stands in for worker processes.
        seam: Whether worker processes finish in Python what they begin natively.

    Raises:
        ValueError: Batches that come as they are finished, of which it is not known which they are.
    """
    if not fallback and loader.num_workers and not loader.in_order:
        msg = (
            "remainder='mask' tells which samples of each batch count, and worker processes with "
            "in_order=False do not say which batch came: leave in_order at True"
        )
        raise ValueError(msg)
    if fallback:
        return _MarkedFallback(loader)
    if seam:
        return _MarkedSeam(loader)
    if loader.num_workers == 0:
        return _MarkedInline(stand_in(loader))
    loader.check_worker_number_rationality()
    return _MarkedProcess(stand_in(loader))
