"""Calls: which functions are known, which are read where they are called, and which are neither.

Owns the choice; functions are known by their identity. Functions of libraries are not read, those of the user's
are.
"""

import functools
import sys
import types
from typing import Any

from fastload import registry
from fastload.lowering.reading import attributes, functions, pictures, tensors
from fastload.lowering.reading.members import Method
from fastload.lowering.reading.methods import call_method
from fastload.registry import refuse

__all__ = ["call", "callable_of", "is_opened", "is_readable"]


_LIBRARIES = (
    "PIL",
    "cv2",
    "datasets",
    "numpy",
    "pandas",
    "scipy",
    "torch",
    "torchvision",
    "transformers",
)


_BY_IDENTITY = {
    id(function): known for function, known in (functions.FUNCTIONS | tensors.FUNCTIONS).items()
}


def callable_of(value: Any, arguments: list[Any]) -> types.FunctionType | None:
    """Returns the `__call__` of a user's class, or None."""
    if isinstance(value, Method | type | functools.partial) or _is_known(value):
        return None
    if any(isinstance(each, pictures.Picture) for each in arguments):
        return None  # a transform, which is followed
    found = attributes.of_class(type(value), "__call__")
    return found if type(found) is types.FunctionType else None


def is_opened(value: Any) -> bool:
    """Returns true if a value is a picture, which a with statement closes."""
    return isinstance(value, pictures.Picture)


def _is_known(function: Any, arguments: list[Any] | None = None) -> bool:
    """Returns true if a function is in the table, or a transform of the picture that it is given."""
    if id(function) in _BY_IDENTITY or pictures.is_known(function):
        return True
    is_of_picture = any(isinstance(each, pictures.Picture) for each in arguments or ())
    return is_of_picture and registry.find("transform", function) is not None


def is_readable(function: Any, arguments: list[Any]) -> bool:
    """Returns true if a function is the user's own and is read where it is called."""
    if type(function) is not types.FunctionType or _is_known(function, arguments):
        return False
    package = str(function.__globals__.get("__name__", "")).partition(".")[0]
    return package not in sys.stdlib_module_names and package not in _LIBRARIES


def call(
    reader: Any, function: Any, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns the result of a known function or method.

    Args:
        reader: The interpreter.
        function: The function that is called.
        arguments: By position.
        named: By name.
        words: The function as it is written.

    Raises:
        NotNative: It is not known, or fails.
    """
    if isinstance(function, Method):
        return call_method(reader, function, arguments, named, words)
    if id(function) in _BY_IDENTITY:
        try:
            return _BY_IDENTITY[id(function)](reader, *arguments, **named)
        except TypeError as error:
            refuse(f"{words} with these arguments is not known: {error}")
    if (known := pictures.call(reader, function, arguments, named)) is not None:
        return known
    return refuse(f"it calls {words}, which is not known")
