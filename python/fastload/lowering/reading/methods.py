"""Calls of methods that are known.

Owns what a method may be given. Methods of arrays are in `row_methods`; those of Python's own types are called,
one sample after the other.
"""

from typing import Any

import numpy as np
import torch

from fastload.lowering.reading import frames, pictures
from fastload.lowering.reading.arithmetic import PATHS, SIMPLE, lifted
from fastload.lowering.reading.arrays import is_array
from fastload.lowering.reading.elements import elementwise
from fastload.lowering.reading.members import METHODS_OF, Method, parts
from fastload.lowering.reading.row_methods import METHODS
from fastload.lowering.reading.values import Each, Objects, Ragged, Rows
from fastload.registry import refuse

__all__ = ["call_method"]

_MEASURES = ("size", "dim", "numel", "tolist")


def call_method(
    reader: Any, method: Method, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a known method; the arguments are those of `calls.call`.

    Raises:
        NotNative: It is not known, or fails.
    """
    of, what = method
    if isinstance(of, pictures.Picture):
        return pictures.method(reader, of, what, arguments, named)
    is_rows = isinstance(of, Rows) and not of.is_python
    try:
        if frames.is_of_frames(of):
            return frames.METHODS[what](of, *arguments, **named)
        if isinstance(of, Ragged):
            return _of_ragged(of, what, arguments, named)
        if (is_rows or is_array(of)) and what in _MEASURES:
            return _measured(of, what, *arguments, **named)
        if is_rows and what in METHODS:
            return METHODS[what](of, *arguments, **named)
    except (IndexError, TypeError, ValueError) as error:
        refuse(f"{words}() with these arguments is not known: {error}")
    if not is_rows and not is_array(of):
        return _of_python(reader, of, what, arguments, named, words)
    return refuse(f"it calls {words}, which is not known")


def _measured(array: Any, what: str, dim: int | None = None) -> Any:
    if what == "tolist" and isinstance(array, Rows) and array.ndim == 0 and dim is None:
        return METHODS["item"](array)
    is_torch = array.is_torch if isinstance(array, Rows) else type(array) is torch.Tensor
    is_asked = dim is None or (what == "size" and type(dim) is int)
    if what == "tolist" or not is_torch or not is_asked:
        refuse(f"{what} of an array is not known")
    shape = tuple(array.shape)
    if what == "dim":
        return len(shape)
    if what == "numel":
        return int(np.prod(shape, dtype=np.int64))
    return shape if dim is None else shape[dim]


def _of_ragged(ragged: Ragged, what: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    if what not in (
        "float",
        "double",
        "long",
        "int",
        "to",
        "clone",
        "astype",
        "copy",
        "contiguous",
    ):
        refuse(f"{what}() of arrays of different lengths is not known")
    return elementwise(ragged, lambda rows: METHODS[what](rows, *arguments, **named))


def _fields(dicts: Objects) -> dict[Any, Objects]:
    """Returns the values of dicts that have the same keys, by their keys."""
    keys = {tuple(each) if set(map(type, each)) <= {str, int} else () for each in dicts.values}
    if len(keys) != 1:
        refuse("dicts of several keys")
    return {key: Objects([each[key] for each in dicts.values]) for key in keys.pop()}


def _of_python(
    reader: Any, of: Any, what: str, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a method of Python's own types."""
    if (type(of) is list and what in ("append", "extend")) or (
        type(of) is dict and what == "update"
    ):
        if not reader.is_own(of) or named or any(isinstance(e, Each) for e in arguments[1:]):
            refuse("it changes what it did not make itself")
        added = arguments[0] if len(arguments) == 1 else None
        if what != "append" and type(added) not in (list, tuple, dict):
            refuse(f"{words} with these arguments is not known")
        reader.changes += 1
        return getattr(of, what)(added)
    if named:
        refuse(f"{words} with arguments by name is not known")
    kinds = of.kinds if isinstance(of, Objects) else {type(of)}
    if isinstance(of, Objects) and kinds == {dict} and what in ("items", "keys", "values"):
        return list(getattr(_fields(of), what)())
    if not all(what in METHODS_OF.get(kind, "").split() for kind in kinds):
        refuse(f"it calls {words}, which is not known")
    whole = of, *arguments
    is_each = any(isinstance(each, Each) for each in whole)
    if what == "get" and is_each and any(map(reader.is_mixed, whole)):
        refuse(f"{words} of values that differ from sample to sample is not known")
    if type(of) is dict:
        if what == "get":
            return lifted(of.get, arguments, lambda kind, *_: kind in SIMPLE, words)
        return list(getattr(of, what)())
    if type(of) is str and what == "join":
        arguments = [tuple(parts(arguments[0]))] if len(arguments) == 1 else arguments
    allowed = SIMPLE | {tuple, list} | PATHS

    def may(*kinds: type) -> bool:
        return set(kinds) <= allowed | {dict}

    return lifted(lambda each, *rest: getattr(each, what)(*rest), [of, *arguments], may, words)
