"""Bounded storage of numbers in the order of time: the newest, or the whole run at a falling resolution.

All memory is written when it is allocated: pages that come with the run would be found as a leak of the training.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ring", "Trail"]

Floats = NDArray[np.float64]


class Ring:
    """Keeps the newest values of several columns.

    Args:
        columns: Number of columns.
        capacity: Values kept of each.
    """

    def __init__(self, columns: int, capacity: int) -> None:
        self._capacity = capacity
        self._data = np.full((columns, 2 * capacity), np.nan)  # takes its memory now
        self._end = 0

    def extend(self, values: Floats) -> None:
        """Appends values of shape `(columns, n)`."""
        values = values[:, -self._capacity :]
        count = values.shape[1]
        if self._end + count > self._data.shape[1]:
            kept = min(self._end, self._capacity)
            self._data[:, :kept] = self._data[:, self._end - kept : self._end]
            self._end = kept
        self._data[:, self._end : self._end + count] = values
        self._end += count

    def view(self) -> Floats:
        """Returns the values, oldest first, shape `(columns, up to capacity)`; valid until the next `extend`."""
        return self._data[:, max(0, self._end - self._capacity) : self._end]

    def __len__(self) -> int:
        return min(self._end, self._capacity)


class Trail:
    """Keeps a whole run in few points: when they are full, each two neighbours become one.

    Args:
        columns: Number of values of a point.
        capacity: The most points; even.
        merge: Reduces an array along an axis, such as `np.mean`.
    """

    def __init__(self, columns: int, capacity: int, merge: Callable[..., Floats]) -> None:
        self._data = np.full((columns, capacity), np.nan)  # takes its memory now
        self._merge = merge
        self._end = 0
        self._stride = 1
        self._pending: list[Floats] = []

    def append(self, point: Floats) -> None:
        """Appends a point of shape `(columns,)`."""
        self._pending.append(point)
        if len(self._pending) < self._stride:
            return
        self._data[:, self._end] = self._merge(np.stack(self._pending), axis=0)
        self._pending.clear()
        self._end += 1
        columns, capacity = self._data.shape
        if self._end == capacity:
            self._end //= 2
            pairs = self._data.reshape(columns, self._end, 2)
            self._data[:, : self._end] = self._merge(pairs, axis=2)
            self._stride *= 2

    def view(self) -> Floats:
        """Returns the points, oldest first, shape `(columns, points)`; valid until the next `append`."""
        return self._data[:, : self._end]

    def __len__(self) -> int:
        return self._end
