"""Which part of an object does not pickle.

Owns the search: attributes, items and entries, each pickled alone. Refuses to look further than the first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastload.processes.pickling import dumps

__all__ = ["name"]

_DEPTH = 20
_WIDTH = 10_000


def name(error: Exception, value: Any, path: str, attempt: Callable[[Any], object] = dumps) -> None:
    """Has an error of pickling say first which part of `value` it is about.

    Args:
        error: What pickling `value` raised; of a type that is made of a message.
        value: What was pickled.
        path: What it is called.
        attempt: Pickles a part for nothing.
    """
    where, words = _find(value, path, error, attempt)
    error.args = (f"{where}: {words}",)


def _find(
    value: Any, path: str, error: Exception, attempt: Callable[[Any], object]
) -> tuple[str, Exception]:
    """Returns the path of the innermost part that does not pickle, and its error."""
    for _ in range(_DEPTH):
        for step, part in _parts(value):
            try:
                attempt(part)
            except Exception as inner:
                value, path, error = part, path + step, inner
                break
        else:
            break
    return path, error


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the parts of a value, each with how it is reached."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        parts = [(f"[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [(f".{field}", part) for field, part in zip(value._fields, value, strict=True)]
    elif isinstance(value, list | tuple):
        parts = [(f"[{place}]", part) for place, part in enumerate(value)]
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    state = {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}
    state |= getattr(value, "__dict__", {})
    parts += [(f".{attribute}", part) for attribute, part in state.items()]
    yield from parts[:_WIDTH]
