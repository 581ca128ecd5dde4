"""The source of a function, as a syntax tree that is known to be what the function runs; and its names meanwhile.

Owns the proof: the file is compiled again, and the code object at the function's place must be equal to the
function's own. So a file that was edited since, a decorator, a macro or a rewritten assertion is noticed.
"""

import ast
import builtins
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any

from fastload.registry import NotNative, refuse

__all__ = ["Scope", "bound", "codes_in", "parsed", "unmangled"]

_NOT_PLAIN = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
)


def parsed(code: types.CodeType) -> ast.FunctionDef | NotNative:
    """Returns the definition that a code object was compiled from, or the reason why it is not known."""
    return _parsed(code, code.co_filename)  # code of two files may be equal


@functools.lru_cache(maxsize=256)
def _parsed(code: types.CodeType, file: str) -> ast.FunctionDef | NotNative:
    name = code.co_name
    if code.co_flags & _NOT_PLAIN:
        return NotNative(f"{name} is a generator, a coroutine or takes any number of arguments")
    if name == "<lambda>":
        return NotNative("a lambda is not read")
    found = _found(code, file)
    if isinstance(found, NotNative):
        linecache.checkcache(file)  # it may have changed since it was read
        found = _found(code, file)
    return found


def _found(code: types.CodeType, file: str) -> ast.FunctionDef | NotNative:
    """Returns the definition that a code object was compiled from, in the file as it was read last."""
    name = code.co_name
    lines = linecache.getlines(file)
    if not lines:
        return NotNative(f"the source of {name} is not there")
    try:
        tree, module = _compiled("".join(lines), file)
    except (SyntaxError, ValueError):
        return NotNative(f"the file of {name} does not compile")
    if code not in codes_in(module):
        return NotNative(
            f"the source of {name} is not what was compiled; it may have changed since"
        )
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name == name
        and min([node.lineno, *(each.lineno for each in node.decorator_list)])
        == code.co_firstlineno
    ]
    return found[0] if len(found) == 1 else NotNative(f"the definition of {name} is not found")


@functools.lru_cache(maxsize=16)
def _compiled(source: str, file: str) -> tuple[ast.Module, types.CodeType]:
    tree = ast.parse(source)
    return tree, compile(tree, file, "exec", dont_inherit=True)  # the source is not parsed again


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yields a code object, and those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


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
        if self._outer is None and identifier not in self._locals:
            refuse(f"{identifier} is not a local name")
        self._names[identifier] = value

    def set_outside(self, identifier: str, value: Any) -> None:
        """Gives a value to a name of the function, also where a comprehension does so."""
        scope = self
        while scope._outer is not None:
            scope = scope._outer
        scope.set(identifier, value)

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
