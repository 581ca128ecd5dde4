"""Fingerprints of datasets, computed without making samples.

Covers an object's state, the code of its functions and methods, the globals and class attributes of the user's code,
the fingerprints of Hugging Face datasets, and size and time of the files of columns, but not files that Python code
reads. Invariant: objects with equal fingerprints are equal; equal objects may have different ones.
"""

import hashlib
import io
import pickle
import sys
import sysconfig
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from fastload.bad_samples.sample_files import stamp
from fastload.columns import Column, Tar
from fastload.machine.libraries import is_library

__all__ = ["fingerprint"]

_MOST_BYTES = 64 << 20
"""Bytes of state above which no fingerprint is computed."""

_INSTALLED = (
    *{sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")},
    str(Path(__file__).parents[1]),
)
"""Folders of packages that are not the user's code."""


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
            return str, (_name(value),), (methods, value.__bases__, _attributes(value))
        if isinstance(value, ModuleType):
            return str, (value.__name__,)
        if type(value) in (torch.Tensor, torch.nn.Parameter) and _is_plain(value):
            data = (
                value.detach()
                .resolve_conj()
                .resolve_neg()
                .contiguous()
                .reshape(-1)
                .view(torch.uint8)
            )
            form = type(value), value.dtype, tuple(value.shape), value.requires_grad
            return tuple, ((form, data.numpy()),)
        if isinstance(value, Column | Tar):
            stamps = list(map(stamp, getattr(value, "_paths", ())))
            return tuple, ((type(value), value.__reduce__(), stamps),)
        if type(value).__module__ == "datasets.arrow_dataset" and hasattr(value, "_fingerprint"):
            return tuple, ((type(value).__qualname__, value._fingerprint),)
        return NotImplemented


def _is_plain(value: torch.Tensor) -> bool:
    """Returns true if bytes in memory are the values of a tensor, whose pickle has the address of its storage."""
    is_dense = value.device.type == "cpu" and value.layout is torch.strided
    return is_dense and not (value.is_quantized or value.is_nested) and value.nbytes <= _MOST_BYTES


def _of_python(value: Any) -> bool:
    """Returns true if a function or a class belongs to Python itself, so that its name identifies it."""
    module = value.__module__ or ""
    file = getattr(sys.modules.get(module), "__file__", None)  # those built in have none
    is_named_so = module.partition(".")[0] in sys.stdlib_module_names
    return is_named_so and (not file or is_library(file))


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _is_installed(path: str | None) -> bool:
    """Returns true if code comes from an installed package, whose globals and attributes are not read."""
    return (path or "").startswith(_INSTALLED)


def _attributes(kind: type) -> dict[str, Any]:
    """Returns the attributes of a user's class that are not methods."""
    if _is_installed(getattr(sys.modules.get(kind.__module__), "__file__", None)):
        return {}
    return {
        name: _ordered(value)
        for name, value in vars(kind).items()
        if _function(value) is None and name != "_abc_impl" and not name.startswith("__")
    }


def _function(attribute: Any) -> FunctionType | None:
    """Returns the function of a class's attribute, if it is a method."""
    if isinstance(attribute, cached_property):
        attribute = attribute.func
    for name in ("__func__", "fget"):
        attribute = getattr(attribute, name, attribute)
    return attribute if isinstance(attribute, FunctionType) else None


def _behaviour(function: FunctionType) -> tuple[Any, ...]:
    """Returns the objects that determine a function's behaviour."""
    closure = [cell.cell_contents for cell in function.__closure__ or ()]
    code = function.__code__
    named = {} if _is_installed(code.co_filename) else _named(_names(code), function.__globals__)
    return _code(code), function.__defaults__, function.__kwdefaults__, closure, named


def _named(names: set[str], space: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of the globals that code names, and of the attributes of the user's modules among them."""
    found = {name: _ordered(space[name]) for name in sorted(names) if name in space}
    for name, value in list(found.items()):
        if isinstance(value, ModuleType) and not _is_installed(
            getattr(value, "__file__", "<built in>")
        ):
            own = vars(value)
            found |= {
                f"{name}.{each}": _ordered(own[each]) for each in sorted(names) if each in own
            }
    return found


def _names(code: CodeType) -> set[str]:
    """Returns the names of globals and attributes in code, and in functions within it."""
    within = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*within)


def _code(code: CodeType) -> tuple[Any, ...]:
    """Returns the objects that determine the behaviour of code, without its location."""
    constants = [
        _code(each) if isinstance(each, CodeType) else repr(_ordered(each))
        for each in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, constants


def _ordered(value: Any) -> Any:
    """Returns a set as a list in an order that is the same in all processes, and anything else as it is."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else value
