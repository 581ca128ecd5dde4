"""`Snapshot`: the state that forked workers inherit, for those that are forked later than others.

They would have what the training has made of it since, and their samples would depend on when they were started. Owns
the attributes of Python objects and the entries of short lists, dicts and sets, as they were; the globals that the
user's functions name, and what these lead to; the folder of the process and torch's default dtype. Refuses to look into
arrays, tensors and long containers: what is written there in place is seen by workers that start afterwards. Calls
nothing of the user's.
"""

import contextlib
import functools
import logging
import os
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from fastload.machine.libraries import is_library
from fastload.processes.reach import (
    LONG,
    functions_of,
    globals_in,
    is_users_class,
    names_in,
    names_of_module,
)

__all__ = ["Snapshot"]

_MANY = 20_000
"""Objects found after this many others are left as they are."""

_LEFT = (
    *(bool, int, float, complex, str, bytes, type(None), range, slice),
    *(types.ModuleType, types.BuiltinFunctionType),
    *(torch.Tensor, np.ndarray, np.generic),
    *(logging.Logger, threading.Thread),  # a fork resets their locks
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
                with contextlib.suppress(Exception):  # of a metaclass
                    waiting.extend(functions_of(thing) if is_users_class(thing) else ())
            elif type(thing) is types.FunctionType:
                waiting.extend(self._keep_globals(thing))
            else:
                waiting.extend(self._keep(thing))

    def _keep_globals(self, function: types.FunctionType) -> Iterator[Any]:
        """Keeps the globals that a function of the user's names; yields them, and what its closure holds."""
        if is_library(function.__code__.co_filename):
            return
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # it is not filled yet
                yield cell.cell_contents
        own, asked = function.__globals__, globals_in(function)
        modules = filter(None, (names_of_module(own.get(name)) for name in asked))
        for names, wanted in [(own, asked), *((each, names_in(function)) for each in modules)]:
            kept = {name: names[name] for name in wanted if name in names}
            self._globals.append((names, kept))
            yield from kept.values()

    def _keep(self, thing: Any) -> Iterable[Any]:
        """Keeps the state of one object; returns the objects that it refers to, and its class."""
        kind = type(thing)
        if kind is types.MethodType:
            return [thing.__self__]
        if kind is functools.partial:
            return [thing.func, thing.args, thing.keywords]
        if kind in (list, set, tuple, dict):
            if len(thing) > LONG:
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
        return [*attributes.values(), kind]  # whose functions are looked at first

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
