"""The positions from which streams go on: of objects of C code, such as a `BytesIO`, and among an object's values."""

import array
import contextvars
import io
import mmap
from collections.abc import Callable
from typing import Any

from fastload.processes.reach import ATOMS, DATA, entries, is_users_class
from fastload.processes.shared_state import hazard, is_iterator

__all__ = ["HAVE_POSITION", "goes_on_from", "position"]

_SMALL_BYTES = 4_096
"""Of larger arrays the length alone is looked at."""
HAVE_POSITION: dict[type, Callable[[Any], Any]] = {
    io.BytesIO: io.BytesIO.tell,
    io.StringIO: io.StringIO.tell,
    mmap.mmap: mmap.mmap.tell,
    bytearray: lambda thing: bytes(thing) if len(thing) <= _SMALL_BYTES else len(thing),
    array.array: lambda thing: thing.tobytes() if len(thing) <= _SMALL_BYTES else len(thing),
    contextvars.ContextVar: lambda thing: thing.get(None),
}
"""What tells from where a stream goes on, by the class of an object of C code."""


def position(thing: Any) -> Any:
    """Returns from where a stream goes on in an object of those classes; None if it is closed."""
    try:
        return HAVE_POSITION[type(thing)](thing)
    except ValueError:
        return None


def goes_on_from(value: Any) -> bool:
    """Returns true if a value is a position, or data: an iterator, a number, a container, an object of the user's."""
    kind = type(value)
    if value is None or (not is_iterator(kind) and hazard(value) is not None):
        return False
    is_plain = kind in ATOMS or kind in DATA or entries(value) is not None
    return is_plain or is_iterator(kind) or is_users_class(kind)
