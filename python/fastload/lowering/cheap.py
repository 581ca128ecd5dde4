"""Reads which generators a dataset's code draws from, and if its samples cost less than handing them over.

Reads the compiled code of `__getitem__`, or of the `__iter__` of an iterable dataset, and of all functions that
it can reach; runs nothing of the user's. All that the names of such code may refer to are data in memory, known
functions, and functions that are read in turn. So it opens nothing, and draws where it says so; and if it has no loop
but the one that yields, it is cheap. Refuses everything unknown: then a worker measures the cost.
"""

import builtins
import collections
import enum
import functools
import re
import threading
import types
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import (
    ConcatDataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)

from fastload.collate.pack_collate import PackCollate
from fastload.collate.pad_collate import PadCollate
from fastload.lowering.code_effects import IN_PLACE, Chain, Maker
from fastload.lowering.code_names import Names, names_of
from fastload.lowering.known_functions import (
    ATTRIBUTES,
    CHANGES,
    CHANGING_FUNCTIONS,
    COPYING,
    DRAWING_ATTRIBUTES,
    DRAWS,
    FUNCTIONS,
    MAKERS,
    NUMBER_MAKERS,
    QUICK_ATTRIBUTES,
    QUICK_FUNCTIONS,
)
from fastload.lowering.reading.attributes import all_stored, is_plain, of_class

__all__ = [
    *("Code", "Shallow", "drawn_from", "global_of", "read_code", "read_collation"),
    "read_shallowly",
]

_ROW_BYTES = 1 << 17
"""Bytes. The cost of larger samples is measured: one pass over them takes tens of microseconds."""
_ROW_ENTRIES = 1_000
"""The same limit for entries of a list, which are objects."""
_DEPTH = 4
_ALL = 100_000
"""Length up to which all entries of a list are examined; of longer lists, a selection is."""
_FEW = 64
_MOST_OBJECTS = 500
_MOST_FUNCTIONS = 100

_NUMBERS = {int, float, complex, bool, str, bytes, type(None), range, slice, torch.dtype}
_FIXED = {
    *(*_NUMBERS, type(NotImplemented), type(...), re.Pattern),
    *(type(threading.Lock()), type(threading.RLock())),
}
_Cached: Any = type(functools.cache(int))
_OF_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType)
_HOLDERS = (list, tuple, range, dict, Subset, ConcatDataset, TensorDataset)
_DICTS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
_CONTAINERS = (list, tuple, set, frozenset, collections.deque, *_DICTS)
_COLLATIONS = (PadCollate, PackCollate)
_METHODS = (types.FunctionType, staticmethod, classmethod, property)
_ROOTS = (object, tuple, BaseException)
_OF_LIBRARY = ("torch.utils.data.dataset", "typing", "abc")
_PICKLING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
_MADE = ("__init__", "__new__", "__post_init__")
_SPECIAL = (
    "reduce reduce_ex getstate setstate getnewargs replace copy deepcopy repr str del "
    "eq lt le gt ge hash dir sizeof init_subclass class_getitem"
)
_UNASKED = frozenset(f"__{name}__" for name in _SPECIAL.split())
"""Methods that nothing in a sample calls, or that compare."""


class Code(NamedTuple):
    """What code shows.

    Attributes:
        draws: The generators of the process that it may draw from: "torch", "numpy", "python"; None if that is not
            known. Known code opens nothing.
        only_reads: True if it is known, and changes nothing but generators: it may run once more.
        is_cheap: True if it is known, draws nothing, and costs next to nothing.
    """

    draws: frozenset[str] | None
    only_reads: bool = False
    is_cheap: bool = False


def read_code(dataset: Any) -> Code:
    """Reads what makes a sample of a dataset."""
    return _Reader().read_dataset(dataset)


class Shallow(NamedTuple):
    """What code may meet beside its dataset and the values of its attributes.

    Attributes:
        functions: The functions that were read.
        containers: The lists, tuples and dicts, whose entries were met, too: data that stays what it is as long as they
            are the same objects.
    """

    functions: list[types.FunctionType]
    containers: list[Any]


def read_shallowly(dataset: Any) -> tuple[Code, Shallow | None]:
    """Reads what makes a sample of a dataset; returns also what it may meet, None if that is anything else."""
    reader = _Reader()
    code = reader.read_dataset(dataset)
    if not reader.is_shallow:
        return code, None
    return code, Shallow(list(reader.read.values()), reader.containers)


def read_collation(collate_fn: Any) -> Code:
    """Reads a `collate_fn`."""
    if type(collate_fn) in _COLLATIONS:
        return Code(frozenset())
    return _Reader().read_function(collate_fn)


def drawn_from(of_samples: frozenset[str] | None, collate_fn: Any) -> frozenset[str] | None:
    """Returns the generators that samples or their collation may draw from; None if that is not known."""
    of_batch = read_collation(collate_fn).draws
    return None if of_samples is None or of_batch is None else of_samples | of_batch


class _Reader:
    """Reads the code of a dataset, and what its names may refer to.

    Every attribute that the code looks up is looked up at every object that it may meet, whichever it asks.
    """

    def __init__(self) -> None:
        self._draws: set[str] = set()
        self._is_quick = True
        """False if the code may take long: it has loops, nested functions, or functions of unknown cost."""
        self._is_stream = False
        """True if an iterable dataset is read, whose ranges are iterated a sample at a time."""
        self._only_reads = True
        """False if the code may change what it is given."""
        self._only_reads_by_index = False
        """True if `__getitem__` may change its argument unless that is a number; then no other function may call it."""
        self._keeps = False
        """True if a function keeps its results."""
        self._copies = False
        """True if objects are copied, by methods that their classes may have for that."""
        self.is_shallow = True
        """False if what was met lies within other objects, or is held by functions."""
        self.containers: list[Any] = []
        """The outermost lists, tuples and dicts that were met."""
        self.read: dict[int, types.FunctionType] = {}
        """The functions that were read, by identity."""
        self._owners: dict[int, Any] = {}
        """The objects and classes that may be met, by identity."""
        self._makes: dict[type, bool] = {}
        """For each of the classes, whether the code may make instances."""
        self._names: dict[str, None] = {}
        self._stored: set[str] = set()

    def read_dataset(self, dataset: Any) -> Code:
        """Returns what the code of a dataset shows."""
        return self._code(is_known=self._dataset(dataset, is_indexed=True))

    def read_function(self, function: Any) -> Code:
        """Returns what the code of a function shows."""
        return self._code(is_known=self._is_known(function))

    def _code(self, *, is_known: bool) -> Code:
        """Returns what was read, if the attributes are known, too."""
        if not is_known or not self._attributes_are_known():
            return Code(None)
        draws = frozenset(self._draws)
        # results that are kept would be made again, but not the draws in them
        only_reads = self._only_reads and not (self._keeps and draws)
        only_reads &= not self._only_reads_by_index or len(self.read) == 1
        return Code(draws, only_reads, self._is_quick and not draws)

    def _dataset(self, dataset: Any, *, is_indexed: bool = False) -> bool:
        """Reads a dataset; `is_indexed` if its indices are those that the loader has, not another dataset's."""
        kind = type(dataset)
        self.is_shallow &= kind not in _HOLDERS
        if kind in (list, tuple, range, dict):
            return self._is_memory(dataset)
        if kind is Subset and "__getitem__" in vars(Subset):
            return self._is_memory(dataset.indices) and self._dataset(dataset.dataset)
        if kind is ConcatDataset:
            return all(map(self._dataset, dataset.datasets))
        if kind is TensorDataset:
            return all(map(self._is_memory, dataset.tensors))
        if type(getattr(dataset, "__dict__", None)) is not dict or not is_plain(kind):
            return False
        is_stream = self._is_stream = issubclass(kind, IterableDataset)
        if is_stream and of_class(kind, "__next__") is not None:
            return False  # what is its own iterator is not in `__iter__`
        method = of_class(kind, "__iter__" if is_stream else "__getitem__")
        if type(method) is not types.FunctionType or of_class(kind, "__getitems__") is not None:
            return False
        self._owners[id(dataset)] = dataset
        call = of_class(kind, "__call__")
        return self._function(method, is_stream=is_stream, is_indexed=is_indexed) and (
            call is None or self._is_known(call)
        )

    def _function(
        self,
        function: types.FunctionType,
        *,
        makes: bool = False,
        is_stream: bool = False,
        is_indexed: bool = False,
    ) -> bool:
        """Reads a function.

        Args:
            function: The function.
            makes: True if it stores attributes in a new object, as `__init__` does.
            is_stream: True if it may be a generator with a loop.
            is_indexed: True if it is the dataset's method, which is tried with numbers.
        """
        if id(function) in self.read:
            return True
        self.read[id(function)] = function
        names = names_of(function.__code__)
        if names is None or len(self.read) > _MOST_FUNCTIONS:
            return False
        self._names.update(dict.fromkeys(names.of_values))
        self._stored |= names.stored
        self._only_reads_by_index |= is_indexed and not names.only_reads
        only_reads = names.only_reads_by_index if is_indexed else names.only_reads
        self._only_reads &= only_reads and (makes or not names.stored)
        self._only_reads &= all(_makes_new(function, maker) for maker in names.makers)
        self._is_quick &= (makes or not names.stored) and _is_quick(
            names, function.__code__.co_name, is_stream=is_stream
        )
        held = function.__defaults__ or function.__kwdefaults__ or function.__closure__
        self.is_shallow &= not held
        if held and not all(map(self._is_known, _held(function))):
            return False
        for chain in names.of_module:
            value, rest = global_of(function, chain)
            self._names.update(dict.fromkeys(rest))
            if not self._is_known(value):
                return False
        return True

    def _attributes_are_known(self) -> bool:
        """Looks up all attributes at all objects, until nothing new is met."""
        if not self._names and not self._copies:
            return True
        done = 0, 0
        found: set[str] = set()
        while done != (size := (len(self._names), len(self._owners))):
            names, owners = list(self._names), list(self._owners.values())
            for place, owner in enumerate(owners):
                new = names if place >= done[1] else names[done[0] :]
                for name in new:
                    for value in _looked_up(owner, name):
                        found.add(name)
                        if not self._is_known(value):
                            return False
            done = size
        others = [name for name in self._names if name not in found and name not in self._stored]
        if self._copies and any(map(_copies_itself, self._owners.values())):
            return False
        if not DRAWING_ATTRIBUTES.isdisjoint(self._names):
            self._draws.add("torch")
        self._is_quick = self._is_quick and QUICK_ATTRIBUTES.issuperset(others)
        in_place = any(name in DRAWING_ATTRIBUTES and name.endswith("_") for name in self._names)
        self._only_reads &= not in_place and CHANGES.isdisjoint(self._names)
        return all(name in ATTRIBUTES or name in DRAWING_ATTRIBUTES for name in others)

    def _is_known(self, value: Any) -> bool:
        if id(value) in FUNCTIONS:
            if id(value) in DRAWS:
                self._draws.add(DRAWS[id(value)])
            # the second argument of a ufunc may be what it writes to
            self._only_reads &= id(value) not in CHANGING_FUNCTIONS and not isinstance(
                value, np.ufunc
            )
            self._copies |= id(value) in COPYING
            self._is_quick &= id(value) in QUICK_FUNCTIONS and (
                value is not range or self._is_stream
            )
            return True
        kind = type(value)
        if value is get_worker_info:
            return False  # what depends on the worker is left to workers
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return self._is_known(value.__func__) and self._is_known(value.__self__)
        if kind in (staticmethod, classmethod):
            return self._is_known(value.__func__)
        if kind is _Cached:
            self._keeps = True
            return self._is_known(value.__wrapped__)
        if kind is property:
            return self._is_known(value.fget)
        if kind is functools.partial:
            return self._is_partial(value)
        if issubclass(kind, enum.EnumMeta):  # a proxy computes its `__class__`
            self._owners[id(value)] = value
            return self._is_enumeration(value)
        if issubclass(kind, type):
            return self._is_class(value)
        return self._is_memory(value)

    def _is_enumeration(self, kind: Any) -> bool:
        """Returns true if an enumeration has no methods of its own, and its values are data in memory."""
        self.is_shallow = False
        own = (each for each in kind.__mro__ if each.__module__ not in ("enum", "builtins"))
        stored = (each for one in own for each in vars(one).values())
        methods = (each for each in stored if isinstance(each, _METHODS))
        return all(getattr(each, "__module__", "") == "enum" for each in methods) and all(
            self._is_memory(each._value_) for each in kind
        )

    def _is_partial(self, value: functools.partial[Any]) -> bool:
        self.is_shallow = False
        self._only_reads &= IN_PLACE.isdisjoint(value.keywords)
        return all(map(self._is_known, (value.func, *value.args, *value.keywords.values())))

    def _is_class(self, kind: type) -> bool:
        """Returns true if instances of a class may be made."""
        if kind in _NUMBERS or (issubclass(kind, np.generic) and kind.__module__ == "numpy"):
            return True
        if issubclass(kind, BaseException) and kind.__module__ == "builtins":
            return True
        return self._meets(kind, makes=True)

    def _meets(self, kind: type, *, makes: bool) -> bool:
        """Reads the methods of a class that are called without their names."""
        self.is_shallow = False
        if self._makes.get(kind, -1) >= makes:
            return True
        if type(kind).__module__ not in ("builtins", "abc"):
            return False  # a metaclass may do anything
        self._makes[kind] = makes
        self._owners[id(kind)] = kind
        for each in kind.__mro__:
            if each in _ROOTS or each.__module__ in _OF_LIBRARY:
                continue
            for name, value in vars(each).items():
                if isinstance(value, _OF_C) or name in ("__getattr__", "__getattribute__"):
                    return False  # a class that is not written in Python, or looks attributes up by itself
                # what has its own way to another process is left to workers
                self._only_reads &= not makes or name not in _PICKLING
                if not name.startswith("__") or name in _UNASKED or (name in _MADE and not makes):
                    continue
                method = value.__func__ if type(value) in (staticmethod, classmethod) else value
                if type(method) is types.FunctionType and not self._function(
                    method, makes=name in _MADE
                ):
                    return False
        return True

    def _is_object(self, value: Any) -> bool:
        """Returns true if an object is of a class in Python whose methods are known."""
        if id(value) in self._owners:
            return True
        self._owners[id(value)] = value
        if len(self._owners) > _MOST_OBJECTS or not self._meets(type(value), makes=False):
            return False
        return not issubclass(type(value), tuple) or self._entries(tuple.__iter__(value), 0)

    def _is_memory(self, value: Any, depth: int = 0) -> bool:
        """Returns true if a value is data in memory, whose rows are small."""
        kind = type(value)
        if kind in _FIXED or (issubclass(kind, np.generic) and kind.__module__ == "numpy"):
            return True
        if kind is torch.Tensor:
            is_dense = value.is_cpu and value.layout is torch.strided and not value.is_nested
            return is_dense and not value.requires_grad and _is_small(value, value.nbytes)
        if kind in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            self._is_quick &= kind is np.ndarray  # else a file is read
            return _is_small(value, value.nbytes)
        if depth == 0 and kind in (list, tuple, dict) and len(value) <= _ALL:
            self.containers.append(value)
        elif kind is not tuple or depth == 0:  # the entries of a tuple stay the same
            self.is_shallow = False
        if kind in (Subset, ConcatDataset, TensorDataset):
            return self._dataset(value)
        is_array = kind is np.ndarray and value.dtype == object
        if issubclass(kind, enum.Enum):  # asks no `__class__`, which a proxy computes
            return self._is_enumeration(kind)
        if not is_array and kind not in _CONTAINERS:
            return self._is_object(value)
        if kind is collections.defaultdict:
            self._only_reads = False  # to look up an entry may make it
            if not self._is_known(value.default_factory):
                return False
        size = value.size if is_array else len(value)
        if depth == _DEPTH or (depth and size > _ROW_ENTRIES):
            return False
        if is_array or kind is list or kind is tuple:
            step = max(1, size // _ALL)
            entries = value.flat if is_array else value
            return self._entries(entries if step == 1 else entries[::step], depth)
        self._is_quick &= size <= _ALL
        return self._entries(islice(value.values() if kind in _DICTS else value, _ALL), depth)

    def _entries(self, entries: Iterable[Any], depth: int) -> bool:
        """Returns true if entries are data in memory; of many that have one type, a few are examined."""
        listed = entries if type(entries) is list else list(entries)
        kinds = set(map(type, listed))
        if kinds <= _NUMBERS:
            return True
        few = len(kinds) == 1 and len(listed) > _FEW
        return all(
            self._is_memory(each, depth + 1)
            for each in (listed[:: len(listed) // _FEW] if few else listed)
        )


_NOTHING = object()
"""An unknown value."""


def global_of(function: types.FunctionType, chain: Chain) -> tuple[Any, Chain]:
    """Looks up a global, and the attributes that are taken from it at once as long as it is a module.

    Returns what is found, and the attributes that are taken from that.
    """
    value: Any = function.__globals__.get(chain[0], vars(builtins).get(chain[0], _NOTHING))
    for place, name in enumerate(chain[1:], 1):
        if type(value) is not types.ModuleType:
            return value, chain[place:]
        value = vars(value).get(name, _NOTHING)
    return value, ()


def _makes_new(function: types.FunctionType, maker: Maker) -> bool:
    """Returns true if a global is known to make something new each time that it is called."""
    made, rest = global_of(function, maker.chain)
    return not rest and id(made) in (NUMBER_MAKERS if maker.is_of_numbers else MAKERS)


def _is_quick(names: Names, name: str, *, is_stream: bool) -> bool:
    """Returns true if code takes no longer than its functions: a loop only where it yields, and not in itself."""
    calls_itself = name in names.of_values or any(chain[0] == name for chain in names.of_module)
    if not names.is_quick or calls_itself:
        return False
    return (
        names.loops <= 1
        if is_stream
        else names.is_straight and not names.loops and not names.is_generator
    )


def _copies_itself(owner: Any) -> bool:
    """Returns true if the class of an object has a method of its own for copies."""
    kind = owner if issubclass(type(owner), type) else type(owner)
    stored = [of_class(kind, name) for name in ("__copy__", "__deepcopy__", *_PICKLING)]
    return any(isinstance(each, types.FunctionType) for each in stored)


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Yields what a function holds: its cells and its defaults."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            value = _NOTHING
        if name != "__class__":  # which `super()` needs, which is not known
            yield value


def _looked_up(owner: Any, name: str) -> Iterator[Any]:
    """Yields what an attribute of an object, or of a class, may be."""
    is_class = issubclass(type(owner), type)
    kind = owner if is_class else type(owner)
    if isinstance(kind, enum.EnumMeta):  # which has no methods of its own
        if name in kind.__members__:
            yield kind[name]
        return
    for each in kind.__mro__:  # all of them: `super()` may ask the later ones
        if name in each.__dict__:
            stored = each.__dict__[name]
            if type(stored).__name__ == "_tuplegetter":
                stored = None  # one of the tuple's entries
            elif type(stored) is types.MemberDescriptorType:
                stored = None if is_class else getattr(owner, name, None)  # a slot
            yield stored
    if not is_class and name in (own := all_stored(owner)):
        yield own[name]


def _is_small(array: Any, size: int) -> bool:
    """Returns true if a row of an array, or an array without rows, is small."""
    rows = array.shape[0] if array.ndim > 1 or size > _ROW_BYTES else 1
    return bool(size <= _ROW_BYTES * max(1, rows))
