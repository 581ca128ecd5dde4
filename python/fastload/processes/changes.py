"""`Changes`: what samples change in a dataset, a collate function, and whatever they lead to.

A worker process changes copies of its own: a cache fills once in each worker, a counter counts its own share, and a
position is where it was when the next epoch begins. A file that is opened on first use belongs to the worker, and is
left out; so is all that is `None` or missing first, except for streams, whose next epoch may go on from it. Objects of
libraries are left to them. Of the user's code calls the dataset's `__len__` alone.
"""

import argparse
import array
import collections
import contextlib
import contextvars
import functools
import gc
import io
import itertools
import math
import mmap
import operator
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset

from fastload.machine.libraries import is_library
from fastload.processes.reach import (
    ATOMS,
    CACHED,
    LONG,
    entries,
    globals_set_by,
    is_own_generator,
    is_users_class,
    parts,
    parts_of_class,
    stored,
)
from fastload.processes.shared_state import hazard, is_iterator

__all__ = ["Changes"]

_MANY = 500
"""Objects found after this many others are not watched."""
_SHORT = 32
"""What containers of more entries hold is not watched, but for the entries themselves."""
_FEW = 256
"""Values of small objects, nearest first, that are looked at behind every batch of a stream."""
_OFTEN = 16
"""First batches of a stream behind which all others are looked at, too; later behind one of as many, and the last."""
_SMALL_BYTES = 4_096
"""Larger arrays are not watched."""
_LARGE_ROW = 1 << 20
"""Bytes; arrays of larger rows are not watched."""
_BESIDE_ROWS = 256
"""Bytes that the message of a small batch has beside the batch's own."""
_FEW_ROWS = 4
"""Rows of an array that are watched, of those at the batch's indices."""
_MOST_NAMED = 3
_DEPTH = 3
_NUMBER_BYTES = 8
_MISSING = object()
_DATA = (
    *(np.ndarray, torch.Tensor, types.SimpleNamespace, argparse.Namespace),
    *(types.MethodType, functools.partial, CACHED),
)
"""Objects of these classes, and containers, belong to the user if what leads to them does."""
_POSITIONS: dict[type, Callable[[Any], Any]] = {
    io.BytesIO: io.BytesIO.tell,
    io.StringIO: io.StringIO.tell,
    mmap.mmap: mmap.mmap.tell,
    bytearray: lambda thing: bytes(thing) if len(thing) <= _SMALL_BYTES else len(thing),
    array.array: lambda thing: thing.tobytes() if len(thing) <= _SMALL_BYTES else len(thing),
    contextvars.ContextVar: lambda thing: thing.get(None),
}
"""What tells from where a stream goes on in objects of C code; the same is said of them."""


class Changes:
    """The state of a worker's objects when this is made.

    Args:
        dataset: The dataset; of a `Subset`, what it selects from is watched.
        collate_fn: The function that makes its batches.
        indices: The indices that the dataset is asked for next; None if it is iterable.
        goes_on: True if it is a stream whose next epoch has to go on from this one.
    """

    def __init__(
        self, dataset: Any, collate_fn: Any, indices: Any = None, *, goes_on: bool = False
    ) -> None:
        indices = indices if type(indices) in (list, tuple) else [indices]
        while type(dataset) is Subset:
            chosen, dataset = dataset.indices, dataset.dataset
            count = len(chosen) if type(chosen) in (list, range) else 0
            # an index out of range is the batch's error
            within = [each for each in indices if type(each) is int and -count <= each < count]
            indices = [chosen[each] for each in within]
        picks = [each for each in indices if type(each) is int]
        self._watched: list[_Named | _Rows | _Container] = []
        things = [(dataset, "dataset"), (collate_fn, "collate_fn")]
        with self._guarded():
            self._watched = list(_watched(things, picks, goes_on=goes_on))
        if any(isinstance(each, _Rows) for each in self._watched):
            # a shorter array has no row for each sample: it may be a scratch buffer
            length = _length(dataset)
            self._watched = [
                each
                for each in self._watched
                if not isinstance(each, _Rows) or each.count >= length
            ]
        self._filled = [each for each in self._watched if isinstance(each, _Rows | _Container)]
        small = [each for each in self._watched if each.size <= _SHORT]
        totals = itertools.accumulate(each.size for each in small)
        self._near = small[: sum(total <= _FEW for total in totals)]
        self._looks = 0
        gc.freeze()  # `gc.get_objects` then returns what is made from here on

    def changed(self, *, is_last: bool = False) -> str:
        """Returns the paths of what has changed, as a list in words; empty if nothing has.

        Args:
            is_last: True if no other batch follows.
        """
        paths: list[str] = []
        self._looks += 1
        is_due = is_last or self._looks <= _OFTEN or self._looks % _OFTEN == 0
        watched = self._watched if is_due else self._near
        with self._guarded():
            paths = list(dict.fromkeys(path for each in watched for path in each.changed()))
        more = len(paths) - _MOST_NAMED
        return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

    def filled(self) -> tuple[str, int]:
        """Returns the path of what samples put data into, as into a cache, and the bytes of these data."""
        size, path = 0, ""
        with self._guarded():
            found = ((each.filled_bytes(), each.path) for each in self._filled)
            size, path = max(found, default=(0, ""))
        return path, size

    def kept(self) -> str:
        """Returns what samples have made and kept that goes on from one sample to the next; empty if nothing.

        That is a random generator, wherever it is kept, or an iterator among what is watched.
        """
        new = gc.get_objects()
        # the garbage collector does not know torch's generators, but what holds them
        held = itertools.chain.from_iterable(map(gc.get_referents, new))
        if any(map(is_own_generator, new)) or any(type(each) is torch.Generator for each in held):
            return "a random generator"
        with self._guarded():
            values = [value for each in self._watched for value in each.new_values()]
            if any(map(is_own_generator, values)):
                return "a random generator"
            if any(is_iterator(type(value)) for value in values):
                return "an iterator"
        return ""

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Watches nothing from where code of the user's raises, such as a `__len__`: samples do not depend on it."""
        try:
            yield
        except Exception:
            self._watched, self._near, self._filled = [], [], []


def _watched(
    things: list[tuple[Any, str]], picks: list[int], *, goes_on: bool
) -> "Iterator[_Named | _Rows | _Container]":
    """Yields all that may change of what things lead to, nearest first."""
    met = set[int]()
    waiting = collections.deque((thing, path, True) for thing, path in things)
    while waiting and len(met) < _MANY:
        thing, path, is_users = waiting.popleft()
        kind = type(thing)
        if (kind in ATOMS and kind is not type) or id(thing) in met:
            continue
        met.add(id(thing))
        if issubclass(kind, type):
            if is_users_class(thing):
                yield _Named(f"{path}.", functools.partial(_numbers_of, thing))
                waiting.extend((*part, True) for part in parts_of_class(thing))
            continue
        if kind is types.FunctionType:
            is_users = not is_library(thing.__code__.co_filename)
        elif is_users_class(kind):
            is_users = True
            waiting.append((kind, kind.__qualname__, True))
        else:
            is_data = kind in _DATA or kind in _POSITIONS or kind is threading.local
            is_users = is_users and (is_data or entries(thing) is not None)
        if is_users:
            yield from _parts_that_change(thing, path, picks, goes_on=goes_on)
        if (held := entries(thing)) is None or operator.length_hint(held) <= _SHORT:
            waiting.extend((*part, is_users) for part in parts(thing, path))


def _parts_that_change(
    thing: Any, path: str, picks: list[int], *, goes_on: bool
) -> "Iterator[_Named | _Rows | _Container]":
    kind = type(thing)
    if kind is types.FunctionType:
        cells = dict(zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True))
        if cells:
            yield _Named(
                f"{path}'s ",
                lambda: {name: _content(cells[name]) for name in cells},
                goes_on=goes_on,
            )
        if set_here := globals_set_by(thing):
            yield _Named(
                "",
                lambda: {name: thing.__globals__.get(name) for name in set_here},
                goes_on=goes_on,
            )
    elif kind is torch.Tensor:
        if not thing.is_inference():
            yield _Named(path, lambda: {"": thing._version})
        with contextlib.suppress(TypeError, RuntimeError):  # NumPy has no such dtype, or layout
            yield from _rows_of(thing.detach().numpy(), path, picks)
    elif kind is np.ndarray:
        if thing.nbytes <= _SMALL_BYTES and not thing.dtype.hasobject:
            yield _Named(path, lambda: {"": thing.tobytes()})
        yield from _rows_of(thing, path, picks)
    elif kind in _POSITIONS:
        if goes_on:
            yield _Named(path, lambda: {"": _position(thing)}, goes_on=True)
    elif kind is threading.local:
        if goes_on:
            yield _Named(f"{path}.", lambda: dict(vars(thing)), goes_on=True)
    else:
        if kind is CACHED or (entries(thing) is not None and not issubclass(kind, tuple)):
            yield _Container(path, thing, picks, goes_on=goes_on)
        if kind not in (list, tuple, dict, set):
            users = [each for each in reversed(kind.__mro__) if is_users_class(each)]
            defaults = dict(item for each in users for item in _numbers_of(each).items())
            yield _Named(f"{path}.", lambda: defaults | stored(thing), goes_on=goes_on)


def _position(thing: Any) -> Any:
    try:
        return _POSITIONS[type(thing)](thing)
    except ValueError:  # it is closed
        return None


def _numbers_of(kind: type) -> dict[str, Any]:
    """Returns the attributes of a class that are numbers, texts or the like."""
    return {name: value for name, value in vars(kind).items() if type(value) in ATOMS}


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


class _Named:
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


def _rows_of(array: np.ndarray[Any, Any], path: str, picks: list[int]) -> "Iterator[_Rows]":
    """Yields the rows of an array whose memory is this process's alone, and that may hold one for each sample."""
    owner: Any = array
    while type(owner) is np.ndarray:
        owner = owner.base
    is_own = owner is None or (
        isinstance(owner, torch.Tensor) and not owner.untyped_storage().is_shared()
    )
    has_rows = array.ndim > 0 and array.nbytes <= _LARGE_ROW * len(array)
    if is_own and has_rows and not array.dtype.hasobject:
        yield _Rows(path, array, [each for each in picks if -len(array) <= each < len(array)])


def _length(dataset: Any) -> float:
    """Returns the length of a dataset; infinity where it is not known."""
    try:
        return len(dataset)
    except Exception:  # of the user's code
        return math.inf


class _Rows:
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


class _Container:
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


def _goes_on_from(value: Any) -> bool:
    """Returns true if a value is a position, or data: an iterator, a number, a container, an object of the user's."""
    kind = type(value)
    if value is None or (not is_iterator(kind) and hazard(value) is not None):
        return False
    is_plain = kind in ATOMS or kind in _DATA or entries(value) is not None
    return is_plain or is_iterator(kind) or is_users_class(kind)


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
