"""`Changes`: what samples change in a dataset, a collate function, and whatever they lead to.

A worker process changes copies of its own: a cache fills once in each worker, a counter counts its own share, and a
position is where it was when the next epoch begins. A file that is opened on first use belongs to the worker, and is
left out; so is all that is `None` or missing first, except for streams, whose next epoch may go on from it. Objects of
libraries are left to them. Of the user's code calls the dataset's `__len__` alone.
"""

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

from fastload.lowering.reading.attributes import stored
from fastload.machine.libraries import is_library
from fastload.processes.reach import (
    ATOMS,
    CACHED,
    DATA,
    entries,
    globals_set_by,
    is_own_generator,
    is_users_class,
    parts,
    parts_of_class,
)
from fastload.processes.shared_state import is_iterator
from fastload.processes.watched import Container, Named, Rows, Watched, rows_of

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
"""Larger arrays are not watched, but for the lengths of those of Python's."""
_MOST_NAMED = 3
_HAVE_POSITION: dict[type, Callable[[Any], Any]] = {
    io.BytesIO: io.BytesIO.tell,
    io.StringIO: io.StringIO.tell,
    mmap.mmap: mmap.mmap.tell,
    bytearray: lambda thing: bytes(thing) if len(thing) <= _SMALL_BYTES else len(thing),
    array.array: lambda thing: thing.tobytes() if len(thing) <= _SMALL_BYTES else len(thing),
    contextvars.ContextVar: lambda thing: thing.get(None),
}
"""Classes of C code from whose objects a stream may go on, and functions that return from where."""


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
        self._watched: list[Watched] = []
        things = [(dataset, "dataset"), (collate_fn, "collate_fn")]
        with self._guarded():
            self._watched = list(_watched(things, picks, goes_on=goes_on))
        if any(isinstance(each, Rows) for each in self._watched):
            # a shorter array has no row for each sample: it may be a scratch buffer
            length = _length(dataset)
            self._watched = [
                each for each in self._watched if not isinstance(each, Rows) or each.count >= length
            ]
        self._filled = [each for each in self._watched if isinstance(each, Rows | Container)]
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
) -> Iterator[Watched]:
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
                yield Named(f"{path}.", functools.partial(_numbers_of, thing))
                waiting.extend((*part, True) for part in parts_of_class(thing))
            continue
        if kind is types.FunctionType:
            is_users = not is_library(thing.__code__.co_filename)
        elif is_users_class(kind):
            is_users = True
            waiting.append((kind, kind.__qualname__, True))
        else:
            is_data = kind in DATA or kind in _HAVE_POSITION or kind is threading.local
            is_users = is_users and (is_data or entries(thing) is not None)
        if is_users:
            yield from _parts_that_change(thing, path, picks, goes_on=goes_on)
        if (held := entries(thing)) is None or operator.length_hint(held) <= _SHORT:
            waiting.extend((*part, is_users) for part in parts(thing, path))


def _parts_that_change(
    thing: Any, path: str, picks: list[int], *, goes_on: bool
) -> Iterator[Watched]:
    kind = type(thing)
    if kind is types.FunctionType:
        cells = dict(zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True))
        if cells:
            yield Named(
                f"{path}'s ",
                lambda: {name: _content(cells[name]) for name in cells},
                goes_on=goes_on,
            )
        if set_here := globals_set_by(thing):
            yield Named(
                "",
                lambda: {name: thing.__globals__.get(name) for name in set_here},
                goes_on=goes_on,
            )
    elif kind is torch.Tensor:
        if not thing.is_inference():
            yield Named(path, lambda: {"": thing._version})
        with contextlib.suppress(TypeError, RuntimeError):  # NumPy has no such dtype, or layout
            yield from rows_of(thing.detach().numpy(), path, picks)
    elif kind is np.ndarray:
        if thing.nbytes <= _SMALL_BYTES and not thing.dtype.hasobject:
            yield Named(path, lambda: {"": thing.tobytes()})
        yield from rows_of(thing, path, picks)
    elif kind in _HAVE_POSITION:
        if goes_on:
            yield Named(path, lambda: {"": _position(thing)}, goes_on=True)
    elif kind is threading.local:
        if goes_on:
            yield Named(f"{path}.", lambda: dict(vars(thing)), goes_on=True)
    else:
        if kind is CACHED or (entries(thing) is not None and not issubclass(kind, tuple)):
            yield Container(path, thing, picks, goes_on=goes_on)
        if kind not in (list, tuple, dict, set):
            users = [each for each in reversed(kind.__mro__) if is_users_class(each)]
            defaults = dict(item for each in users for item in _numbers_of(each).items())
            yield Named(f"{path}.", lambda: defaults | stored(thing), goes_on=goes_on)


def _numbers_of(kind: type) -> dict[str, Any]:
    """Returns the attributes of a class that are numbers, texts or the like."""
    return {name: value for name, value in vars(kind).items() if type(value) in ATOMS}


def _position(thing: Any) -> Any:
    """Returns from where a stream goes on in an object of C code; None if it is closed."""
    try:
        return _HAVE_POSITION[type(thing)](thing)
    except ValueError:
        return None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _length(dataset: Any) -> float:
    """Returns the length of a dataset; infinity where it is not known."""
    try:
        return len(dataset)
    except Exception:  # of the user's code
        return math.inf
