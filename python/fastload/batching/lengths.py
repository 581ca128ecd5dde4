"""Lengths of samples, from sequences, arrays, tensors and columns."""

from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.columns import Ragged, Rows
from fastload.memory import layout

__all__ = ["LONGEST", "lengths_of"]

LONGEST = (1 << 32) - 1
"""The largest length that a sample can have."""


def lengths_of(source: Any) -> _lib.Lengths:
    """Returns the length of each sample.

    Args:
        source: One integer per sample, as a sequence, an array, a tensor or `Rows`; or a `Ragged` column, whose
            offsets give the lengths.

    Raises:
        TypeError: Not integers, or more than one per sample.
        ValueError: A length that is negative or above 4294967295.
    """
    if isinstance(source, _lib.Lengths):
        return source
    if isinstance(source, Ragged):
        source = source._core
    if isinstance(source, _lib.Column):
        return _lib.Lengths(source)
    if isinstance(source, Rows):
        source = source._data
    if isinstance(source, torch.Tensor):
        whole = not (source.is_floating_point() or source.is_complex())
        _check(whole and source.dtype is not torch.bool, source.ndim, source.dtype)
        if source.dtype is torch.uint64:
            _check_large(max(source.tolist(), default=0))
        return _lib.Lengths(_lib.Rows(*layout.of_tensor(source.detach().cpu().to(torch.int64))))
    array = np.asarray(source if hasattr(source, "__array__") else list(source))
    if not array.size and array.ndim == 1:
        array = array.astype(np.int64)
    _check(array.dtype.kind in "iu", array.ndim, array.dtype)
    if array.dtype == np.uint64:
        _check_large(int(array.max()))
    return _lib.Lengths(_lib.Rows(*layout.of_array(array.astype(np.int64, copy=False))))


def _check(whole: bool, dimensions: int, dtype: Any) -> None:  # noqa: FBT001
    if not whole or dimensions != 1:
        msg = (
            "lengths are one integer per sample, found "
            f"{dimensions} dimension{'' if dimensions == 1 else 's'} of {dtype}"
        )
        raise TypeError(msg)


def _check_large(length: int) -> None:
    if length > LONGEST:
        msg = f"a sample has length {length}; a length is an integer from 0 to {LONGEST}"
        raise ValueError(msg)
