"""`Attributes`: which attributes of a dataset its samples change.

A worker process changes a copy of its own: a cache fills once in each worker, a counter counts its own share. What is
`None` first is left out: a file that is opened on first use belongs to the worker. Calls nothing of the user's.
"""

import operator
from typing import Any

__all__ = ["Attributes"]

_LONG = 1_000
"""Of a container of more entries only the length is looked at."""
_MOST_NAMED = 3


class Attributes:
    """The attributes of a dataset, as they are when this is made.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Any) -> None:
        own = getattr(dataset, "__dict__", None)
        self._own: dict[str, Any] = own if type(own) is dict else {}
        self._were = {name: (value, _entries(value)) for name, value in self._own.items()}

    def changed(self) -> str:
        """Returns the names of those that have changed, as a list in words; empty if none has."""
        names = [
            f"{name!r}"
            for name, (value, entries) in self._were.items()
            if value is not None and not _is_same(self._own.get(name), value, entries)
        ]
        more = len(names) - _MOST_NAMED
        return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _entries(value: Any) -> list[Any] | int:
    """Returns the entries of a container; only their number if they are many, or cannot change."""
    if type(value) not in (list, dict, set):
        return 0
    if len(value) > _LONG:
        return len(value)
    return [*value.keys(), *value.values()] if type(value) is dict else list(value)


def _is_same(now: Any, value: Any, entries: list[Any] | int) -> bool:
    if now is not value:
        return False
    found = _entries(value)
    if isinstance(found, int) or isinstance(entries, int):
        return found == entries
    return len(found) == len(entries) and all(map(operator.is_, found, entries))
