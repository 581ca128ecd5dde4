"""The names of a function while it is read: parameters, locals, closures, globals, and what is built in."""

import builtins
import types
from typing import Any

from fastload.registry import refuse

__all__ = ["Scope", "bound", "unmangled"]


class Scope:
    """The names of one function while it is read."""

    def __init__(self, function: types.FunctionType, names: dict[str, Any]) -> None:
        self._function = function
        self._names = names
        self._locals = frozenset(function.__code__.co_varnames + function.__code__.co_cellvars)
        self._outer: Scope | None = None

    @property
    def where(self) -> str:
        """The name of the function."""
        return str(self._function.__name__)

    def child(self) -> "Scope":
        """Returns the scope of a comprehension, which sees the names of this one."""
        inner = Scope(self._function, {})
        inner._outer = self
        return inner

    def set(self, identifier: str, value: Any) -> None:
        """Gives a value to a local name."""
        self._names[identifier] = value

    def get(self, identifier: str) -> Any:
        """Returns the value of a name here."""
        scope: Scope | None = self
        while scope is not None:
            if identifier in scope._names:
                return scope._names[identifier]
            scope = scope._outer
        code = self._function.__code__
        if identifier in code.co_freevars:
            try:
                return self._function.__closure__[code.co_freevars.index(identifier)].cell_contents  # type: ignore[index]
            except ValueError:
                refuse(f"{identifier} is not set yet")
        if identifier in self._locals:
            refuse(f"{identifier} is not set yet")
        names = self._function.__globals__
        if identifier in names:
            return names[identifier]
        function: Any = self._function
        built_in = function.__builtins__
        if built_in is not vars(builtins) or identifier not in built_in:
            refuse(f"{identifier} is not defined")
        return built_in[identifier]


def bound(function: types.FunctionType, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Returns the names of a function's parameters with their arguments."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if len(arguments) > len(positional):
        refuse(f"{function.__name__} is given too many arguments")
    names = dict(zip(positional, arguments, strict=False))
    allowed = {*positional[code.co_posonlyargcount :], *keywords}
    if not named.keys() <= allowed or named.keys() & names.keys():
        refuse(f"{function.__name__} is given arguments that it does not take")
    defaults = function.__defaults__ or ()
    given = {
        **dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)),
        **(function.__kwdefaults__ or {}),
        **names,
        **named,
    }
    if missing := {*positional, *keywords} - given.keys():
        refuse(f"{function.__name__} is not given {', '.join(sorted(missing))}")
    return given


def unmangled(identifier: str) -> str:
    """Refuses a name that the compiler makes another of, within a class."""
    if identifier.startswith("__") and not identifier.endswith("__"):
        refuse(f"{identifier} is private to its class")
    return identifier
