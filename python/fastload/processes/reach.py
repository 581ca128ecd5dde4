"""The objects that others lead to, with their paths, and what the compiled code of their classes names and changes.

Owns the way from an object to attributes, entries of short containers, closures, defaults, what functions have cached,
and the globals that functions of the user's name. A worker would change a copy of what a dataset changes while it makes
samples: an iterable dataset would begin each epoch with the count of the first one, and workers would draw the same
numbers from their copies of one generator. Runs nothing of the user's. Code of libraries is left out: it knows of workers.
"""

import argparse
import collections
import dis
import functools
import gc
import random
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from fastload.lowering.reading.attributes import all_stored, of_class, stored
from fastload.lowering.reading.source import codes_in
from fastload.machine.libraries import is_library

__all__ = [
    "ATOMS",
    "CACHED",
    "DATA",
    "LONG",
    "changed_by_iterating",
    "entries",
    "functions_of",
    "globals_in",
    "globals_set_by",
    "is_own_generator",
    "is_users_class",
    "names_asked",
    "names_in",
    "names_of_module",
    "parts",
    "parts_of_class",
]

ATOMS = {int, float, complex, bool, str, bytes, type(None), type, range, slice}
"""Classes of objects that lead to no others."""

LONG = 1_000
"""Containers of more entries are looked into no further."""

_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
"""The classes of methods of C code that are bound to an object."""

_PLAIN: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque)

_ENTRIES = ("__getitem__", "__getitems__", "__iter__", "__next__", "__call__", "forward")
_NOT_FOR_SAMPLES = (
    *("__init__", "__new__", "__post_init__", "__len__", "__repr__"),
    *("__getstate__", "__setstate__", "__reduce__", "state_dict", "load_state_dict"),
)
_GENERATORS = (
    *(np.random.Generator, np.random.RandomState, np.random.BitGenerator),
    *(np.random.SeedSequence, random.Random, torch.Generator, torch.quasirandom.SobolEngine),
)
CACHED = type(functools.lru_cache(len))
"""The class of functions that `functools.lru_cache` has wrapped."""
DATA = (
    *(np.ndarray, torch.Tensor, types.SimpleNamespace, argparse.Namespace),
    *(types.MethodType, functools.partial, CACHED),
)
"""Objects of these classes, and containers, belong to the user if what leads to them does."""
_OF_PROCESS = (random._inst, np.random.mtrand._rand, torch.default_generator)


def parts(thing: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yields the objects that an object refers to, with their paths."""
    kind = type(thing)
    if kind is types.MethodType or kind in _BOUND:
        if not issubclass(type(thing.__self__), types.ModuleType | type | None):
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
    elif kind is types.MappingProxyType:  # the mapping
        yield from ((each, path) for each in gc.get_referents(thing))
    elif kind is functools.partial:
        yield from ((thing.func, path), (thing.args, path), (thing.keywords, path))
    elif not issubclass(kind, types.ModuleType | type):
        yield from _entries_with_paths(thing, path)
        yield from ((value, f"{path}.{name}") for name, value in stored(thing).items())


def entries(thing: Any) -> Iterator[Any] | None:
    """Returns the entries of a container of Python's, or of a class made from one; None for other objects.

    Of a dict these are its values.
    """
    kind = type(thing)
    if issubclass(kind, dict):
        return iter(list(dict.values(thing)))
    if kind is np.ndarray and thing.dtype == object:
        held: Iterator[Any] = thing.flat
        return held
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
        found = asked & vars(each).keys()
        asked -= found  # a class nearer to the object hides those further off
        yield from ((vars(each)[name], f"{each.__qualname__}.{name}") for name in sorted(found))


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
        value: Any = function.__globals__.get(name)
        kind = type(value)  # a proxy computes its `__class__`
        if issubclass(kind, types.ModuleType):
            names = names_of_module(value)
            yield from ((names.get(each), f"{name}.{each}") for each in names_in(function))
        elif issubclass(kind, type):
            yield value, name
            yield from parts_of_class(value)
        elif is_own_generator(value):
            yield value, f"{name}, which {path} names,"
        elif value is not None:
            yield value, name


def names_of_module(thing: Any) -> dict[str, Any]:
    """Returns the globals of an object that is a module of the user's; of others nothing."""
    names = vars(thing) if issubclass(type(thing), types.ModuleType) else {}
    file = names.get("__file__")
    return names if isinstance(file, str) and not is_library(file) else {}


def is_own_generator(thing: Any) -> bool:
    """Returns true if an object is a random generator with a state, and none of the process's own."""
    kind = type(thing)  # which, unlike `isinstance`, runs nothing of the object's
    if not issubclass(kind, _GENERATORS) or issubclass(kind, random.SystemRandom):
        return False
    if thing is getattr(getattr(tempfile, "_name_sequence", None), "_rng", None):
        return False  # which draws names of temporary files, other ones in each process
    return not any(thing is each for each in _OF_PROCESS)


def changed_by_iterating(dataset: Any) -> list[str]:
    """Returns the names of attributes that iterating an iterable dataset changes; empty for other datasets.

    What is `None` first is left out: a file that is opened on first use is no state. Of iterable datasets within it
    those are counted, too.
    """
    return _changed(dataset, set())


def _changed(dataset: Any, met: set[int]) -> list[str]:
    if id(dataset) in met or not issubclass(type(dataset), IterableDataset):
        return []
    met.add(id(dataset))
    own, kind = all_stored(dataset), type(dataset)
    stored = _operands(functions_of(kind), "STORE_ATTR", "DELETE_ATTR")
    begun = {name for name in stored if own.get(name, of_class(kind, name)) is not None}
    return sorted(begun.union(name for name, value in own.items() if _changed(value, met)))


def _operands(functions: Iterable[types.FunctionType], *opnames: str) -> set[str]:
    """Returns the names that some instructions of functions are about, also of the code within them."""
    codes = (code for each in functions for code in codes_in(each.__code__))
    return set[str]().union(*(_operands_of(code, opnames) for code in codes))


@functools.lru_cache(maxsize=1024)
def _operands_of(code: types.CodeType, opnames: tuple[str, ...]) -> frozenset[str]:
    opcodes = {dis.opmap[name] for name in opnames}
    if opcodes.isdisjoint(code.co_code[::2]):
        return frozenset()  # most code, without the cost of `dis`
    return frozenset(each.argval for each in dis.get_instructions(code) if each.opname in opnames)


def functions_of(kind: type) -> list[types.FunctionType]:
    """Returns the functions in a class of the user's that making samples may call."""
    methods: dict[str, list[types.FunctionType]] = {}
    for each in kind.__mro__:
        for name, value in vars(each).items():
            found = [one for one in _functions(value) if not is_library(one.__code__.co_filename)]
            nearer = methods.get(name, ())
            if found and all("super" in names_in(one) for one in nearer):
                methods[name] = [*nearer, *found]
    waiting = [name for name in _ENTRIES if name in methods]
    waiting = waiting or [name for name in methods if name not in _NOT_FOR_SAMPLES]
    reached = dict.fromkeys(waiting)
    while waiting:
        for function in methods[waiting.pop()]:
            called = [name for name in names_in(function) if name in methods]
            waiting.extend(name for name in called if name not in reached)
            reached.update(dict.fromkeys(called))
    return [function for name in reached for function in methods[name]]


def names_asked(kind: type) -> set[str]:
    """Returns the names of globals and attributes in those functions."""
    return {name for each in functions_of(kind) for name in names_in(each)}


def names_in(function: types.FunctionType) -> Iterator[str]:
    """Yields the names of globals and attributes in a function's code, and in the code within it."""
    for code in codes_in(function.__code__):
        yield from code.co_names


def globals_in(function: types.FunctionType) -> set[str]:
    """Returns the names of globals that a function reads, also in the code within it."""
    return _operands([function], "LOAD_GLOBAL")


def globals_set_by(function: types.FunctionType) -> set[str]:
    """Returns the names of globals that a function sets, also in the code within it."""
    return _operands([function], "STORE_GLOBAL", "DELETE_GLOBAL")


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Yields the functions behind an attribute of a class, also behind decorators."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    while type(value) in (types.FunctionType, CACHED):
        if type(value) is types.FunctionType:
            yield value
        value = vars(value).get("__wrapped__")
