"""`Copies`: what a worker owns of a loader's dataset, collation and worker_init_fn.

Python objects are copied with all objects that they refer to, as another process would have them.
Shared are classes, functions, modules, locks, arrays, tensors and long lists; of those that may be
changed in place and of handles the path is noted. Calls nothing of the user's but what
`copy.copy` calls.
"""

import collections
import copy
import copyreg
import enum
import functools
import io
import random
import tarfile
import types
import weakref
import zipfile
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = ["LONG", "Copied", "Copies", "Found", "copied"]

LONG = 100_000
"""A list or dict of more entries is shared."""

_DEEP = 1_000
"""In a list or dict of more entries, only datasets, modules and callables are copied themselves."""

_NESTED = 50
"""Depth below which nested objects are shared."""

_PLAIN = {
    *(bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis)),
    *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, np.dtype),
}
_CUSTOMS = (
    *("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
    *("__getnewargs__", "__getnewargs_ex__"),
)
"""The methods by which classes say how they are copied."""

_DRAWING = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
_GLOBAL = (
    torch.default_generator,
    np.random.mtrand._rand,
    random._inst,
)
"""The global generators, which stand for the worker's in a worker thread as in a process."""

_SHARED_MODULES = {
    *("_thread", "threading", "queue", "_queue", "multiprocessing", "concurrent", "asyncio"),
    *("logging", "weakref", "_weakref", "contextvars"),
    "datasets.table",  # which would be written to a file
}
"""Packages and modules whose objects are there to be shared, or never change."""


_HANDLES = (io.IOBase, tarfile.TarFile, zipfile.ZipFile)

_MARKS = {"__dict__", "__slots__", "__weakref__"}

_unpicklable: "weakref.WeakKeyDictionary[type, bool]" = weakref.WeakKeyDictionary()


class Found(NamedTuple):
    """An object and its path, as in `dataset.images`."""

    path: str
    thing: Any


class Copies:
    """Copies for one worker.

    Attributes:
        shared: Arrays, tensors and long containers that are not copied.
        handles: Objects with a position or a native handle, which threads would share.
        modules: The modules of the code that was seen.
    """

    def __init__(self) -> None:
        self.shared: list[Found] = []
        self.handles: list[Found] = []
        self.modules: set[str] = set()
        self._made: dict[int, tuple[Any, Any]] = {}
        self._depth = 0

    def of(self, thing: Any, path: str) -> Any:
        """Returns the worker's copy of the object at a path."""
        if type(thing) in _PLAIN:
            return thing
        if (made := self._made.get(id(thing))) is not None:
            return made[1]
        if self._depth > _NESTED:
            return thing
        self._depth += 1
        try:
            new = self._copy(thing, path)
        finally:
            self._depth -= 1
        self._made[id(thing)] = thing, new  # both are kept, so that no id is used again
        return new

    def _copy(self, thing: Any, path: str) -> Any:
        kind = type(thing)
        if isinstance(thing, torch.Tensor | np.ndarray):
            return self._share(thing, path)
        if any(thing is each for each in _GLOBAL):
            return thing
        if isinstance(thing, random.SystemRandom):
            return thing
        if kind is torch.Generator or isinstance(thing, _DRAWING):
            return self._generator(thing, path)
        if isinstance(thing, type | enum.Enum | types.ModuleType | np.generic):
            return thing
        if isinstance(thing, types.FunctionType):
            self.modules.add(thing.__module__ or "")
            return thing
        if isinstance(thing, types.BuiltinFunctionType):
            return self._native(thing, path)
        if isinstance(thing, types.MethodType):
            return types.MethodType(thing.__func__, self.of(thing.__self__, path))
        if isinstance(thing, functools.partial):
            return self._partial(thing, path)
        if isinstance(thing, list | tuple | dict | set | collections.deque):
            return self._container(thing, path)
        if not _SHARED_MODULES.isdisjoint((kind.__module__, kind.__module__.partition(".")[0])):
            return thing
        if _is_handle(thing):
            self.handles.append(Found(path, thing))
            return thing
        return self._instance(thing, path) if _is_python(thing) else thing

    def _share(self, thing: Any, path: str) -> Any:
        self.shared.append(Found(path, thing))
        return thing

    def _generator(self, thing: Any, path: str) -> Any:
        try:
            return copy.deepcopy(thing)
        except Exception:  # of a class of the user's
            self.handles.append(Found(path, thing))
            return thing

    def _native(self, thing: Any, path: str) -> Any:
        """Returns a native function; bound to the copy of an object if it is a method of one."""
        owner = thing.__self__
        if owner is None or isinstance(owner, types.ModuleType | type):
            return thing
        if any(owner is each for each in _GLOBAL):
            return lambda *arguments: getattr(owner, thing.__name__)(*arguments)
        new = self.of(owner, path)
        return thing if new is owner else getattr(new, thing.__name__)

    def _partial(self, thing: Any, path: str) -> Any:
        arguments = [self.of(each, f"{path}.args[{n}]") for n, each in enumerate(thing.args)]
        keywords = {key: self.of(each, f"{path}.{key}") for key, each in thing.keywords.items()}
        return type(thing)(self.of(thing.func, f"{path}.func"), *arguments, **keywords)

    def _container(self, thing: Any, path: str) -> Any:
        """Copies a list, tuple, dict, set or deque, and in it what has to be."""
        if len(thing) > LONG and not isinstance(thing, tuple):
            return self._share(thing, path)
        own = self._followed(thing.values() if isinstance(thing, dict) else thing)
        if isinstance(thing, tuple):
            return self._tuple(thing, path, own)
        try:
            new = copy.copy(thing)
        except Exception:  # of a class of the user's
            self.handles.append(Found(path, thing))
            return thing
        self._made[id(thing)] = thing, new  # before its parts, which may refer to it
        if isinstance(new, dict):
            for key, value in list(new.items()):
                if type(value) in own:
                    dict.__setitem__(new, key, self.of(value, f"{path}[{key!r}]"))
        elif isinstance(new, list | collections.deque):
            for n, value in enumerate(list(new)):
                if type(value) in own:
                    new[n] = self.of(value, f"{path}[{n}]")
        return self._attributes(thing, new, path)

    def _tuple(self, thing: Any, path: str, own: set[type]) -> Any:
        if not own:
            return thing
        parts = [
            self.of(value, f"{path}[{n}]") if type(value) in own else value
            for n, value in enumerate(thing)
        ]
        if all(new is old for new, old in zip(parts, thing, strict=True)):
            return thing
        if hasattr(thing, "_make"):
            return thing._make(parts)
        return tuple(parts) if type(thing) is tuple else thing

    def _followed(self, values: Iterable[Any]) -> set[type]:
        """Returns the types of the values that are copied themselves."""
        kinds = set(map(type, values)) - _PLAIN
        size = len(values)  # type: ignore[arg-type]
        return kinds if size <= _DEEP else {kind for kind in kinds if _is_structure(kind)}

    def _instance(self, thing: Any, path: str) -> Any:
        """Copies an object of a class written in Python."""
        self.modules.update(kind.__module__ for kind in type(thing).__mro__[:-1])
        try:
            new = _shallow(thing)
        except Exception:  # whatever its class raises where it cannot be copied
            self.handles.append(Found(path, thing))
            return thing
        if new is thing:
            return thing
        self._made[id(thing)] = thing, new  # before its parts, which may refer to it
        return self._attributes(thing, new, path)

    def _attributes(self, thing: Any, new: Any, path: str) -> Any:
        """Copies the attributes that a thing still shares with its copy, whose class may have copied some."""
        names, kept = getattr(new, "__dict__", None), getattr(thing, "__dict__", None)
        if isinstance(names, dict) and isinstance(kept, dict):
            for name, value in list(names.items()):
                if kept.get(name) is value:
                    names[name] = self.of(value, f"{path}.{name}")
        for name in getattr(copyreg, "_slotnames")(type(new)):  # noqa: B009 (not in its stub)
            value = getattr(new, name, None)
            if value is not None and value is getattr(thing, name, None):
                object.__setattr__(new, name, self.of(value, f"{path}.{name}"))
        return new


def _shallow(thing: Any) -> Any:
    """Returns a shallow copy; calls code of the thing's class only if it says how it is copied."""
    kind = type(thing)
    own = any(getattr(kind, each, None) is not getattr(object, each, None) for each in _CUSTOMS)
    names = getattr(thing, "__dict__", None)
    if own or not isinstance(names, dict) or kind.__itemsize__ or _natively_new(kind):
        return copy.copy(thing)
    new = object.__new__(kind)
    new.__dict__.update(names)
    for name in getattr(copyreg, "_slotnames")(kind):  # noqa: B009
        if hasattr(thing, name):
            object.__setattr__(new, name, getattr(thing, name))
    return new


def _natively_new(kind: type) -> bool:
    """Returns true if instances of a class are made by another native class than object."""
    return any(
        isinstance(vars(each).get("__new__"), types.BuiltinFunctionType)
        for each in kind.__mro__[:-1]
    )


def _is_python(thing: Any) -> bool:
    """Returns true if an object has attributes of a class written in Python."""
    return hasattr(thing, "__dict__") or bool(getattr(copyreg, "_slotnames")(type(thing)))  # noqa: B009


def _is_structure(kind: type) -> bool:
    """Returns true if a type is one of datasets, modules or callables."""
    if issubclass(kind, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    known = torch.utils.data.Dataset, torch.nn.Module, types.MethodType
    return issubclass(kind, known) or any("__call__" in vars(each) for each in kind.__mro__)


def _is_handle(thing: Any) -> bool:
    """Returns true if an object holds a position or a native handle, so that it must stay with one thread.

    A file and a generator have a position, and a database connection serves one query at a time. Such objects cannot be
    copied, which is how those of unknown libraries are recognised: they do not pickle.
    """
    if isinstance(thing, _HANDLES):
        return True
    kind = type(thing)
    if _is_written_in_python(kind):
        return False
    if hasattr(kind, "__next__"):
        return True
    if kind not in _unpicklable:
        _unpicklable[kind] = not _pickles(thing)
    return _unpicklable[kind]


def _is_written_in_python(kind: type) -> bool:
    """Returns true if a class was made by a `class` statement, or derives from one that was."""
    return any(not _MARKS.isdisjoint(vars(each)) for each in kind.__mro__)


def _pickles(thing: Any) -> bool:
    if type(thing) in copyreg.dispatch_table:  # a compiled regular expression
        return True
    try:
        thing.__reduce_ex__(4)
    except Exception:  # TypeError by custom; each library has its own
        return False
    return True


class Copied(NamedTuple):
    """One worker's own parts of a loader, and what was found on the way."""

    copies: Copies
    dataset: Any
    collate_fn: Any
    worker_init_fn: Any


def copied(dataset: Any, collate_fn: Any, worker_init_fn: Any) -> Copied:
    """Copies the parts of a loader for one worker; what they share remains shared."""
    copies = Copies()
    parts = {"dataset": dataset, "collate_fn": collate_fn, "worker_init_fn": worker_init_fn}
    return Copied(copies, **{path: copies.of(part, path) for path, part in parts.items()})
