"""Fingerprints of datasets, computed without making samples.

Covers an object's state, the code of its functions and methods, the fingerprints of Hugging Face datasets, and
size and time of the files of columns, but not files that Python code reads. Invariant: objects with equal
fingerprints are equal; equal objects may have different ones.
"""

import hashlib
import io
import pickle
import sys
from types import CodeType, FunctionType
from typing import Any

from fastload.bad_samples.sample_files import stamp
from fastload.columns import Column

__all__ = ["fingerprint"]

_MOST_BYTES = 64 << 20
"""Bytes of state above which no fingerprint is computed."""


def fingerprint(*parts: Any) -> str | None:
    """Returns the fingerprint of objects; None if their state cannot be read or is too large.

    Args:
        *parts: Datasets, fields, options.
    """
    sink = _Sink()
    try:
        _Pickler(sink, protocol=5).dump(parts)
    except Exception:  # from users' code that reduces objects to their state
        return None
    return sink.digest.hexdigest()


class _Sink(io.RawIOBase):
    """Hashes the bytes that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self._written = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._written += len(view)
        if self._written > _MOST_BYTES:
            msg = "the state of an object is too large"
            raise ValueError(msg)
        self.digest.update(view)
        return len(view)


class _Pickler(pickle.Pickler):
    """Pickles objects, with replacements for those whose names or state say too little or too much."""

    def reducer_override(self, value: Any) -> Any:
        # cycles go through the state, which is written after the object is memoized
        if isinstance(value, FunctionType | type) and _of_python(value):
            return NotImplemented
        if isinstance(value, FunctionType):
            return str, (_name(value),), _behaviour(value)
        if isinstance(value, type):
            methods = [_behaviour(each) for each in map(_function, vars(value).values()) if each]
            return str, (_name(value),), (methods, value.__bases__)
        if isinstance(value, Column):
            return tuple, ((type(value), value.__reduce__(), _stamps(value)),)
        if type(value).__module__ == "datasets.arrow_dataset" and hasattr(value, "_fingerprint"):
            return tuple, ((type(value).__qualname__, value._fingerprint),)
        return NotImplemented


def _of_python(value: Any) -> bool:
    """Returns true if a function or a class belongs to Python itself, so that its name identifies it."""
    return (value.__module__ or "").partition(".")[0] in sys.stdlib_module_names


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _function(attribute: Any) -> FunctionType | None:
    """Returns the function of a class's attribute, if it is a method."""
    for name in ("__func__", "fget"):
        attribute = getattr(attribute, name, attribute)
    return attribute if isinstance(attribute, FunctionType) else None


def _behaviour(function: FunctionType) -> tuple[Any, ...]:
    """Returns the objects that determine a function's behaviour."""
    closure = [cell.cell_contents for cell in function.__closure__ or ()]
    return _code(function.__code__), function.__defaults__, function.__kwdefaults__, closure


def _code(code: CodeType) -> tuple[Any, ...]:
    """Returns the objects that determine the behaviour of code, without its location."""
    constants = [
        _code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, constants


def _stamps(column: Column) -> list[tuple[int | None, int | None]]:
    """Returns size and time of the files that a column reads."""
    shards: Any = getattr(column, "_shards", None)
    paths = getattr(column, "_paths", ()) if shards is None else shards.paths
    return list(map(stamp, paths))
