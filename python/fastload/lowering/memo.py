"""What lowering keeps from one `iter()` to the next.

A dataset is lowered anew at each `iter()`, so every change to it takes effect; only what grows with
its length is kept: columns made of long lists. Invariant: a kept column is used only while the list
holds what it was made from, in the same order. Items cannot change themselves: they are numbers, or
tuples of numbers and text.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

__all__ = ["Memo"]

_T = TypeVar("_T")

_LOOKED_AT = 1000


class _Kept(NamedTuple):
    copy: list[Any]
    settings: Any
    made: Any


class Memo:
    """The columns that were made of lists, by the list and what it is used for."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._used: set[Hashable] = set()

    def of_list(
        self, use: str, items: list[Any], make: Callable[[], _T], settings: Any = None
    ) -> _T:
        """Returns what `make` makes of a list, or made of it when last asked.

        Costs about a millisecond for a million items if nothing has changed.

        Args:
            use: What it is used for.
            items: The list, whose items are immutable.
            make: Called if the list or the settings have changed.
            settings: What else the result depends on, compared by `==`.
        """
        place = use, id(items)
        self._used.add(place)
        kept = self._kept.get(place)
        if kept is None or kept.settings != settings or not _same(kept.copy, items):
            kept = self._kept[place] = _Kept(list(items), settings, make())
        made: _T = kept.made
        return made

    def of_object(self, use: str, thing: Any, make: Callable[[], _T]) -> _T:
        """Returns what `make` makes of something immutable, or made of it when last asked.

        Args:
            use: What it is used for.
            thing: The very object.
            make: Called if it is another one.
        """
        place = use, id(thing)
        self._used.add(place)
        kept = self._kept.get(place)
        if kept is None:
            kept = self._kept[place] = _Kept([thing], None, make())
        made: _T = kept.made
        return made

    def sweep(self) -> None:
        """Forgets what was not asked for since the last sweep."""
        self._kept = {place: kept for place, kept in self._kept.items() if place in self._used}
        self._used = set()


def _same(kept: list[Any], items: list[Any]) -> bool:
    """Returns whether two lists hold equal items, which are of the same types.

    Equality passes over objects that are the same without asking them; the types are looked at for
    some of them, as a list is converted as a whole.
    """
    step = max(1, len(kept) // _LOOKED_AT)
    try:
        if kept != items:
            return False
    except Exception:  # items of other kinds by now, that refuse to be compared
        return False
    return all(map(_alike, kept[::step], items[::step]))


def _alike(one: Any, other: Any) -> bool:
    return one is other or repr(one) == repr(other)
