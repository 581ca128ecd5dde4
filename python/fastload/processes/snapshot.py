"""`Snapshot`: the state that forked workers inherit, for those that are forked later than others.

They would have what the training has made of it since, and their samples would depend on when they were started. Owns
the attributes of Python objects and the entries of short lists, dicts and sets, as they were; the globals that functions
of the user's name; the folder of the process and torch's default dtype. Refuses to look into arrays, tensors and long
containers: what is written there in place is seen by workers that start afterwards. Calls nothing of the user's.
"""

import contextlib
import os
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from fastload.machine.libraries import is_library
from fastload.processes.reach import functions_of, globals_in, is_users_class

__all__ = ["Snapshot"]

_LONG = 1_000
"""A container of more entries is left as it is."""

_MANY = 20_000
"""Objects found after this many others are left as they are."""

_LEFT = (
    *(bool, int, float, complex, str, bytes, type(None), range, slice),
    *(types.ModuleType, types.BuiltinFunctionType),
    *(torch.Tensor, np.ndarray, np.generic),
)


class Snapshot:
    """The state of objects, and of the objects that they refer to."""

    def __init__(self, things: Iterable[Any]) -> None:
        self._kept: list[tuple[Any, Any]] = []
        self._globals: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._folder: str | None = None
        with contextlib.suppress(OSError):  # it was removed
            self._folder = os.getcwd()  # noqa: PTH109
        self._dtype = torch.get_default_dtype()
        met, waiting = set[int](), list(things)
        while waiting and len(met) < _MANY:
            thing = waiting.pop()
            # of its type: a proxy computes its `__class__`
            if id(thing) in met or issubclass(type(thing), _LEFT):
                continue
            met.add(id(thing))
            if issubclass(type(thing), type):
                waiting.extend(functions_of(thing) if is_users_class(thing) else ())
            elif type(thing) is types.FunctionType:
                waiting.extend(self._keep_globals(thing))
            else:
                waiting.extend(self._keep(thing))

    def _keep_globals(self, function: types.FunctionType) -> Iterator[Any]:
        """Keeps the globals that a function of the user's names; yields those that may name others."""
        if is_library(function.__code__.co_filename):
            return
        names = function.__globals__
        kept = {name: names[name] for name in globals_in(function) if name in names}
        self._globals.append((names, kept))
        for value in kept.values():
            if issubclass(type(value), types.FunctionType | type):
                yield value
            elif type(value) in (list, set, dict) and len(value) <= _LONG:
                self._kept.append((value, value.copy()))

    def _keep(self, thing: Any) -> Iterable[Any]:
        """Keeps the state of one object; returns the objects that it refers to, and its class."""
        kind = type(thing)
        if kind is types.MethodType:
            return [thing.__self__]
        if kind in (list, set, tuple, dict):
            if len(thing) > _LONG:
                return []
            if kind is not tuple:
                self._kept.append((thing, thing.copy()))
            return list(thing.values() if kind is dict else thing)
        try:
            attributes = getattr(thing, "__dict__", None)
        except Exception:  # as of a proxy without its object
            return []
        if type(attributes) is not dict:
            return []
        self._kept.append((attributes, attributes.copy()))
        return [kind, *attributes.values()]

    def restore(self) -> None:
        """Restores the state of all objects in this process; a set that has not changed keeps its order."""
        for thing, kept in self._kept:
            if type(thing) is set and set(map(id, thing)) == set(map(id, kept)):
                continue
            thing.clear()
            (thing.extend if type(thing) is list else thing.update)(kept)
        for names, kept in self._globals:
            names.update(kept)
        if self._dtype is not torch.get_default_dtype():
            torch.set_default_dtype(self._dtype)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(self._folder)
