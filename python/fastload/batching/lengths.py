"""Lengths of samples: of sequences, arrays, tensors and columns; and of a field, its size along one dimension."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fastload import _lib
from fastload.columns import Ragged, Rows
from fastload.lowering import Leaf
from fastload.memory import layout
from fastload.units import counted

__all__ = [
    "ABSENT",
    "LONGEST",
    "Field",
    "Misfit",
    "Shape",
    "along",
    "lengths_of",
    "part_of",
    "shape_of",
    "words",
]

LONGEST = (1 << 32) - 1
"""The largest length that a sample can have."""

Field = str | int | tuple[Any, ...] | Callable[[Any], Any] | None
"""A name, a position, the path to a field; a function of a sample; None for the sample itself."""

Shape = tuple[int, ...]

ABSENT = -1
"""Stands for a dimension that a sample does not have, where others have it."""


def lengths_of(source: Any) -> _lib.Lengths:
    """Returns the length of each sample.

    Args:
        source: One integer per sample, as a sequence, an array, a tensor or `Rows`; or a `Ragged` column, whose
            offsets give the lengths.

    Raises:
        TypeError: Not integers, or more than one per sample.
        ValueError: A length that is negative or above 4294967295.
    """
    if isinstance(source, _lib.Lengths):
        return source
    if isinstance(source, Ragged):
        source = source._core
    if isinstance(source, _lib.Column):
        return _lib.Lengths(source)
    if isinstance(source, Rows):
        source = source._data
    if isinstance(source, torch.Tensor):
        source = source.detach().cpu()
    array = np.asarray(source if hasattr(source, "__array__") else list(source))
    if not array.size and array.ndim == 1:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        msg = f"lengths are one integer per sample, found {counted(array.ndim, 'dimension')} of {array.dtype}"
        raise TypeError(msg)
    if array.dtype == np.uint64 and (longest := int(array.max())) > LONGEST:
        msg = f"a sample has length {longest}; a length is an integer from 0 to {LONGEST}"
        raise ValueError(msg)
    return _lib.Lengths(_lib.Rows(*layout.of_array(array.astype(np.int64, copy=False))))


class Misfit(str):
    """The reason why a value has no length, as the end of a sentence about it."""

    __slots__ = ()


def part_of(sample: Any, field: Field) -> Any:
    """Returns the field of a sample.

    Raises:
        KeyError: The sample has no such field.
    """
    if callable(field):
        return field(sample)
    for step in () if field is None else field if isinstance(field, tuple) else (field,):
        try:
            named = hasattr(sample, "_fields") or (
                is_dataclass(sample) and type(sample) is not Leaf
            )
            sample = getattr(sample, step) if named and isinstance(step, str) else sample[step]
        except (AttributeError, IndexError, KeyError, TypeError):
            msg = f"samples have no field {field!r}"
            raise KeyError(msg) from None
    return sample


def shape_of(value: Any) -> Shape | Misfit:
    """Returns the sizes of a value; an integer counts as a value of that length."""
    kind = type(value)
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return tuple(value.shape) or _number(value.item(), f"{kind.__name__} of {value.dtype}")
    if isinstance(value, int | float | complex):
        return _number(value, kind.__name__)
    if isinstance(value, str | bytes | Mapping):
        return Misfit(f"is a {kind.__name__}, not an array")
    if kind.__module__.startswith("PIL.") and hasattr(value, "size"):
        width, height = value.size
        return (height, width)  # in the order of arrays
    if hasattr(value, "shape"):
        return tuple(map(int, value.shape))
    if isinstance(value, Sequence):
        return (len(value),)
    return Misfit(f"is a {kind.__name__}, not an array")


def _number(value: Any, kind: str) -> Shape | Misfit:
    if not isinstance(value, int) or isinstance(value, bool):
        return Misfit(f"is a single {kind}; a length is an integer")
    if value < 0:
        return Misfit(f"is {value}; a length is an integer of at least 0")
    return (value,)


def along(shapes: npt.NDArray[np.int64], dim: int | None, field: Field) -> npt.NDArray[np.int64]:
    """Returns the sizes along one dimension.

    Args:
        shapes: Those of all samples, filled up with `ABSENT`.
        dim: The dimension, from the end if negative; None for the one that varies, or else the first.
        field: The field, for errors.

    Raises:
        ValueError: There is no such dimension, or several vary.
    """
    if not len(shapes):
        return np.zeros(0, np.int64)
    ranks = (shapes != ABSENT).sum(1)
    rank = int(ranks[0])
    if (odd := np.flatnonzero(ranks != rank)).size:
        msg = (
            f"{words(field)} has {ranks[odd[0]]} dimensions in sample {odd[0]} and {rank} in sample 0; "
            "give a function of a sample that returns its length"
        )
        raise ValueError(msg)
    if dim is None:
        varying = np.flatnonzero((shapes != shapes[0]).any(0)).tolist()
        if len(varying) > 1:
            msg = (
                f"{words(field)} varies in dimensions {', '.join(map(str, varying))}: choose one by "
                "dim, or give a function of a sample that returns its length"
            )
            raise ValueError(msg)
        dim = varying[0] if varying else 0
    if not -rank <= dim < rank:
        msg = f"{words(field)} has {rank} dimensions, and so no dimension {dim}"
        raise ValueError(msg)
    return np.ascontiguousarray(shapes[:, dim])


def words(field: Field) -> str:
    """Returns a field's name for errors."""
    if field is None:
        return "a sample"
    if callable(field):
        return f"the result of {getattr(field, '__qualname__', field)!s}"
    return f"field {field!r}"
