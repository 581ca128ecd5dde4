"""Finds the part of an object that cannot be pickled.

Owns the search: attributes, items and entries, each pickled alone. Stops at the first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastload.processes.pickling import dumps

__all__ = ["name_part"]

_DEPTH = 20
_WIDTH = 10_000


def name_part(
    error: Exception, value: Any, path: str, attempt: Callable[[Any], object] = dumps
) -> None:
    """Puts the part of `value` that cannot be pickled in front of the error's message.

    Args:
        error: The error of pickling `value`; its type takes a message.
        value: The pickled object.
        path: Its name.
        attempt: Pickles a part and discards the result.
    """
    where, words = _find(value, path, error, attempt)
    error.args = (f"{where}: {words}",)


def _find(
    value: Any, path: str, error: Exception, attempt: Callable[[Any], object]
) -> tuple[str, Exception]:
    """Returns the path of the innermost part that cannot be pickled, and its error."""
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
