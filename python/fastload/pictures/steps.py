"""The steps that are recorded: Pillow's arguments as native operations, and what Pillow does for each.

Refuses, with None, arguments of which native code does not make Pillow's pixels, and those that Pillow refuses.
"""

import operator
from collections.abc import Iterable
from typing import Any

from PIL import Image

from fastload.images.operations import Op
from fastload.machine import pillow

__all__ = ["FILTERS", "by_pillow", "crop", "reduce", "resize", "transpose"]

Step = tuple[list[Op], tuple[int, int]]
"""Operations, and the width and height after them."""

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
_SIDEWAYS = (
    Image.Transpose.ROTATE_90,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSPOSE,
    Image.Transpose.TRANSVERSE,
)
_MOST_PIXELS = 1 << 16
"""Of a block that `reduce` makes one pixel of; Pillow's sums have 32 bits."""


def crop(size: tuple[int, int], box: Any) -> Step | None:
    """Returns the operations that crop an image of `size`, with sides rounded as Pillow rounds them."""
    try:
        left, top, right, bottom = map(int, map(round, box))
    except (TypeError, ValueError, OverflowError):
        return None
    if not (0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]):
        return None
    sides = right - left, bottom - top
    return [("crop", (top, left, *sides[::-1]))], sides


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
    kernel = pillow.kernel(name)
    if (left, top, right, bottom) == (0, 0, *size):
        return [] if sides == size else [("resize", sides[::-1], None, kernel)], sides
    is_inside = (
        0 <= left <= right - 1 and 0 <= top <= bottom - 1
    )  # or Pillow may round it to nothing
    if not is_inside or right > size[0] or bottom > size[1]:
        return None
    return [("resize_part", sides[::-1], kernel, (left, top, right, bottom))], sides


def reduce(size: tuple[int, int], factor: Any, box: Any) -> Step | None:
    """Returns the operations that reduce each block of `factor` columns and rows to a pixel, in a part of an image."""
    factors = _integers(factor, 2)
    part = _integers((0, 0, *size) if box is None else box, 4)
    if factors is None or min(factors) < 1 or factors[0] * factors[1] > _MOST_PIXELS:
        return None
    cropped = None if part is None else crop(size, part)
    if cropped is None:
        return None
    ops, (width, height) = cropped
    across, down = factors
    reduced = [] if factors == (1, 1) else [("reduce", (down, across))]
    return [*ops, *reduced], (-(-width // across), -(-height // down))


def transpose(size: tuple[int, int], method: Any) -> Step | None:
    """Returns the operations that mirror or turn an image of `size`."""
    ops = _TRANSPOSED.get(method)
    return None if ops is None else (ops, size[::-1] if method in _SIDEWAYS else size)


def by_pillow(image: Image.Image, ops: list[Op]) -> Image.Image:
    """Returns the image that Pillow makes by operations of this module."""
    for name, *values in ops:
        image = _DONE[name](image, *values)
    return image


def _cropped(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    top, left, height, width = box
    return image.crop((left, top, left + width, top + height))


def _resized(
    image: Image.Image, size: tuple[int, int], _: None, kernel: tuple[str, str]
) -> Image.Image:
    return image.resize(size[::-1], Image.Resampling[kernel[1].upper()])


def _part_resized(
    image: Image.Image,
    size: tuple[int, int],
    kernel: tuple[str, str],
    box: tuple[float, float, float, float],
) -> Image.Image:
    return image.resize(size[::-1], Image.Resampling[kernel[1].upper()], box)


def _reduced(image: Image.Image, factors: tuple[int, int]) -> Image.Image:
    return image.reduce(factors[::-1])


def _flipped(image: Image.Image, vertical: bool) -> Image.Image:  # noqa: FBT001 (an operation's)
    how = Image.Transpose.FLIP_TOP_BOTTOM if vertical else Image.Transpose.FLIP_LEFT_RIGHT
    return image.transpose(how)


def _turned(image: Image.Image, quarters: int) -> Image.Image:
    how = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)
    return image.transpose(how[quarters - 1])


_DONE: dict[str, Any] = {
    "crop": _cropped,
    "resize": _resized,
    "resize_part": _part_resized,
    "reduce": _reduced,
    "flip_fixed": _flipped,
    "turn": _turned,
}


def _integers(values: Iterable[Any], count: int) -> tuple[Any, ...] | None:
    """Returns integers as Pillow's core takes them, if they are such, and so many."""
    try:
        integers = tuple(map(operator.index, values))
    except TypeError:
        return None
    return integers if len(integers) == count else None
