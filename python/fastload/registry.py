"""The registry of recognised classes of other libraries, each with the function that lowers it.

Owns the table and the rule of recognition: the exact class that the library defines, with the library's own
methods. Libraries are never imported here: an entry is a name, resolved once the library has been imported
elsewhere.
"""

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar

import torch
from torch.nn.modules.module import _has_any_global_hook

from fastload.machine.libraries import is_of_module

__all__ = [
    "Entry",
    "NotNative",
    "check_functions",
    "collator",
    "dataset",
    "entries",
    "find",
    "name",
    "refuse",
    "refuse_replaced",
    "state_of",
    "transform",
]

Family = Literal["dataset", "transform", "collator"]

_Lower = TypeVar("_Lower", bound=Callable[..., Any])


class NotNative(Exception):  # noqa: N818 (an answer, not a failure)
    """The reason why native code cannot do something exactly.

    Attributes:
        why: The reason, a clause: `"MyDataset overrides __getitem__"`.
        change: The one change that would make it native, a clause; empty if nothing would.
    """

    def __init__(self, why: str, change: str = "") -> None:
        super().__init__(why, change)
        self.why = why
        self.change = change

    def again(self) -> "NotNative":
        """Returns the same reason without its traceback, to be stored."""
        return NotNative(self.why, self.change)

    @staticmethod
    def joined(several: "Sequence[NotNative]") -> "NotNative":
        """Joins several reasons, without duplicates."""
        whys = dict.fromkeys(each.why for each in several)
        changes = dict.fromkeys(each.change for each in several if each.change)
        return NotNative("; ".join(whys), ", and ".join(changes))

    def __str__(self) -> str:
        return f"{self.why}; to change it, {self.change}" if self.change else self.why


def refuse(why: str, change: str = "") -> NoReturn:
    """Raises `NotNative`."""
    raise NotNative(why, change)


@dataclass(frozen=True)
class Entry:
    """A recognised class or function.

    Attributes:
        path: Its full name, `"torch.utils.data.dataset.Subset"`: the module that defines it.
        methods: The methods that determine its behaviour; the class is not recognised if one is replaced.
        notes: The native cases and the others, for the table in the documentation.
        lower: For a dataset `lower(dataset, memo)`, which returns a structure of `Leaf`s; for a
            transform `lower(transform, chain)`, which extends the chain; for a collate function
            `lower(collate_fn)`, which returns the plan of the same batches. Raises `NotNative`.
        state: For a dataset `state(dataset, memo)`, which returns at little cost all that its native form depends on, to be
            compared by `==`; None for one that is lowered at each epoch.
    """

    path: str
    methods: tuple[str, ...]
    notes: str
    lower: Callable[..., Any]
    state: Callable[[Any, Any], Any] | None = None


# The methods that determine the samples of a dataset and the result of a transform, if a class has them.
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
    "_augmentation_space",
    "_get_policies",
    "_get_random_item",
    "_apply_image_or_video_transform",
)

_IMPORTED = sys.stdlib_module_names | {"torch", "numpy", "PIL"}
"""Packages of which other libraries have functions among their own."""
_ENTRIES: dict[tuple[Family, str], Entry] = {}


def dataset(
    *paths: str,
    methods: Iterable[str] = _INDEXED,
    notes: str,
    state: Callable[[Any, Any], Any] | None = None,
) -> Callable[[_Lower], _Lower]:
    """Registers the functions that lower datasets of these classes, and return their states to be compared."""
    return _register("dataset", paths, methods, notes, state)


def transform(
    *paths: str, methods: Iterable[str] = _CALLED, notes: str
) -> Callable[[_Lower], _Lower]:
    """Registers the function that lowers transforms of these classes, or these functions."""
    return _register("transform", paths, methods, notes)


def collator(*paths: str, methods: Iterable[str], notes: str) -> Callable[[_Lower], _Lower]:
    """Registers the function that lowers collate functions of these classes, or these functions."""
    return _register("collator", paths, methods, notes)


def entries(family: Family) -> Iterator[Entry]:
    """Yields the entries of a family in order of registration."""
    return (entry for (kind, _), entry in _ENTRIES.items() if kind == family)


def find(family: Family, thing: Any) -> Entry | None:
    """Returns the entry of an object's exact class, or of a function.

    Raises:
        NotNative: Its class is known, but a method was replaced.
    """
    kind = thing if isinstance(thing, types.FunctionType) else type(thing)
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
    """Returns the full name of a function or a type, or of an object's type."""
    named = thing if isinstance(thing, type) or inspect.isroutine(thing) else type(thing)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


def state_of(dataset: Any, memo: Any) -> Any:
    """Returns all that the native form of a dataset depends on.

    Raises:
        Exception: It has to be lowered to find that out.
    """
    entry = find("dataset", dataset)
    if entry is None or entry.state is None:
        refuse("its native form is made at each epoch")
    return type(dataset), entry.state(dataset, memo)


def _register(
    family: Family,
    paths: Iterable[str],
    methods: Iterable[str],
    notes: str,
    state: Callable[[Any, Any], Any] | None = None,
) -> Callable[[_Lower], _Lower]:
    methods = tuple(methods)

    def register(lower: _Lower) -> _Lower:
        for path in paths:
            _ENTRIES[family, path] = Entry(path, methods, notes, lower, state)
        return lower

    return register


def _resolve(path: str) -> Any:
    """Returns the object of a full name, without importing anything."""
    module, _, attribute = path.rpartition(".")
    return getattr(sys.modules.get(module), attribute, None)


def _check_original(kind: type, method: str) -> None:
    """Refuses a replaced method: an original one has the globals of a module of its library."""
    owner = next((each for each in kind.__mro__ if method in vars(each)), None)
    if owner is None or owner.__module__ == "builtins":
        return
    function = getattr(vars(owner)[method], "__func__", vars(owner)[method])
    names = getattr(function, "__globals__", {})
    module = names.get("__name__", "")
    same_library = module.partition(".")[0] == owner.__module__.partition(".")[0]
    if not same_library or names is not vars(sys.modules.get(module, sys)):
        refuse_replaced(f"{name(kind)}.{method}", f"{kind.__qualname__}.{method}")


def check_functions(library: str, *modules: str) -> None:
    """Refuses those modules of a library that are imported and in which functions are other code now."""
    for module in filter(None, map(sys.modules.get, modules)):
        for key, function in vars(module).items():
            if type(function) is types.FunctionType:
                names = function.__globals__
                owner = names.get("__name__", "").partition(".")[0]
                is_own = is_of_module(function, names) if owner == library else owner in _IMPORTED
                if not is_own:
                    refuse_replaced(f"{module.__name__}.{key}")


def refuse_replaced(what: str, short: str = "it") -> NoReturn:
    """Refuses a function of a library that is other code now."""
    msg = f"{what} was replaced by other code"
    raise NotNative(msg, f"leave {short} as it is")


def _check_module(module: torch.nn.Module) -> None:
    """Refuses a module with hooks, which run besides its class's `forward`."""
    hooks = module._forward_hooks or module._forward_pre_hooks or _has_any_global_hook()  # type: ignore[no-untyped-call]
    if hooks:
        msg = f"{name(type(module))} has a forward hook, Python code"
        raise NotNative(msg, "remove the hook")
