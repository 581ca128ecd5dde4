"""`Records`: arrays at equal distances in binary files."""

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import Paths, one_or_more
from fastload.memory import layout

__all__ = ["Records"]


@final
class Records(Column):
    """Arrays at equal distances in binary files, as in those of CIFAR-10 and MNIST.

    A file is a header of `offset` bytes, and then records of `stride` bytes each. Of record i, the sample is the
    array of `shape`, in C order and native byte order, that begins at its byte `start`.

    Args:
        paths: A file, several of them, or a pattern such as `"data_batch_*.bin"`, whose matches are sorted.
        shape: Shape of a sample.
        dtype: Dtype of the files: of NumPy or torch, or its name.
        stride: Bytes of a record. None: those of a sample.
        start: Byte of a record at which the sample begins.
        offset: Bytes to skip at the beginning of each file, such as a header.
        out_dtype: Dtype of samples. None: `dtype`.

    Raises:
        TypeError: Paths that are neither text nor path objects, or elements that no tensor can have.
        ValueError: A pattern without matches, a sample that does not fit into a record, or a conversion to
            `out_dtype` that would lose values.
        OSError: A file cannot be read, or is not a header and whole records. A file that changes later raises an
            error when its samples are read.

    Examples:
        >>> images = Records("data_batch_*.bin", (3, 32, 32), stride=3073, start=1)
        >>> labels = Records("data_batch_*.bin", (), stride=3073, out_dtype="int64")
        >>> images[0].shape, labels[0]
        (torch.Size([3, 32, 32]), tensor(6))
    """

    def __init__(
        self,
        paths: Paths | os.PathLike[str],
        shape: Sequence[int],
        dtype: Any = "uint8",
        *,
        stride: int | None = None,
        start: int = 0,
        offset: int = 0,
        out_dtype: Any = None,
    ) -> None:
        self._paths = one_or_more(paths)
        self._shape = tuple(map(operator.index, shape))
        self._dtype = layout.dtype_name(dtype)
        self._out = self._dtype if out_dtype is None else layout.dtype_name(out_dtype)
        sample = math.prod(self._shape) * np.dtype(self._dtype).itemsize
        self._bytes = (sample if stride is None else operator.index(stride), start, offset)
        if min(*self._shape, *self._bytes) < 0:
            msg = f"sizes are at least 0, found shape {self._shape}, (stride, start, offset) {self._bytes}"
            raise ValueError(msg)
        self._native = _lib.records(self._paths, self._dtype, self._out, self._shape, self._bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the arguments."""
        return _records, (self._paths, self._shape, self._dtype, self._bytes, self._out)

    def __repr__(self) -> str:
        return f"Records({len(self)} of {self._describe()})"


def _records(
    paths: list[str],
    shape: tuple[int, ...],
    dtype: str,
    of_records: tuple[int, int, int],
    out_dtype: str,
) -> Records:
    stride, start, offset = of_records
    return Records(
        paths, shape, dtype, stride=stride, start=start, offset=offset, out_dtype=out_dtype
    )
