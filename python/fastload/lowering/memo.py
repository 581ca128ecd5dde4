"""The cache of lowering, from one `iter()` to the next.

A dataset is lowered anew at each `iter()` where it may have changed; only results whose cost grows
with its length are cached: columns made of long lists, arrays of indices and columns. Invariant: a result is
used only while its source is the same: a list holds the same items, an array the same numbers. Mutable items
are examined anew.
"""

import operator
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fastload import _lib
from fastload.registry import NotNative

__all__ = ["Joined", "Memo"]

_T = TypeVar("_T")

_LOOKED_AT = 10_000
"""Number of items of a list that are compared one by one."""


class Joined(NamedTuple):
    """Arrays or tensors, which are kept alive, as one along their first dimension; `lengths` has its size in each."""

    arrays: list[Any]
    whole: Any
    lengths: list[int]


class _Kept(NamedTuple):
    source: Any
    settings: Any
    made: Any


class Memo:
    """Cached columns, by their source and its use.

    Each method returns the result of `make`, which it calls if the source has changed since the last call, or the
    `settings`: everything else that the result depends on, compared by `==`.

    Attributes:
        refusal: The refusal of a dataset: the identities of its parts, the parts, the reason.
    """

    refusal: tuple[tuple[int, ...], tuple[Any, ...], NotNative] | None

    def __init__(self) -> None:
        self.refusal = None
        self._kept: dict[Hashable, _Kept] = {}
        self._used: set[Hashable] = set()

    def of_list(
        self, use: str, items: list[Any], make: Callable[[], _T], settings: Any = None
    ) -> _T:
        """Returns the result for a list, whose items are immutable, or the settings tell what may change in them.

        Costs some milliseconds at most if nothing has changed. Of more than ten thousand items, one
        that gives way to an equal one of another type (1 to True) may go unnoticed.
        """
        return self.of_values((use, id(items)), items, make, settings)

    def of_array(
        self,
        use: str,
        items: np.ndarray[Any, Any],
        make: Callable[[np.ndarray[Any, Any]], _T],
        settings: Any = None,
    ) -> _T:
        """Returns the result for a copy of an array of numbers, which may have been written to since the last call."""
        memory = items.__array_interface__
        place = use, memory["data"], memory["strides"]
        settings = memory["typestr"], memory["shape"], settings
        return self._recall(place, items, np.array_equal, np.copy, make, settings)

    def of_objects(
        self, use: Hashable, things: tuple[Any, ...], make: Callable[[], _T], settings: Any = None
    ) -> _T:
        """Returns the result for these very objects; immutable, or the settings tell what may change in them."""
        place = use, *map(id, things)
        return self._recall(place, things, _identical, tuple, lambda _: make(), settings)

    def of_values(
        self, use: Hashable, values: list[Any], make: Callable[[], _T], settings: Any = None
    ) -> _T:
        """Returns the result for immutable values.

        As `of_list`, of a list that is made anew each time, for a use that no other values have.
        """
        return self._recall(use, values, _same, list, lambda _: make(), settings)

    def of_bytes(
        self,
        use: Hashable,
        contents: np.ndarray[Any, Any],
        make: Callable[[], _T],
        settings: Any = None,
    ) -> _T:
        """Returns the result for an array that is kept and that the caller does not change, for a use of its own."""
        return self._recall(use, contents, np.array_equal, np.asarray, lambda _: make(), settings)

    def of_arrays(
        self, use: Hashable, arrays: list[Any], join: Callable[[list[Any]], Joined]
    ) -> Joined:
        """Returns what was joined of arrays or tensors, which may have been written to since the last call."""
        joined: Joined = self._recall(use, arrays, _are_joined, join, lambda made: made, None)
        return joined

    def _recall(
        self,
        place: Hashable,
        source: Any,
        is_same: Callable[[Any, Any], bool],
        copy: Callable[[Any], Any],
        make: Callable[[Any], _T],
        settings: Any,
    ) -> _T:
        """Returns the cached result if source and settings are the same, else makes it from a copy."""
        self._used.add(place)
        kept = self._kept.get(place)
        if kept is None or kept.settings != settings or not is_same(kept.source, source):
            own = copy(source)
            kept = self._kept[place] = _Kept(own, settings, make(own))
        made: _T = kept.made
        return made

    def sweep(self) -> None:
        """Drops entries that were not used since the last sweep."""
        self._kept = {place: kept for place, kept in self._kept.items() if place in self._used}
        self._used = set()


def _identical(kept: tuple[Any, ...], things: tuple[Any, ...]) -> bool:
    """Returns true if two tuples hold the same objects."""
    return all(map(operator.is_, kept, things))


def _are_joined(kept: Joined, arrays: list[Any]) -> bool:
    return _lib.are_joined(arrays, kept.arrays, kept.whole, kept.lengths)


def _same(kept: list[Any], items: list[Any]) -> bool:
    """Returns true if two lists hold the same objects, or at least equal ones.

    Python passes over what is the same without asking it, which is quick; objects that are equal and
    not the same are found by looking at each, or at an even choice of many.
    """
    try:
        if kept != items:
            return False
    except Exception:  # items that refuse to be compared, as tensors do
        return False
    step = -(-len(kept) // _LOOKED_AT) or 1
    return _lib.same_items(kept[::step], items[::step])
