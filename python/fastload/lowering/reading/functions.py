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
from fastload.lowering.reading.arithmetic import NUMBERS, PATHS, SIMPLE, VIEWS, lifted, with_text
from fastload.lowering.reading.arrays import is_array
from fastload.lowering.reading.elements import number
from fastload.lowering.reading.members import is_encoding
from fastload.lowering.reading.values import Cells, Each, Index, Objects, Ragged, Rows, described
from fastload.registry import refuse

__all__ = ["FUNCTIONS"]

_OF_NUMBERS: tuple[Callable[..., Any], ...] = (min, max, abs, round, math.ceil, math.floor)
_OURS = Each | attributes.Bound | frames.Indexer | Cells
"""Types of this package, which stand for values of other types."""
_NOTHING = object()


def _len(reader: Any, value: Any) -> Any:
    if frames.is_frame(value):
        return len(value.index)
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
    sized = {str, bytes, list, tuple, dict, range, set, frozenset, Cells, *VIEWS}
    return lifted(len, [value], lambda kind: kind in sized, "len()")


def _number(kind: type) -> Callable[..., Any]:
    def make(_: Any, value: Any) -> Any:
        if kind is int and isinstance(value, Index):
            return value
        if isinstance(value, Rows) and not value.is_python:
            if value.ndim and not value.is_torch and kind is not bool:
                refuse(f"{kind.__name__}() of an array with dimensions is not known")
            value = number(value)
            if kind is not bool and value.dtype == (np.int64 if kind is int else np.float64):
                return value
        return lifted(kind, [value], lambda of: of in NUMBERS | {str}, f"{kind.__name__}()")

    return make


def _str(_: Any, value: Any = "") -> Any:
    return lifted(str, [with_text(value)], lambda kind: kind in SIMPLE | PATHS, "str()")


def _container(kind: type) -> Callable[..., Any]:
    def make(reader: Any, value: Any = ()) -> Any:
        if isinstance(value, Objects) and value.kinds <= {list, tuple}:
            return Objects([kind(each) for each in value.values])
        made = kind(reader.parts(value))
        return reader.own(made) if kind is list else made

    return make


def _dict(reader: Any, *arguments: Any, **named: Any) -> Any:
    if len(arguments) > 1 or (arguments and type(arguments[0]) is not dict):
        refuse("dict() of other than a dict is not known")
    return reader.own(dict(*arguments, **named))


def _isinstance(_: Any, value: Any, kinds: Any) -> bool:
    wanted = kinds if type(kinds) is tuple else (kinds,)
    are_known = all(type(kind) is type or kind is torch.Tensor for kind in wanted)
    if not are_known or torch.Size in wanted:  # a shape is read as a tuple
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
            return {{"i": int, "f": float, "b": bool}[value.dtype.kind]}
        if value.is_torch:
            return {torch.Tensor}
        if value.is_scalar:
            return {type(value.dtype.type())}
        owner = type(value.owner)  # a memory map, whose class its rows keep in some operations only
        return {np.ndarray, owner} if issubclass(owner, np.ndarray) else {np.ndarray}
    if isinstance(value, _OURS):
        refuse(f"isinstance() of {described(value)} is not known")
    return {type(value)}


def _each(function: Callable[..., Any], kinds: frozenset[type], words: str) -> Callable[..., Any]:
    """Returns the function that calls another with values of these types."""
    return lambda _, *values: lifted(
        function, list(values), lambda *of: kinds.issuperset(of), words
    )


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


def _hasattr(_: Any, value: Any, attribute: Any) -> bool:
    return _getattr(_, value, attribute, _NOTHING) is not _NOTHING


def _zip(reader: Any, *several: Any) -> Any:
    return reader.own(zip(*map(reader.looped, several), strict=False))


def _enumerate(reader: Any, value: Any, start: int = 0) -> Any:
    return reader.own(enumerate(reader.looped(value), start))


def _range(_: Any, *ends: Any) -> Any:
    if not all(type(end) is int for end in ends):
        refuse("a range that differs from sample to sample is not read")
    return range(*ends)


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
    getattr: _getattr,
    hasattr: _hasattr,
    **{each: _each(each, NUMBERS, each.__name__) for each in _OF_NUMBERS},
    zip: _zip,
    enumerate: _enumerate,
    range: _range,
    os.path.join: _each(os.path.join, PATHS | {str}, "os.path.join"),
    pathlib.Path: _each(pathlib.Path, PATHS | {str}, "Path()"),
    torch.is_tensor: lambda _, value: _isinstance(_, value, torch.Tensor),
}
"""The functions that are known, by the very object."""
