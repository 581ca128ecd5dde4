"""`Ragged`: samples of different lengths, concatenated in one array."""

from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.rows import Rows

__all__ = ["Ragged"]


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

    @property
    def _core(self) -> _lib.Column:
        sources = self._values._core, self._offsets._core
        if sources != self._sources:  # a tensor's memory has moved
            self._sources = sources
            self._native = _lib.Ragged(*sources)
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the values and the offsets, each like `Rows`."""
        return Ragged, (self._values, self._offsets)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} of {self._describe()})"
