"""The steps that are recorded: what Pillow was asked for, as native operations and as the call itself.

Refuses, with None, arguments of which native code does not make Pillow's pixels, and those that Pillow refuses.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from PIL import Image

from fastload.images.operations import Op
from fastload.machine import pillow

__all__ = ["FILTERS", "Step", "copy", "crop", "reduce", "resize", "transpose"]


class Step(NamedTuple):
    """A call that is recorded.

    Attributes:
        ops: The same as native operations.
        size: Width and height after it.
        by_pillow: Makes it on an image of Pillow's.
    """

    ops: list[Op]
    size: tuple[int, int]
    by_pillow: Callable[[Image.Image], Image.Image]


FILTERS = {
    Image.Resampling.NEAREST: "nearest",
    Image.Resampling.BOX: "box",
    Image.Resampling.BILINEAR: "bilinear",
    Image.Resampling.HAMMING: "hamming",
    Image.Resampling.BICUBIC: "bicubic",
    Image.Resampling.LANCZOS: "lanczos",
}
_TRANSPOSED: dict[int, list[Op]] = {
    Image.Transpose.FLIP_LEFT_RIGHT: [("flip_fixed", False)],
    Image.Transpose.FLIP_TOP_BOTTOM: [("flip_fixed", True)],
    Image.Transpose.ROTATE_90: [("turn", 1)],
    Image.Transpose.ROTATE_180: [("turn", 2)],
    Image.Transpose.ROTATE_270: [("turn", 3)],
    Image.Transpose.TRANSPOSE: [("turn", 1), ("flip_fixed", True)],
    Image.Transpose.TRANSVERSE: [("turn", 1), ("flip_fixed", False)],
}
_MOST_PIXELS = 1 << 16
"""Of a block that `reduce` makes one pixel of; Pillow's sums have 32 bits."""


def copy(size: tuple[int, int]) -> Step:
    """Returns the step that changes nothing."""
    return Step([], size, operator.methodcaller("copy"))


def crop(size: tuple[int, int], box: Any) -> Step | None:
    """Returns the operations that crop an image of `size`, with sides rounded as Pillow rounds them."""
    try:
        left, top, right, bottom = map(int, map(round, box))
    except (TypeError, ValueError, OverflowError):
        return None
    if not (0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]):
        return None
    sides, call = (right - left, bottom - top), ("crop", (left, top, right, bottom))
    return Step([("crop", (top, left, *sides[::-1]))], sides, operator.methodcaller(*call))


def resize(size: tuple[int, int], to: Any, resample: Any, box: Any) -> Step | None:
    """Returns the operations that scale a part of an image of `size`."""
    sides = _integers(to, 2)
    try:
        name = FILTERS.get(resample)
        left, top, right, bottom = map(float, box)
    except (TypeError, ValueError):
        return None
    if sides is None or min(sides) < 1 or name is None:
        return None
    kernel, part = pillow.kernel(name), (left, top, right, bottom)
    call = operator.methodcaller("resize", sides, resample, part)
    if part == (0, 0, *size):
        ops = [] if sides == size else [("resize", sides[::-1], None, kernel)]
        return Step(ops, sides, call)
    is_inside = (
        0 <= left <= right - 1 and 0 <= top <= bottom - 1
    )  # or Pillow may round it to nothing
    if not is_inside or right > size[0] or bottom > size[1]:
        return None
    return Step([("resize_part", sides[::-1], kernel, part)], sides, call)


def reduce(size: tuple[int, int], factor: Any, box: Any) -> Step | None:
    """Returns the operations that reduce each block of `factor` columns and rows to a pixel, in a part of an image."""
    factors = _integers(factor, 2)
    part = _integers((0, 0, *size) if box is None else box, 4)
    if factors is None or min(factors) < 1 or factors[0] * factors[1] > _MOST_PIXELS:
        return None
    cropped = None if part is None else crop(size, part)
    if cropped is None:
        return None
    (width, height), (across, down) = cropped.size, factors
    reduced = [] if factors == (1, 1) else [("reduce", (down, across))]
    return Step(
        [*cropped.ops, *reduced],
        (-(-width // across), -(-height // down)),
        operator.methodcaller("reduce", factors, part),
    )


def transpose(size: tuple[int, int], method: Any) -> Step | None:
    """Returns the operations that mirror or turn an image of `size`."""
    ops = _TRANSPOSED.get(method)
    if ops is None:
        return None
    is_sideways = ops[0] in (("turn", 1), ("turn", 3))
    return Step(
        ops, size[::-1] if is_sideways else size, operator.methodcaller("transpose", method)
    )


def _integers(values: Iterable[Any], count: int) -> tuple[Any, ...] | None:
    """Returns integers as Pillow's core takes them, if they are such, and so many."""
    try:
        integers = tuple(map(operator.index, values))
    except TypeError:
        return None
    return integers if len(integers) == count else None
