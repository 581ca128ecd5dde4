"""Describes one sample: the dtype, shape, bytes and non-finite values of each of its fields.

Runs in the workers, as their `collate_fn`, so that a description crosses processes and not the sample.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch


class Value(NamedTuple):
    """The description of one field of a sample."""

    dtype: str  # of an array; else its type, such as "str" or "RGB image"
    shape: tuple[int, ...]  # of an array; (height, width) of an image, the length of text or a list
    nbytes: int
    nan: int = 0  # values that are not a number
    inf: int = 0  # values that are infinite


def describe(sample: Any) -> list[tuple[str, Value]]:
    """Returns each field of a sample with its name, such as `sample['image']`.

    The members of a list within a sample share one field, whose name ends with `[]`, because their
    number may differ from sample to sample.
    """
    if isinstance(sample, list) and _as_array(sample) is None:  # its positions are fields
        parts = (_fields(part, f"sample[{place}]") for place, part in enumerate(sample))
        return [field for part in parts for field in part]
    return list(_fields(sample, "sample"))


def _fields(value: Any, name: str) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _fields(part, f"{name}[{key!r}]")
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        for place, part in enumerate(value):
            yield from _fields(part, f"{name}.{names[place]}" if names else f"{name}[{place}]")
    elif isinstance(value, list):
        array = _as_array(value)
        if array is not None:
            yield name, _of_array(array, f"list of {array.dtype}")
            return
        yield name, Value("list", (len(value),), 0)
        for part in value:
            yield from _fields(part, f"{name}[]")
    else:
        yield name, _of_value(value)


def _as_array(value: list[Any]) -> np.ndarray[Any, Any] | None:
    """Returns a list of numbers, nested or not, as an array; None for another list."""
    first: Any = value
    while isinstance(first, list) and first:
        first = first[0]
    if not isinstance(first, int | float | np.number):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _of_value(value: Any) -> Value:
    if isinstance(value, torch.Tensor):
        return _of_tensor(value)
    if isinstance(value, np.ndarray | np.generic):
        return _of_array(np.asarray(value), str(value.dtype))
    if isinstance(value, str | bytes):
        return Value(type(value).__name__, (len(value),), len(value))
    if isinstance(value, int | float | complex):
        return _of_array(np.asarray(value), type(value).__name__)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        value.load()  # a file that was opened and not read yet
        width, height = value.size
        bands = len(value.getbands())
        return Value(f"{value.mode} image", (height, width), height * width * bands)
    return Value(type(value).__name__, (), 0)


def _of_array(array: np.ndarray[Any, Any], dtype: str) -> Value:
    nan = inf = 0
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    return Value(dtype, array.shape, array.nbytes, nan, inf)


def _of_tensor(tensor: torch.Tensor) -> Value:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout != torch.strided or tensor.is_nested or tensor.device.type == "meta":
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        return Value(f"{kind} {dtype}", () if tensor.is_nested else tuple(tensor.shape), 0)
    nan = inf = 0
    if tensor.is_floating_point() or tensor.is_complex():
        values = tensor.float() if tensor.element_size() == 1 else tensor  # float8 has no isfinite
        if not torch.isfinite(values).all():
            nan, inf = int(values.isnan().sum()), int(values.isinf().sum())
    return Value(dtype, tuple(tensor.shape), tensor.nbytes, nan, inf)
