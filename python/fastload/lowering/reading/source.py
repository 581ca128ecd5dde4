"""The source of a function, as a syntax tree that is known to be what the function runs.

Owns the proof: the file is compiled again, and the code object at the function's place must be equal to the
function's own. So a file that was edited since, a decorator, a macro or a rewritten assertion is noticed.
"""

import ast
import functools
import inspect
import linecache
import types
from collections.abc import Iterator

from fastload.registry import NotNative

__all__ = ["parsed"]

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
    lines = linecache.getlines(file)
    if not lines:
        return NotNative(f"the source of {name} is not there")
    try:
        tree, module = _compiled("".join(lines), file)
    except (SyntaxError, ValueError):
        return NotNative(f"the file of {name} does not compile")
    if code not in _codes(module):
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
    return ast.parse(source), compile(source, file, "exec", dont_inherit=True)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yields a code object, and those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
