"""Functions of Python's own that are known.

Owns what each returns for values that differ from sample to sample.
"""

import math
import os.path
import pathlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.lowering.reading import attributes, frames
from fastload.lowering.reading.arithmetic import NUMBERS, PATHS, SIMPLE, lifted
from fastload.lowering.reading.arrays import is_array
from fastload.lowering.reading.members import is_encoding, parts
from fastload.lowering.reading.row_methods import METHODS
from fastload.lowering.reading.values import Cells, Each, Index, Objects, Ragged, Rows, described
from fastload.registry import refuse

__all__ = ["FUNCTIONS"]

_NOTHING = object()
_OURS = Each | attributes.Bound | frames.Indexer | Cells
"""Types of this package, which stand for values of other types."""


def _len(reader: Any, value: Any) -> Any:
    if frames.is_frame(value):
        return frames.length(value)
    if isinstance(value, Rows) and not value.is_scalar:
        if not value.shape:
            refuse("a tensor without dimensions has no length")
        return value.shape[0]
    if isinstance(value, Ragged):
        return Objects(list(value.lengths))
    if is_array(value):
        return len(value)
    kind = type(value)
    method = None if isinstance(value, Each) else attributes.of_class(kind, "__len__")
    if type(method) is types.FunctionType and not is_encoding(kind):
        return reader.call(method, [value], {})
    sized = {str, bytes, list, tuple, dict, range, set, frozenset, Cells}
    return lifted(len, [value], lambda kind: kind in sized, "len()")


def _number(kind: type) -> Callable[..., Any]:
    def make(_: Any, value: Any) -> Any:
        if kind is int and isinstance(value, Index):
            return value
        if isinstance(value, Rows) and not value.is_python:
            value = METHODS["item"](value)
            if kind is not bool and value.probe.dtype == (np.int64 if kind is int else np.float64):
                return value
        return lifted(kind, [value], lambda of: of in NUMBERS | {str}, f"{kind.__name__}()")

    return make


def _str(_: Any, value: Any = "") -> Any:
    if isinstance(value, Rows) and value.is_scalar and not value.is_python:
        from_scalars = value.probe.dtype.kind in "iu" and not value.steps
        if from_scalars:
            return lifted(str, [METHODS["item"](value)], lambda kind: kind is int, "str()")
    return lifted(str, [value], lambda kind: kind in SIMPLE | PATHS, "str()")


def _container(kind: type) -> Callable[..., Any]:
    def make(reader: Any, value: Any = ()) -> Any:
        if isinstance(value, Objects) and value.kinds <= {list, tuple}:
            return Objects([kind(each) for each in value.values])
        return reader.own(kind(parts(value))) if kind is list else kind(parts(value))

    return make


def _dict(reader: Any, *arguments: Any, **named: Any) -> Any:
    if len(arguments) > 1 or (arguments and type(arguments[0]) is not dict):
        refuse("dict() of other than a dict is not known")
    return reader.own(dict(*arguments, **named))


def _isinstance(_: Any, value: Any, kinds: Any) -> bool:
    wanted = kinds if type(kinds) is tuple else (kinds,)
    if not all(type(kind) is type or kind is torch.Tensor for kind in wanted):
        refuse("isinstance() with such classes is not known")
    found = _kinds_of(value)
    answers = {any(kind in each.__mro__ for kind in wanted) for each in found}
    if len(answers) != 1:
        refuse("isinstance() differs from sample to sample")
    return answers.pop()


def _kinds_of(value: Any) -> set[type]:
    if isinstance(value, Index):
        return {int}
    if isinstance(value, Objects):
        return value.kinds
    if isinstance(value, Rows):
        if value.is_python:
            return {{"i": int, "f": float, "b": bool}[value.probe.dtype.kind]}
        if value.is_torch:
            return {torch.Tensor}
        return {type(value.probe.dtype.type())} if value.is_scalar else {type(value.owner)}
    if isinstance(value, _OURS):
        refuse(f"isinstance() of {described(value)} is not known")
    return {type(value)}


def _is_tensor(_: Any, value: Any) -> bool:
    return _isinstance(_, value, torch.Tensor)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def find(_: Any, *arguments: Any) -> Any:
        if len(arguments) < 2:
            refuse(f"{function.__name__}() of one thing is not known")
        return lifted(function, list(arguments), lambda *kinds: set(kinds) <= NUMBERS, "min or max")

    return find


def _rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *arguments: lifted(
        function, list(arguments), lambda *kinds: set(kinds) <= NUMBERS, function.__name__
    )


def _hasattr(_: Any, value: Any, attribute: Any) -> bool:
    return _getattr(_, value, attribute, _NOTHING) is not _NOTHING


def _getattr(_: Any, value: Any, attribute: Any, *default: Any) -> Any:
    """Returns an attribute of an object of a user's class, or the default of a missing one."""
    kind = type(value)
    is_other = isinstance(value, _OURS | type) or kind.__module__ == "builtins"
    if is_other or type(attribute) is not str:
        refuse(f"an attribute of {described(value)} by its name is not known")
    own = attributes.all_stored(value)
    is_missing = attribute not in own and not default
    if is_missing or not attributes.is_plain(kind) or attributes.is_of_class(kind, attribute):
        refuse(f"{attribute} of {described(value)} is not known")
    return own.get(attribute, *default)


def _zip(_: Any, *several: Any) -> Any:
    return list(zip(*map(parts, several), strict=False))


def _enumerate(_: Any, value: Any, start: int = 0) -> Any:
    return list(enumerate(parts(value), start))


def _range(_: Any, *ends: Any) -> Any:
    if not all(type(end) is int for end in ends):
        refuse("a range that differs from sample to sample is not read")
    return range(*ends)


def _join(_: Any, *several: Any) -> Any:
    return lifted(
        os.path.join, list(several), lambda *kinds: set(kinds) <= {str} | PATHS, "os.path.join"
    )


def _path(_: Any, *several: Any) -> Any:
    return lifted(pathlib.Path, list(several), lambda *kinds: set(kinds) <= {str} | PATHS, "Path()")


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    len: _len,
    int: _number(int),
    float: _number(float),
    bool: _number(bool),
    str: _str,
    list: _container(list),
    tuple: _container(tuple),
    dict: _dict,
    isinstance: _isinstance,
    min: _extreme(min),
    max: _extreme(max),
    abs: _rounded(abs),
    round: _rounded(round),
    getattr: _getattr,
    hasattr: _hasattr,
    math.ceil: _rounded(math.ceil),
    math.floor: _rounded(math.floor),
    zip: _zip,
    enumerate: _enumerate,
    range: _range,
    os.path.join: _join,
    pathlib.Path: _path,
    torch.is_tensor: _is_tensor,
}
"""The functions that are known, by the very object."""
