"""`Seam`: a dataset whose samples are made natively as far as that goes, and then in Python.

Owns one side of the seam only: what is native. The rest is the user's own code, called as the
dataset would call it. In every other respect it is the dataset: its class, its length and its
attributes, which `worker_init_fn` may set.
"""

import contextlib
import operator
from typing import Any

import numpy as np
import torch

from fastload.columns.column import draw_sample
from fastload.columns.structure import rebuild
from fastload.lowering import Lowered, lower
from fastload.lowering.leaf import Leaf
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

__all__ = ["Seam"]


class Seam:
    """A dataset, for worker processes.

    A process lowers it at its first sample, after `worker_init_fn`, which may have changed it.
    """

    __getitems__ = None  # not the dataset's own, which would make its samples in Python

    __slots__ = ("__weakref__", "_below", "_dataset", "_is_lowered", "_lowered", "_memo")

    _dataset: Any
    _memo: Memo
    _lowered: Lowered | None
    _is_lowered: bool
    _below: int | None

    def __init__(self, dataset: Any, memo: Memo | None = None) -> None:
        put = super().__setattr__
        put("_dataset", dataset)
        put("_memo", memo or Memo())
        put("_lowered", None)
        put("_is_lowered", False)
        put("_below", None)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the dataset, for `isinstance`."""
        return type(self._dataset)

    def __len__(self) -> int:
        """Returns how many samples there are."""
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        """Returns one sample, as the dataset's own indexing makes it.

        Raises:
            IndexError: `index` is outside of the dataset.
            OSError: A file cannot be read or decoded.
        """
        if not self._is_lowered:
            self._lower()
        if self._lowered is None or not _is_plain(index, self._below):
            return self._dataset[index]
        sample = draw_sample(self._lowered.program, operator.index(index))
        return _finish(self._lowered.sample, sample)

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the dataset."""
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute of the dataset."""
        setattr(self._dataset, name, value)

    def __delattr__(self, name: str) -> None:
        """Deletes an attribute of the dataset."""
        delattr(self._dataset, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the dataset alone."""
        return Seam, (self._dataset,)

    def _lower(self) -> None:
        put = super().__setattr__
        put("_is_lowered", True)
        with contextlib.suppress(NotNative):
            lowered = lower(self._dataset, self._memo)
            put("_lowered", lowered)
            if any(leaf.from_zero for _, leaf in lowered.leaves):
                put("_below", len(lowered.program))


def _is_plain(index: Any, below: int | None) -> bool:
    """Returns true if an index is a number, which means the same to every dataset; a bool is none.

    With `below`, it is an int from 0 to there.
    """
    if below is not None:
        return type(index) is int and 0 <= index < below
    if type(index) is torch.Tensor:
        return index.ndim == 0 and index.dtype is torch.int64
    return type(index) is int or isinstance(index, np.integer)


def _finish(structure: Any, sample: Any) -> Any:
    """Returns a sample with the Python calls of its leaves made."""
    if isinstance(structure, Leaf):
        if structure.wrap is not None:
            sample = sample.as_subclass(structure.wrap)
        for call in structure.tail:
            sample = call(sample)
        return sample
    if isinstance(structure, dict):
        return {key: _finish(part, sample[key]) for key, part in structure.items()}
    parts = zip(structure, sample, strict=True)
    return rebuild(structure, [_finish(part, value) for part, value in parts])
