"""Calls: which functions are known, which are read where they are called, and which are neither.

Owns the choice; functions are known by their identity. Functions of libraries are not read, those of the user's
are.
"""

import functools
import math
import sys
import types
from typing import Any

import torch

from fastload import registry
from fastload.lowering.reading import attributes, frames, functions, pictures, tensors
from fastload.lowering.reading.arithmetic import PATHS, SIMPLE, VIEWS, lifted
from fastload.lowering.reading.arrays import is_array
from fastload.lowering.reading.elements import elementwise
from fastload.lowering.reading.members import METHODS_OF, Method
from fastload.lowering.reading.row_methods import method_of
from fastload.lowering.reading.values import Each, Objects, Ragged, Rows, fields
from fastload.machine.libraries import is_library
from fastload.registry import refuse

__all__ = ["call"]


_LIBRARIES = frozenset(
    {"PIL", "cv2", "datasets", "numpy", "pandas", "scipy", "torch", "torchvision", "transformers"}
)
_CHANGES: dict[type, tuple[str, ...]] = {list: ("append", "extend"), dict: ("update",)}
_MEASURES = frozenset({"size", "dim", "numel"})
_OF_RAGGED = frozenset(
    {"float", "double", "long", "int", "to", "clone", "astype", "copy", "contiguous"}
)
_BY_IDENTITY = {
    id(function): known for function, known in (functions.FUNCTIONS | tensors.FUNCTIONS).items()
}


def call(
    reader: Any, function: Any, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a function or method that is known, or is the user's own and read here.

    Args:
        reader: The interpreter.
        function: The function that is called, or a `Method`.
        arguments: By position.
        named: By name.
        words: The function as it is written.
    """
    if isinstance(function, Method):
        return _of_value(reader, function, arguments, named, words)
    if id(function) in _BY_IDENTITY:
        try:
            return _BY_IDENTITY[id(function)](reader, *arguments, **named)
        except TypeError as error:
            refuse(f"{words} with these arguments is not known: {error}")
    has_picture = any(isinstance(each, pictures.Picture) for each in arguments)
    is_transform = has_picture and registry.find("transform", function) is not None
    if not is_transform and pictures.maker(function) is None:
        if type(function) is types.FunctionType and not _is_of_library(function):
            return reader.call(function, arguments, named)
        own = attributes.of_class(type(function), "__call__")
        is_instance = not isinstance(function, type | functools.partial)
        if is_instance and type(own) is types.FunctionType and not has_picture:
            return reader.call(own, [function, *arguments], named)
    if (known := pictures.call(reader, function, arguments, named)) is not None:
        return known
    return refuse(f"it calls {words}, which fastload cannot read")


def _is_of_library(function: types.FunctionType) -> bool:
    package = str(function.__globals__.get("__name__", "")).partition(".")[0]
    is_named_so = package in sys.stdlib_module_names or package in _LIBRARIES
    return is_named_so and is_library(function.__code__.co_filename)


def _of_value(
    reader: Any, method: Method, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a known method."""
    of, what = method
    is_rows = isinstance(of, Rows) and not of.is_python
    try:
        if isinstance(of, pictures.Picture):
            return pictures.method(of, what, arguments, named)
        if frames.is_of_frames(of):
            return frames.values(of, *arguments, **named)
        if isinstance(of, Ragged):
            return _of_ragged(of, what, arguments, named)
        if what in _MEASURES and (is_rows or is_array(of)):
            return _measured(of, what, *arguments, **named)
        if is_rows and (known := method_of(of, what)) is not None:
            return known(of, *arguments, **named)
    except (IndexError, TypeError, ValueError) as error:
        refuse(f"{words}() with these arguments is not known: {error}")
    if is_rows or is_array(of):
        refuse(f"it calls {words}, which fastload cannot read")
    return _of_python(reader, of, what, arguments, named, words)


def _measured(array: Any, what: str, dim: int | None = None) -> Any:
    is_torch = array.is_torch if isinstance(array, Rows) else type(array) is torch.Tensor
    if not is_torch or not (dim is None or (what == "size" and type(dim) is int)):
        refuse(f"{what} of an array is not known")
    shape = tuple(array.shape)
    if what == "size":
        return shape if dim is None else shape[dim]
    return len(shape) if what == "dim" else math.prod(shape)


def _of_ragged(ragged: Ragged, what: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    def call(rows: Rows) -> Rows:
        method = method_of(rows, what) if what in _OF_RAGGED else None
        if method is None:
            refuse(f"{what}() of arrays of different lengths is not known")
        return method(rows, *arguments, **named)

    return elementwise(ragged, call)


def _of_python(
    reader: Any, of: Any, what: str, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a method of Python's own types."""
    if what in _CHANGES.get(type(of), ()):
        if not reader.is_own(of) or named or any(isinstance(e, Each) for e in arguments[1:]):
            refuse("it changes an object that __getitem__ did not create")
        if len(arguments) != 1:
            refuse(f"{words} with these arguments is not known")
        added = arguments[0]
        if what != "append" and reader.is_iterator(added):
            added = reader.parts(added)
        if what != "append" and type(added) not in {list, tuple, dict} | VIEWS:
            refuse(f"{words} with these arguments is not known")
        reader.changes += 1
        return getattr(of, what)(added)
    if named:
        refuse(f"{words} with arguments by name is not known")
    kinds = of.kinds if isinstance(of, Objects) else {type(of)}
    if isinstance(of, Objects) and kinds == {dict} and what in ("items", "keys", "values"):
        return getattr(fields(of.values), what)()
    if not all(what in METHODS_OF.get(kind, "").split() for kind in kinds):
        refuse(f"it calls {words}, which fastload cannot read")
    whole = of, *arguments
    is_each = any(isinstance(each, Each) for each in whole)
    if what == "get" and is_each and any(map(reader.is_mixed, whole)):
        refuse(f"{words} of values that differ from sample to sample is not known")
    if type(of) is dict:
        if what == "get":
            return lifted(of.get, arguments, lambda kind, *_: kind in SIMPLE, words)
        view = getattr(of, what)()
        return reader.own(view) if reader.is_own(of) else view
    if type(of) is str and what == "join":
        arguments = [tuple(reader.parts(arguments[0]))] if len(arguments) == 1 else arguments
    known = {*SIMPLE, *PATHS, tuple, list, dict}
    return lifted(
        lambda each, *rest: getattr(each, what)(*rest),
        [of, *arguments],
        lambda *of: known.issuperset(of),
        words,
    )
