"""`Attributes`: which attributes of a dataset its samples change.

A worker process changes a copy of its own: a cache fills once in each worker, a counter counts its own share. What is
`None` first is left out: a file that is opened on first use belongs to the worker. Calls nothing of the user's.
"""

from itertools import islice, zip_longest
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset

__all__ = ["Attributes"]

_LONG = 1_000
"""Of a container of more entries the length is looked at, and of a list the entries with a batch's indices."""
_MOST_NAMED = 3
_DEPTH = 3


class Attributes:
    """The attributes of a dataset, as they are when this is made.

    Args:
        dataset: The dataset; of a `Subset`, what it selects from.
        indices: The indices that it is asked for next.
    """

    def __init__(self, dataset: Any, indices: Any) -> None:
        indices = indices if type(indices) in (list, tuple) else [indices]
        while type(dataset) is Subset:
            chosen, dataset = dataset.indices, dataset.dataset
            is_listed = type(chosen) in (list, range)
            indices = [chosen[each] for each in indices if type(each) is int] if is_listed else []
        own = getattr(dataset, "__dict__", None)
        self._own: dict[str, Any] = own if type(own) is dict else {}
        self._indices = [each for each in indices if type(each) is int]
        self._were = {name: (value, self._entries(value)) for name, value in self._own.items()}

    def changed(self) -> str:
        """Returns the names of those that have changed, as a list in words; empty if none has."""
        names = [
            f"{name!r}"
            for name, (value, entries) in self._were.items()
            if value is not None
            and (self._own.get(name) is not value or self._added(value, entries))
        ]
        more = len(names) - _MOST_NAMED
        return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

    def filled(self) -> tuple[str, int]:
        """Returns the name of a list or dict that samples put data into, as into a cache, and the bytes of these data."""
        found = (
            (sum(map(_data_bytes, self._added(value, entries))), name)
            for name, (value, entries) in self._were.items()
            if self._own.get(name) is value
        )
        size, name = max(found, default=(0, ""))
        return name, size

    def _entries(self, value: Any) -> list[Any]:
        """Returns the length of a container that may change, and its entries, if they are few; else some."""
        kind = type(value)
        if kind not in (list, dict, set):
            return []
        if len(value) <= _LONG:
            return [len(value), *(value.values() if kind is dict else value)]
        if kind is not list:
            return [len(value)]
        size = len(value)
        return [size, *(value[each] for each in self._indices if -size <= each < size)]

    def _added(self, value: Any, entries: list[Any]) -> list[Any]:
        """Returns what is in a container in place of its earlier entries, or beside them."""
        now = self._entries(value)
        if not now or now[0] == entries[0]:
            return [
                each for each, was in zip(now[1:], entries[1:], strict=False) if each is not was
            ]
        if type(value) is dict:
            return list(islice(reversed(value.values()), max(1, now[0] - entries[0])))
        return [each for each, was in zip_longest(now[1:], entries[1:]) if each is not was] or [
            None
        ]


def _data_bytes(value: Any, depth: int = 0) -> int:
    """Returns the bytes of an array, of bytes, or of a picture of Pillow's, and of those that a container holds."""
    kind = type(value)
    if issubclass(kind, torch.Tensor | np.ndarray):
        return int(value.nbytes)
    if kind in (bytes, bytearray):
        return len(value)
    if kind.__module__.partition(".")[0] == "PIL":
        width, height = getattr(value, "size", (0, 0))
        return int(width * height)
    if kind not in (tuple, list, dict) or depth == _DEPTH:
        return 0
    entries = islice(value.values() if kind is dict else value, _LONG)
    return sum(_data_bytes(each, depth + 1) for each in entries)
