"""`Rows` and `Ragged`: arrays in memory, with samples of one size or of several."""

from typing import Any, final

import numpy as np
import torch

from fastload import _lib
from fastload.columns.column import Column
from fastload.memory import layout


@final
class Rows(Column):
    """Fixed-size rows of one array, shared without a copy.

    As long as the column holds the array, NumPy and torch refuse to resize it. If a tensor's memory moves
    because it is shared with another process, the column follows.

    Args:
        data: A tensor on the CPU; a NumPy array, also read-only or memory-mapped; or what
            `numpy.asarray` makes an array of numbers from. Its first dimension counts samples.

    Raises:
        TypeError: Not dense numbers or booleans in main memory.
        ValueError: No first dimension, or foreign byte order.
    """

    def __init__(self, data: Any) -> None:
        if isinstance(data, torch.Tensor):
            memory = layout.of_tensor(data.detach())
            data = memory.owner
        else:
            data = data if isinstance(data, np.ndarray) else np.asarray(data)
            memory = layout.of_array(data)
        if not memory.shape:
            msg = "Rows needs a first dimension that counts samples, found a scalar"
            raise ValueError(msg)
        self._data = data
        self._file = layout.mapped_file(data)
        self._native = _lib.Rows(*memory)

    _native: _lib.Rows

    @property
    def _core(self) -> _lib.Rows:
        # torch moves a tensor's memory when it is shared with another process, or resized
        if self._native.moved():
            self._native = _lib.Rows(*layout.of_tensor(self._data))
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the array, or the name of the file that it maps.

        A tensor is pickled as a copy: torch moves the memory of one that it hands to another
        process, and native threads may be reading it.
        """
        if self._file is not None:
            return _reopen, (self._file,)
        data = self._data
        return Rows, (_copy(data) if isinstance(data, torch.Tensor) else data,)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {self._describe()})"


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the same view of a copy of a tensor's memory, unless that is shared already."""
    if tensor.is_shared():  # type: ignore[no-untyped-call]
        return tensor
    storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    return torch.empty(0, dtype=tensor.dtype, device="cpu").set_(storage, *place)


def _reopen(file: layout.MappedFile) -> Rows:
    rows = Rows(file.open())
    rows._file = file
    return rows


@final
class Ragged(Column):
    """Samples of different lengths, concatenated in one array, shared without a copy.

    Sample i is `values[offsets[i] : offsets[i + 1]]`. A batch of samples of one length is stacked, as by
    torch's `default_collate`; different lengths raise its error.

    Args:
        values: All samples; a `Rows`, or what `Rows` takes.
        offsets: Integers, one more than there are samples; a `Rows`, or what `Rows` takes.

    Raises:
        TypeError: Not dense numbers or booleans in main memory.
        ValueError: A sample does not lie within `values`, or offsets of a type other than int32 and
            int64.

    Examples:
        >>> tokens = Ragged(torch.arange(10), [0, 3, 7, 10])
        >>> tokens[1]
        tensor([3, 4, 5, 6])
    """

    def __init__(self, values: Any, offsets: Any) -> None:
        self._values = values if isinstance(values, Rows) else Rows(values)
        self._offsets = offsets if isinstance(offsets, Rows) else Rows(offsets)
        self._sources = self._values._core, self._offsets._core
        self._native = _lib.Ragged(*self._sources)
        self._arguments = (self._values, self._offsets), {}

    @property
    def _core(self) -> _lib.Column:
        sources = self._values._core, self._offsets._core
        if sources != self._sources:  # a tensor's memory has moved
            self._sources = sources
            self._native = _lib.Ragged(*sources)
        return self._native

    def __repr__(self) -> str:
        return f"Ragged({len(self)} of {self._describe()})"
