"""What is recognised: classes of other libraries, each with the function that lowers it.

Owns the table, and the rule of what counts as recognised: the exact class that the library
defines, whose decisive methods are the library's own. Libraries are never imported here: an entry
is a name, and is resolved once somebody else has imported the library.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch.nn.modules.module import _has_any_global_hook

__all__ = [
    "Entry",
    "NotNative",
    "collator",
    "dataset",
    "entries",
    "find",
    "name",
    "others",
    "reader",
    "transform",
]

Family = Literal["dataset", "transform", "collator"]

_Lower = TypeVar("_Lower", bound=Callable[..., Any])


class NotNative(Exception):  # noqa: N818 (an answer, not a failure)
    """Something that no native code does exactly.

    Attributes:
        why: What it is, a clause: `"MyDataset overrides __getitem__"`.
        change: The one change that would make it native, a clause; empty where nothing would.
    """

    def __init__(self, why: str, change: str = "") -> None:
        super().__init__(why, change)
        self.why = why
        self.change = change

    def again(self) -> "NotNative":
        """Returns the same reason without the frames that it came through, to be kept."""
        return NotNative(self.why, self.change)

    @staticmethod
    def joined(several: "Sequence[NotNative]") -> "NotNative":
        """Returns one reason of several, in which each is told once."""
        whys = dict.fromkeys(each.why for each in several)
        changes = dict.fromkeys(each.change for each in several if each.change)
        return NotNative("; ".join(whys), ", and ".join(changes))

    def __str__(self) -> str:
        return f"{self.why}; to change it, {self.change}" if self.change else self.why


@dataclass(frozen=True)
class Entry:
    """One class (or function) that is recognised.

    Attributes:
        family: What it is.
        path: Its full name, `"torch.utils.data.dataset.Subset"`: the module that defines it.
        methods: Those that decide what it does; a replaced one makes the class unrecognised.
        notes: What of it is native, and what is not: for the table in the documentation.
        lower: For a dataset `lower(dataset, memo)`, which returns a structure of `Leaf`s; for a
            transform `lower(transform, chain)`, which extends the chain; for a collate function
            `lower(collate_fn)`, which returns what makes the same batches. Raises `NotNative`.
    """

    family: Family
    path: str
    methods: tuple[str, ...]
    notes: str
    lower: Callable[..., Any]


# What decides the samples of a dataset, and the result of a transform, where a class has it.
_INDEXED = ("__getitem__", "__getitems__", "__len__")
_CALLED = (
    "__call__",
    "forward",
    "transform",
    "make_params",
    "get_params",
    "check_inputs",
    "_needs_transform_list",
    "_call_kernel",
)

_ENTRIES: dict[tuple[Family, str], Entry] = {}
_OTHERS: list[Callable[..., Any]] = []


def dataset(
    *paths: str, methods: Iterable[str] = _INDEXED, notes: str
) -> Callable[[_Lower], _Lower]:
    """Registers the function that lowers datasets of these classes."""
    return _register("dataset", paths, methods, notes)


def transform(
    *paths: str, methods: Iterable[str] = _CALLED, notes: str
) -> Callable[[_Lower], _Lower]:
    """Registers the function that lowers transforms of these classes, or these functions."""
    return _register("transform", paths, methods, notes)


def collator(*paths: str, methods: Iterable[str], notes: str) -> Callable[[_Lower], _Lower]:
    """Registers the function that lowers collate functions of these classes, or these functions."""
    return _register("collator", paths, methods, notes)


def others(lower: _Lower) -> _Lower:
    """Registers the function that lowers datasets of classes that are in no library."""
    _OTHERS.append(lower)
    return lower


def reader() -> Callable[..., Any]:
    """Returns the function that lowers datasets of classes that are in no library."""
    return _OTHERS[-1]


def entries(family: Family) -> Iterator[Entry]:
    """Yields the entries of a family, in the order of their registration."""
    return (entry for entry in _ENTRIES.values() if entry.family == family)


def find(family: Family, thing: Any) -> Entry | None:
    """Returns the entry of a thing's exact class, or of the function that it is.

    Raises:
        NotNative: Its class is known, but its methods are not the library's own by now.
    """
    kind = thing if hasattr(thing, "__code__") else type(thing)
    entry = _ENTRIES.get((family, f"{kind.__module__}.{kind.__qualname__}"))
    if entry is None or _resolve(entry.path) is not kind:
        return None
    if isinstance(kind, type):
        own = getattr(thing, "__dict__", {})
        for method in entry.methods:
            if method in own:
                msg = f"this {name(kind)} has a {method} of its own"
                raise NotNative(msg, "leave it out")
            _check_original(kind, method)
        if isinstance(thing, torch.nn.Module):
            _check_module(thing)
    return entry


def name(thing: Any) -> str:
    """Returns what a function or a type is called, or else the type of a thing."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


def _register(
    family: Family, paths: Iterable[str], methods: Iterable[str], notes: str
) -> Callable[[_Lower], _Lower]:
    methods = tuple(methods)

    def register(lower: _Lower) -> _Lower:
        for path in paths:
            _ENTRIES[family, path] = Entry(family, path, methods, notes, lower)
        return lower

    return register


def _resolve(path: str) -> Any:
    """Returns what a full name means now, without importing anything."""
    module, _, attribute = path.rpartition(".")
    return getattr(sys.modules.get(module), attribute, None)


def _check_original(kind: type, method: str) -> None:
    """Refuses a method that was replaced: a library's own one has the globals of a module of its."""
    owner = next((each for each in kind.__mro__ if method in vars(each)), None)
    if owner is None or owner.__module__ == "builtins":
        return
    function = getattr(vars(owner)[method], "__func__", vars(owner)[method])
    names = getattr(function, "__globals__", {})
    module = names.get("__name__", "")
    same_library = module.partition(".")[0] == owner.__module__.partition(".")[0]
    if not same_library or names is not vars(sys.modules.get(module, sys)):
        msg = f"{name(kind)}.{method} was replaced by other code"
        raise NotNative(msg, f"leave {kind.__qualname__}.{method} as it is")


def _check_module(module: torch.nn.Module) -> None:
    """Refuses a module that calls other code than its class's `forward`."""
    hooks = module._forward_hooks or module._forward_pre_hooks or _has_any_global_hook()  # type: ignore[no-untyped-call]
    if hooks:
        msg = f"{name(type(module))} has a forward hook, Python code"
        raise NotNative(msg, "remove the hook")
