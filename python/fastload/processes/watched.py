"""The parts of a dataset's objects that are watched: values with names, rows of arrays, and containers.

Each keeps what it was when it was made, and tells what differs now. Runs nothing of the user's.
"""

import gc
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

from fastload.processes.reach import ATOMS, CACHED, DATA, LONG, entries, is_users_class
from fastload.processes.shared_state import hazard, is_iterator

__all__ = ["Container", "Named", "Rows", "Watched", "rows_of"]

_LARGE_ROW = 1 << 20
"""Bytes; arrays of larger rows are not watched."""
_BESIDE_ROWS = 256
"""Bytes that the message of a small batch has beside the batch's own."""
_FEW_ROWS = 4
"""Rows of an array that are watched, of those at the batch's indices."""
_DEPTH = 3
_NUMBER_BYTES = 8
_MISSING = object()

Watched: TypeAlias = "Named | Rows | Container"


class Named:
    """Values with names, such as the attributes of an object.

    Args:
        prefix: What stands before a name in its path.
        read: Returns the values of now.
        goes_on: True if values that were `None` or missing count.
    """

    def __init__(
        self, prefix: str, read: Callable[[], dict[str, Any]], *, goes_on: bool = False
    ) -> None:
        self._prefix, self._read, self._were = prefix, read, read()
        self._goes_on = goes_on
        self.size = len(self._were)

    def changed(self) -> Iterator[str]:
        """Yields the paths of the values that have changed."""
        now = self._read()
        for name, was in self._were.items():
            if was is not None and _differ(now.get(name, _MISSING), was):
                yield self._prefix + name
        for name, value in now.items() if self._goes_on else ():
            if self._were.get(name) is None and _goes_on_from(value):
                yield self._prefix + name

    def new_values(self) -> Iterator[Any]:
        """Yields what has taken the place of other values, or of none."""
        now = self._read()
        yield from (value for name, value in now.items() if value is not self._were.get(name))


def _goes_on_from(value: Any) -> bool:
    """Returns true if a stream may go on from a value: an iterator, a number, a container, an object of the user's."""
    kind = type(value)
    if value is None or (not is_iterator(kind) and hazard(value) is not None):
        return False
    is_plain = kind in ATOMS or kind in DATA or entries(value) is not None
    return is_plain or is_iterator(kind) or is_users_class(kind)


def rows_of(array: np.ndarray[Any, Any], path: str, picks: list[int]) -> Iterator["Rows"]:
    """Yields the rows of an array whose memory is this process's alone, and that may hold one for each sample."""
    owner: Any = array
    while type(owner) is np.ndarray:
        owner = owner.base
    is_own = owner is None or (
        isinstance(owner, torch.Tensor) and not owner.untyped_storage().is_shared()
    )
    has_rows = array.ndim > 0 and array.nbytes <= _LARGE_ROW * len(array)
    if is_own and has_rows and not array.dtype.hasobject:
        yield Rows(path, array, [each for each in picks if -len(array) <= each < len(array)])


class Rows:
    """Rows of an array, at indices of the batch: samples may keep what they made in them.

    Args:
        path: Its path.
        array: The array.
        picks: The indices.

    Attributes:
        path: Its path.
        count: The number of all rows.
    """

    def __init__(self, path: str, array: np.ndarray[Any, Any], picks: list[int]) -> None:
        self.path = path
        self.count = len(array)
        self._array, self._picks = array, picks[:_FEW_ROWS]
        self._times = len(picks) / max(1, len(self._picks))
        self._were = self._now()
        self.size = len(self._were)

    def _now(self) -> list[bytes]:
        return [self._array[each].tobytes() for each in self._picks]

    def changed(self) -> Iterator[str]:
        """Yields the path if rows have changed."""
        if any(self._differ()):
            yield self.path

    def filled_bytes(self) -> int:
        """Returns the bytes of the batch's rows, and of what a small message has beside, if most rows have changed."""
        differ = self._differ()
        if 2 * sum(differ) <= len(differ):
            return 0
        return int(self._times * sum(map(len, self._were))) + _BESIDE_ROWS

    def _differ(self) -> list[bool]:
        return list(map(operator.ne, self._now(), self._were))

    def new_values(self) -> Iterator[Any]:
        """Yields nothing: an array holds numbers."""
        yield from ()


class Container:
    """A list, dict, set or deque of the user's, or the results that a function has cached.

    Args:
        path: Its path.
        thing: The container.
        picks: The indices whose entries of a long list are watched.
        goes_on: True if iterators that it is given count.
    """

    def __init__(self, path: str, thing: Any, picks: list[int], *, goes_on: bool) -> None:
        self.path = path
        self._goes_on = goes_on
        self._thing, self._picks = thing, picks
        self._were = self._entries()
        self.size = len(self._were)

    def changed(self) -> Iterator[str]:
        """Yields the path if entries have changed, other than by files that were opened; not of a function's cache."""
        is_new = type(self._thing) is not CACHED
        if is_new and any(
            each is None or hazard(each) is None or (self._goes_on and is_iterator(type(each)))
            for each in self.new_values()
        ):
            yield self.path

    def filled_bytes(self) -> int:
        """Returns the bytes of the data that were put into it."""
        return sum(map(_data_bytes, self.new_values()))

    def _entries(self) -> list[Any]:
        """Returns the length of the container and its entries, if they are few; else those at the batch's indices."""
        thing = self._thing
        if type(thing) is CACHED:
            return [0, *_cached(thing)]
        # the user's class may say another length
        is_dict = issubclass(type(thing), dict)
        size = dict.__len__(thing) if is_dict else operator.length_hint(entries(thing) or ())
        if size <= LONG:
            return [size, *(entries(thing) or ())]
        at = self._picks if issubclass(type(thing), list) else ()
        return [size, *(list.__getitem__(thing, each) for each in at if -size <= each < size)]

    def new_values(self) -> list[Any]:
        """Returns what is in the container in place of its earlier entries, or beside them."""
        now, were = self._entries(), self._were
        if (
            len(now) == len(were)
            and now[0] == were[0]
            and all(map(operator.is_, now[1:], were[1:]))
        ):
            return []  # without Python's code for each entry
        if now[0] != were[0] and issubclass(type(self._thing), dict):
            values = reversed(list(entries(self._thing) or ()))
            return list(itertools.islice(values, max(1, now[0] - were[0])))
        if type(self._thing) is CACHED:
            known = set(map(id, were))
            return [each for each in now if id(each) not in known]
        pairs = itertools.zip_longest(now[1:], were[1:])
        added = [each for each, was in pairs if _differ(each, was)]
        return added or [None] * (now[0] != were[0])


def _cached(function: Any) -> Iterator[Any]:
    """Yields what a function's `lru_cache` holds, among other things."""
    for each in gc.get_referents(function):
        if type(each) is dict:
            yield from each.values()
        else:
            yield each


def _differ(now: Any, was: Any) -> bool:
    return now is not was and not (type(now) is type(was) and type(was) in ATOMS and now == was)


def _data_bytes(value: Any, depth: int = 0) -> int:
    """Returns the bytes of an array, text, a number or a picture of Pillow's, and of those that a container holds."""
    kind = type(value)
    if issubclass(kind, torch.Tensor | np.ndarray):
        return int(value.nbytes)
    if kind in (str, bytes, bytearray):
        return len(value)
    if kind in (int, float):
        return _NUMBER_BYTES
    if kind.__module__.partition(".")[0] == "PIL":
        width, height = getattr(value, "size", (0, 0))
        return int(width * height)
    held = entries(value)
    if held is None or depth == _DEPTH:
        return 0
    return sum(_data_bytes(each, depth + 1) for each in itertools.islice(held, LONG))
