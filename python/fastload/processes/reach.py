"""The objects that others lead to, with their paths.

Owns the way from an object to attributes, entries of short containers, closures, defaults, what functions have cached,
and the globals that functions of the user's name. Calls nothing of the user's.
"""

import collections
import contextlib
import functools
import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

from fastload.lowering.reading.attributes import all_stored
from fastload.machine.libraries import is_library
from fastload.processes.own_state import (
    CACHED,
    functions_of,
    globals_in,
    is_own_generator,
    names_asked,
    names_in,
)

__all__ = ["ATOMS", "LONG", "entries", "is_users_class", "parts", "parts_of_class", "stored"]

ATOMS = {int, float, complex, bool, str, bytes, type(None), type, range, slice}
"""Classes of objects that lead to no others."""

LONG = 1_000
"""Containers of more entries are looked into no further."""

_PLAIN: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque)


def parts(thing: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yields the objects that an object refers to, with their paths."""
    kind = type(thing)
    if kind is types.MethodType:
        yield thing.__self__, f"{path}.__self__"
    elif kind is types.FunctionType:
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            try:
                yield cell.cell_contents, f"{path}'s {name}"
            except ValueError:  # it is not filled yet
                continue
        given = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        yield from ((each, f"a default of {path}") for each in given)
        yield from _globals(thing, path)
    elif kind is CACHED:  # the function, and what it has returned
        yield from ((each, path) for each in gc.get_referents(thing)[:LONG])
    elif kind is functools.partial:
        yield from ((thing.func, path), (thing.args, path), (thing.keywords, path))
    elif not issubclass(kind, types.ModuleType | type):
        yield from _entries_with_paths(thing, path)
        for name, value in stored(thing).items():
            # other generators were drawn from before, to make the dataset
            if not is_own_generator(value) or name in names_asked(kind):
                yield value, f"{path}.{name}"


def stored(thing: Any) -> dict[str, Any]:
    """Returns the attributes of an object, also those in slots, as they are stored."""
    kind = type(thing)
    if kind is types.SimpleNamespace:
        return dict(vars(thing))
    found = dict(all_stored(thing))
    for each in kind.__mro__:
        names = vars(each).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            member = vars(each).get(name)
            if type(member) is types.MemberDescriptorType:
                with contextlib.suppress(AttributeError):  # it is not set
                    found[name] = member.__get__(thing)
    return found


def entries(thing: Any) -> Iterator[Any] | None:
    """Returns the entries of a container of Python's, or of a class made from one; None for other objects.

    Of a dict these are its values.
    """
    kind = type(thing)
    if issubclass(kind, dict):
        return iter(list(dict.values(thing)))
    base = next((each for each in _PLAIN if issubclass(kind, each)), None)
    return None if base is None else iter(base.__iter__(thing))


def _entries_with_paths(thing: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yields the first entries of a container."""
    if issubclass(type(thing), dict):
        for _, (key, value) in zip(range(LONG), list(dict.items(thing)), strict=False):
            yield value, f"{path}[{key!r}]" if type(key) in ATOMS else path
        return
    for number, each in zip(range(LONG), entries(thing) or (), strict=False):
        yield each, f"{path}[{number}]"


def parts_of_class(kind: type) -> Iterator[tuple[Any, str]]:
    """Yields the functions of a class of the user's, and what they name of its attributes."""
    functions = functions_of(kind)
    yield from ((each, each.__qualname__) for each in functions)
    asked = {name for each in functions for name in names_in(each)}
    for each in kind.__mro__ if functions else ():
        yield from (
            (value, f"{each.__qualname__}.{name}")
            for name, value in vars(each).items()
            if name in asked
        )


def is_users_class(kind: type) -> bool:
    """Returns true if a class is of a module of the user's."""
    if kind.__module__ in sys.builtin_module_names:
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not (isinstance(file, str) and is_library(file))


def _globals(function: types.FunctionType, path: str) -> Iterator[tuple[Any, str]]:
    """Yields what a function of the user's names in its module, and in other modules of the user's."""
    if is_library(function.__code__.co_filename):
        return
    for name in sorted(globals_in(function)):
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            file = vars(value).get("__file__")
            if isinstance(file, str) and not is_library(file):
                yield from (
                    (vars(value).get(each), f"{name}.{each}") for each in names_in(function)
                )
        elif isinstance(value, type):
            yield value, name
            yield from parts_of_class(value)
        elif is_own_generator(value):
            yield value, f"{name}, which {path} names,"
        elif value is not None:
            yield value, name
