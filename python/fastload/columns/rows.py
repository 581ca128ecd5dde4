"""`Rows`: fixed-size rows of one array."""

from typing import Any, final

import numpy as np
import torch

from fastload import _lib
from fastload.columns.column import Column
from fastload.memory import layout

__all__ = ["Rows"]


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
    return torch.empty(0, dtype=tensor.dtype).set_(storage, *place)


def _reopen(file: layout.MappedFile) -> Rows:
    rows = Rows(file.open())
    rows._file = file
    return rows
