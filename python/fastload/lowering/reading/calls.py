"""Attributes and calls that are known.

Owns the tables: functions by their identity, methods by the exact type of what they are called on. Anything else
that is called is a function of the user's, which is read, or is refused by its name.
"""

import functools
import os
import os.path
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from fastload.lowering import registry
from fastload.lowering.reading import arrays, attributes, frames, pictures
from fastload.lowering.reading.arithmetic import NUMBERS, SIMPLE, lifted
from fastload.lowering.reading.arrays import METHODS, cast, is_array, to_torch
from fastload.lowering.reading.values import (
    Each,
    Index,
    Made,
    Objects,
    Ragged,
    Rows,
    described,
    objects_of,
)
from fastload.lowering.registry import NotNative, name

__all__ = [
    "attribute",
    "call",
    "callable_of",
    "getter",
    "is_immutable",
    "is_known",
    "is_opened",
    "is_readable",
    "is_sequence",
    "parts",
]

_MOST_PARTS = 256
"""Longest container that a loop or an assignment goes through."""


class Method(NamedTuple):
    """A method of a known type, with what it is called on."""

    of: Any
    name: str


def attribute(value: Any, attribute: str) -> Any:
    """Returns an attribute: a value, a `Method`, or what `attributes` says of objects of the user's.

    Raises:
        NotNative: It is not known.
    """
    if frames.is_of_frames(value):
        if attribute in _FRAME_METHODS:
            return Method(value, attribute)
        return frames.attribute(value, attribute)
    if isinstance(value, pictures.Picture):
        return Method(value, attribute)
    if isinstance(value, Rows) and not value.is_python:
        return _of_rows(value, attribute)
    if isinstance(value, Each):
        return Method(value, attribute)
    if is_array(value):
        if attribute in ("shape", "ndim", "dtype"):
            found = getattr(value, attribute)
            return tuple(found) if attribute == "shape" else found
        return Method(value, attribute)
    kind = type(value)
    if kind is types.ModuleType:
        if attribute not in vars(value):
            raise NotNative(f"{value.__name__} has no {attribute}")
        return vars(value)[attribute]
    if issubclass(kind, type):
        return _of_class(value, attribute)
    if kind in _METHODS:
        return Method(value, attribute)
    if _is_encoding(kind):
        return Method(unwrapped(value), attribute)
    return attributes.of_instance(value, attribute)


def _of_rows(rows: Rows, attribute: str) -> Any:
    if attribute == "T":
        return arrays.T(rows)
    if attribute == "shape":
        return rows.shape
    if attribute == "ndim":
        return rows.ndim
    if attribute == "dtype":
        return rows.probe.dtype
    return Method(rows, attribute)


def _of_class(kind: type, attribute: str) -> Any:
    if type(kind) is not type:
        raise NotNative(f"{name(kind)} has a metaclass")
    found = next((vars(each)[attribute] for each in kind.__mro__ if attribute in vars(each)), None)
    if type(found) not in SIMPLE | {tuple, list, dict} or found is None:
        raise NotNative(f"{name(kind)}.{attribute} is not known")
    return found


def _is_encoding(kind: type) -> bool:
    """Returns whether a class is what tokenizers of transformers return, a dict of a kind."""
    return (kind.__module__, kind.__qualname__) == (
        "transformers.tokenization_utils_base",
        "BatchEncoding",
    )


def unwrapped(value: Any) -> Any:
    """Returns the dict that a tokenizer's encoding is; any other value as it is."""
    if isinstance(value, Each) or not _is_encoding(type(value)):
        return value
    data = attributes.stored_in(value, "data")
    if type(data) is not dict:
        raise NotNative("an encoding without data is not known")
    return data


def getter(container: Any) -> types.FunctionType | None:
    """Returns the `__getitem__` that somebody wrote for the class of a value, or None."""
    kind = type(container)
    if isinstance(container, Each) or kind.__module__ == "builtins" or is_array(container):
        return None
    found = attributes.of_class(kind, "__getitem__")
    is_own = type(found) is types.FunctionType and not frames.is_of_frames(container)
    return found if is_own and not _is_encoding(kind) else None


def callable_of(value: Any, arguments: list[Any]) -> types.FunctionType | None:
    """Returns the `__call__` that somebody wrote for the class of a value, or None."""
    if isinstance(value, Method | type | functools.partial) or is_known(value):
        return None
    if any(isinstance(each, pictures.Picture) for each in arguments):
        return None  # a transform, which is followed
    found = attributes.of_class(type(value), "__call__")
    return found if type(found) is types.FunctionType else None


def is_sequence(value: Any, count: int) -> bool:
    """Returns whether a value is a plain sequence of so many things, and takes any index as such."""
    return (type(value) in (list, tuple) or (is_array(value) and value.ndim > 0)) and (
        len(value) == count
    )


def parts(value: Any, count: int | None = None) -> list[Any]:
    """Returns what a container yields; of what differs between samples, each place of a sample.

    Args:
        value: The container.
        count: How many places are wanted, if that is known.

    Raises:
        NotNative: It is not known, or is long.
    """
    if isinstance(value, Objects) and value.kinds in ({tuple}, {list}) and count is not None:
        if set(map(len, value.values)) != {count}:
            raise NotNative(f"not all samples have {count} values")
        return [Objects([each[at] for each in value.values]) for at in range(count)]
    if isinstance(value, Made) and type(value.structure) in (tuple, list):
        return [Made(each) for each in value.structure]
    if isinstance(value, Rows) and value.ndim and value.shape[0] <= _MOST_PARTS:
        return [arrays.of_rows(value, at) for at in range(value.shape[0])]
    if type(value) not in (list, tuple, range, dict):
        raise NotNative(f"a loop over {described(value)} is not read")
    if len(value) > _MOST_PARTS:
        raise NotNative(f"a loop over {len(value)} things is not read")
    return list(value)


def is_immutable(value: Any) -> bool:
    """Returns whether `value += other` leaves the value itself as it is."""
    if isinstance(value, Index):
        return True
    if isinstance(value, Objects):
        return value.kinds <= SIMPLE | {tuple}
    if isinstance(value, Rows):
        return value.is_scalar
    return type(value) in SIMPLE | {tuple}


def is_opened(value: Any) -> bool:
    """Returns whether a value is a picture, which a with statement closes."""
    return isinstance(value, pictures.Picture)


def is_known(function: Any, arguments: list[Any] | None = None) -> bool:
    """Returns whether a function is in the table, or a transform of the picture that it is given."""
    if id(function) in _BY_IDENTITY or pictures.is_known(function):
        return True
    is_of_picture = any(isinstance(each, pictures.Picture) for each in arguments or ())
    return is_of_picture and registry.find("transform", function) is not None


def is_readable(function: Any, arguments: list[Any]) -> bool:
    """Returns whether a function is somebody's own, to be read where it is called."""
    if type(function) is not types.FunctionType or is_known(function, arguments):
        return False
    package = str(function.__globals__.get("__name__", "")).partition(".")[0]
    return package not in sys.stdlib_module_names and package not in _LIBRARIES


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


def call(
    reader: Any, function: Any, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns what a known function or method returns.

    Args:
        reader: The interpreter.
        function: What is called.
        arguments: By position.
        named: By name.
        words: The function as it is written.

    Raises:
        NotNative: It is not known, or fails.
    """
    if isinstance(function, Method):
        return _method(reader, function, arguments, named, words)
    if id(function) in _BY_IDENTITY:
        try:
            return _BY_IDENTITY[id(function)](reader, *arguments, **named)
        except TypeError as error:
            raise NotNative(f"{words} with these arguments is not known: {error}") from error
    if (known := pictures.call(reader, function, arguments, named)) is not None:
        return known
    raise NotNative(f"it calls {words}, which is not known")


def _method(
    reader: Any, method: Method, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    of, what = method
    if isinstance(of, pictures.Picture):
        return pictures.method(reader, of, what, arguments, named)
    if frames.is_of_frames(of):
        return _FRAME_METHODS[what](of)
    if isinstance(of, Ragged):
        return _of_ragged(of, what, arguments)
    is_rows = isinstance(of, Rows) and not of.is_python
    if is_rows and what in ("size", "dim", "numel", "tolist"):
        return _measured(of, what, arguments)
    if is_rows and what in METHODS:
        try:
            return METHODS[what](of, *arguments, **named)
        except (IndexError, TypeError, ValueError) as error:
            raise NotNative(f"{words}() with these arguments is not known: {error}") from error
    if is_array(of) and what in ("size", "dim", "__len__") and not named:
        return _measured(of, what, arguments)
    if not is_rows and not is_array(of):
        return _of_python(reader, of, what, arguments, named, words)
    raise NotNative(f"it calls {words}, which is not known")


def _measured(array: Any, what: str, arguments: list[Any]) -> Any:
    if what == "tolist" and isinstance(array, Rows) and array.ndim == 0:
        return METHODS["item"](array)
    shape = tuple(array.shape)
    if what == "dim":
        return len(shape)
    is_torch = array.is_torch if isinstance(array, Rows) else type(array) is torch.Tensor
    if what == "size" and is_torch:
        return shape[arguments[0]] if arguments else shape
    if what == "numel":
        return int(np.prod(shape, dtype=np.int64))
    raise NotNative(f"{what} of an array is not known")


def _of_ragged(ragged: Ragged, what: str, arguments: list[Any]) -> Any:
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
        raise NotNative(f"{what}() of arrays of different lengths is not known")
    return _elementwise(ragged, lambda rows: METHODS[what](rows, *arguments))


def _of_python(
    reader: Any, of: Any, what: str, arguments: list[Any], named: dict[str, Any], words: str
) -> Any:
    """Returns what a method of Python's own types returns."""
    if type(of) is list and what in ("append", "extend") or type(of) is dict and what == "update":
        if not reader.is_own(of) or named or any(isinstance(e, Each) for e in arguments[1:]):
            raise NotNative("it changes what it did not make itself")
        added = arguments[0] if len(arguments) == 1 else None
        if what != "append" and type(added) not in (list, tuple, dict):
            raise NotNative(f"{words} with these arguments is not known")
        return getattr(of, what)(added)
    if named:
        raise NotNative(f"{words} with arguments by name is not known")
    kinds = of.kinds if isinstance(of, Objects) else {type(of)}
    if not all(what in _METHODS.get(kind, "").split() for kind in kinds):
        raise NotNative(f"it calls {words}, which is not known")
    if type(of) is dict:
        if what == "get":
            return lifted(of.get, arguments, lambda kind, *_: kind in SIMPLE, words)
        found = list(getattr(of, what)())
        return found
    if type(of) is str and what == "join":
        arguments = [tuple(parts(arguments[0]))] if len(arguments) == 1 else arguments
    allowed = SIMPLE | {tuple, list} | _PATHS

    def may(*kinds: type) -> bool:
        return set(kinds) <= allowed | {dict}

    return lifted(lambda each, *rest: getattr(each, what)(*rest), [of, *arguments], may, words)


_PATHS = frozenset({pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath})
_STR = (
    "capitalize casefold endswith join lower lstrip partition removeprefix removesuffix replace rpartition "
    "rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
)
_METHODS: dict[type, str] = {
    str: _STR,
    dict: "get items keys values",
    list: "append count extend index",
    tuple: "count index",
    int: "bit_length",
    float: "is_integer",
    bool: "bit_length",
    bytes: "decode",
    **dict.fromkeys(_PATHS, "with_suffix with_name joinpath as_posix"),
}
"""Methods that run nobody's code, by the exact type."""

_FRAME_METHODS: dict[str, Callable[[Any], Any]] = {
    "to_numpy": frames.values,
    "tolist": lambda value: _series_list(value),
    "to_list": lambda value: _series_list(value),
}


def _series_list(value: Any) -> Any:
    if not frames.is_frame(value) or value.ndim != 1:
        raise NotNative("tolist() of a row of a frame is not known")
    return value.tolist()


def _len(reader: Any, value: Any) -> Any:
    if frames.is_frame(value):
        return frames.length(value)
    if isinstance(value, Rows) and not value.is_scalar:
        if not value.shape:
            raise NotNative("a tensor without dimensions has no length")
        return value.shape[0]
    if isinstance(value, Ragged):
        return Objects(list(value.lengths))
    if is_array(value):
        return len(value)
    kind = type(value)
    method = None if isinstance(value, Each) else attributes.of_class(kind, "__len__")
    if type(method) is types.FunctionType and not _is_encoding(kind):
        return reader.call(method, [value], {})
    sized = {str, bytes, list, tuple, dict, range, set, frozenset}
    return lifted(len, [value], lambda kind: kind in sized, "len()")


def _number(kind: type) -> Callable[..., Any]:
    def make(_: Any, value: Any = kind()) -> Any:
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
    return lifted(str, [value], lambda kind: kind in SIMPLE | _PATHS, "str()")


def _container(kind: type) -> Callable[..., Any]:
    def make(reader: Any, value: Any = ()) -> Any:
        if isinstance(value, Objects) and value.kinds <= {list, tuple}:
            return Objects([kind(each) for each in value.values])
        return reader.own(kind(parts(value))) if kind is list else kind(parts(value))

    return make


def _dict(reader: Any, *arguments: Any, **named: Any) -> Any:
    if len(arguments) > 1 or (arguments and type(arguments[0]) is not dict):
        raise NotNative("dict() of other than a dict is not known")
    return reader.own(dict(*arguments, **named))


def _isinstance(_: Any, value: Any, kinds: Any) -> bool:
    wanted = kinds if type(kinds) is tuple else (kinds,)
    if not all(type(kind) is type or kind is torch.Tensor for kind in wanted):
        raise NotNative("isinstance() with such classes is not known")
    found = _kinds_of(value)
    answers = {any(kind in each.__mro__ for kind in wanted) for each in found}
    if len(answers) != 1:
        raise NotNative("isinstance() differs from sample to sample")
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
    if isinstance(value, Each):
        raise NotNative(f"isinstance() of {described(value)} is not known")
    return {type(value)}


def _is_tensor(_: Any, value: Any) -> bool:
    return _kinds_of(value) == {torch.Tensor}


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def find(_: Any, *arguments: Any) -> Any:
        if len(arguments) < 2:
            raise NotNative(f"{function.__name__}() of one thing is not known")
        return lifted(function, list(arguments), lambda *kinds: set(kinds) <= NUMBERS, "min or max")

    return find


def _rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *arguments: lifted(
        function, list(arguments), lambda *kinds: set(kinds) <= NUMBERS, function.__name__
    )


def _zip(_: Any, *several: Any) -> Any:
    return list(zip(*map(parts, several), strict=False))


def _enumerate(_: Any, value: Any, start: int = 0) -> Any:
    return list(enumerate(parts(value), start))


def _range(_: Any, *ends: Any) -> Any:
    if not all(type(end) is int for end in ends):
        raise NotNative("a range that differs from sample to sample is not read")
    return range(*ends)


def _join(_: Any, *several: Any) -> Any:
    return lifted(
        os.path.join, list(several), lambda *kinds: set(kinds) <= {str} | _PATHS, "os.path.join"
    )


def _path(_: Any, *several: Any) -> Any:
    return lifted(
        pathlib.Path, list(several), lambda *kinds: set(kinds) <= {str} | _PATHS, "Path()"
    )


def _tensor(reader: Any, data: Any, dtype: Any = None) -> Any:
    _check_modes()
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise NotNative(f"a tensor of dtype {dtype!r} is not known")
    if isinstance(data, Rows) and not data.is_python:
        made = to_torch(data)
        return made if dtype is None else cast(made, dtype)
    if isinstance(data, Ragged):
        return _elementwise(data, lambda rows: _tensor(reader, rows, dtype))
    return _array(reader, data, dtype, is_torch=True)


def _elementwise(ragged: Ragged, call: Callable[[Rows], Rows]) -> Ragged:
    """Returns arrays of different lengths with each element changed by itself."""
    whole = ragged.values[:, None]
    made = call(Rows(whole, whole[:0], ragged.values, is_ours=True))
    array = made.view
    for step in made.steps:
        array = step.call(array)
    return Ragged(array[:, 0], ragged.lengths)


def _array(reader: Any, value: Any, dtype: Any, *, is_torch: bool) -> Any:
    """Returns the array of Python numbers, or of lists of them."""
    if isinstance(value, list | tuple) and any(isinstance(each, Each) for each in value):
        value = lifted(lambda *each: list(each), list(value), lambda *_: True, "a list")
    if not isinstance(value, Each):
        raise NotNative(f"an array of {described(value)} is not known")
    objects = objects_of(value, "an array")
    if objects.kinds in ({torch.Tensor}, {np.ndarray}):
        made = reader.builder.stacked(objects.values)
        if isinstance(made, Ragged):
            raise NotNative("arrays of different lengths are not made tensors of")
        made = to_torch(made) if is_torch else made
        return made if dtype is None else cast(made, dtype)
    made = reader.builder.array(objects.values, dtype, is_torch=is_torch)
    if not is_torch and isinstance(made, Rows) and made.ndim == 0:
        raise NotNative("an array without dimensions is not known")
    return made


def _check_modes() -> None:
    """Refuses to guess what torch makes while somebody has changed how it makes tensors."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        raise NotNative("a mode of torch, as a default device, changes how tensors are made")


def _from_numpy(_: Any, value: Any) -> Any:
    if not isinstance(value, Rows) or value.is_torch or value.is_scalar:
        raise NotNative(f"torch.from_numpy() of {described(value)} is not known")
    return to_torch(value)


def _np_array(reader: Any, value: Any, dtype: Any = None) -> Any:
    if isinstance(value, Rows) and not value.is_python:
        if value.is_torch or value.is_scalar:
            raise NotNative(f"an array of {described(value)} is not known")
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, Ragged):
        raise NotNative("an array of such a value is not known")
    return _array(reader, value, dtype, is_torch=False)


def _np_scalar(kind: Any) -> Callable[..., Any]:
    def make(_: Any, value: Any) -> Any:
        if not isinstance(value, Rows) or value.is_torch or value.is_python:
            raise NotNative(f"{kind.__name__} of {described(value)} is not known")
        return cast(value, kind)

    return make


def _legacy(dtype: torch.dtype) -> Callable[..., Any]:
    def make(reader: Any, value: Any) -> Any:
        _check_modes()
        is_sequence = isinstance(value, Objects) and value.kinds <= {list, tuple}
        if isinstance(value, list | tuple) or is_sequence:
            return _array(reader, value, dtype, is_torch=True)
        raise NotNative(f"a tensor of {described(value)} made so is not known", "use torch.tensor")

    return make


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
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
    zip: _zip,
    enumerate: _enumerate,
    range: _range,
    os.path.join: _join,
    pathlib.Path: _path,
    torch.tensor: _tensor,
    torch.as_tensor: _tensor,
    torch.from_numpy: _from_numpy,
    torch.is_tensor: _is_tensor,
    torch.LongTensor: _legacy(torch.int64),
    torch.FloatTensor: _legacy(torch.float32),
    np.array: _np_array,
    np.asarray: _np_array,
    np.float32: _np_scalar(np.float32),
    np.float64: _np_scalar(np.float64),
    np.int64: _np_scalar(np.int64),
    np.int32: _np_scalar(np.int32),
}
"""The functions that are known, by the very object."""
_BY_IDENTITY = {id(function): known for function, known in _FUNCTIONS.items()}
