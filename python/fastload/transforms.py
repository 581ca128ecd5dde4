"""Image operations that run natively, with the pixels of Pillow and torchvision.

The names, arguments and results are those of `torchvision.transforms` on a Pillow image opened
with `convert("RGB")`. A transform holds its arguments and nothing else; it is compared by them,
can be pickled, and is handed to `fastload.columns.Image`.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

from fastload.checks import check_choice
from fastload.machine import pillow

__all__ = ["CenterCrop", "Normalize", "Resize", "ToTensor"]

_INTERPOLATIONS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class Resize:
    """Scales an image, as `PIL.Image.Image.resize` does.

    Pillow 13 changed which of its two passes comes first for images whose height shrinks much
    more than their width, and with it the last bit of some pixels. The order is that of the Pillow
    that is installed; without one, that of Pillow 13.

    Args:
        size: Pixels of the shorter side, the longer one following in proportion; or
            `(height, width)`.
        interpolation: `"nearest"`, `"box"`, `"bilinear"`, `"hamming"`, `"bicubic"` or
            `"lanczos"`; or the `torchvision.transforms.InterpolationMode` of that name.

    Raises:
        TypeError: A size that is not of integers.
        ValueError: A size below 1, or an unknown interpolation.
    """

    size: int | tuple[int, int]
    interpolation: str

    def __init__(self, size: int | Sequence[int], interpolation: Any = "bilinear") -> None:
        sizes = _sizes("Resize", size)
        object.__setattr__(self, "size", sizes[0] if len(sizes) == 1 else sizes)
        name = getattr(interpolation, "value", interpolation)
        check_choice("Resize: interpolation", name, _INTERPOLATIONS)
        object.__setattr__(self, "interpolation", name)

    def __repr__(self) -> str:
        return f"Resize({self.size!r}, interpolation={self.interpolation!r})"

    def _op(self) -> tuple[Any, ...]:
        return "resize", self.size, None, pillow.kernel(self.interpolation)


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class CenterCrop:
    """Crops the center of an image; pixels outside of the image are black.

    Args:
        size: Pixels of both sides, or `(height, width)`.

    Raises:
        TypeError: A size that is not of integers.
        ValueError: A size below 1.
    """

    size: tuple[int, int]

    def __init__(self, size: int | Sequence[int]) -> None:
        sizes = _sizes("CenterCrop", size)
        object.__setattr__(self, "size", (sizes[0], sizes[-1]))

    def __repr__(self) -> str:
        return f"CenterCrop({self.size!r})"

    def _op(self) -> tuple[Any, ...]:
        return "center_crop", *self.size


@final
@dataclass(frozen=True, slots=True)
class ToTensor:
    """Converts uint8 `(H, W, 3)` to float32 `(3, H, W)`, divided by 255."""

    def _apply(self, values: torch.Tensor) -> torch.Tensor:
        return values.to(torch.float32).div(255)


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class Normalize:
    """Subtracts a mean from each channel of a tensor, then divides by a standard deviation.

    Args:
        mean: One number each for red, green and blue; or one for all.
        std: The same; none is zero.

    Raises:
        TypeError: Not sequences of numbers.
        ValueError: Neither one number nor three; not finite; or a deviation of zero.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        object.__setattr__(self, "mean", _channels("mean", mean))
        object.__setattr__(self, "std", _channels("std", std))
        if 0 in self.std:
            msg = f"Normalize: std {self.std} would divide by zero"
            raise ValueError(msg)

    def __repr__(self) -> str:
        return f"Normalize({self.mean!r}, {self.std!r})"

    def _apply(self, values: torch.Tensor) -> torch.Tensor:
        mean, std = (
            torch.tensor(each, dtype=values.dtype, device="cpu")[:, None]
            for each in (self.mean, self.std)
        )
        if (std == 0).any():
            msg = "cannot divide by a std that is 0 in single precision: give a larger one"
            raise ValueError(msg)
        return (values - mean) / std


Transform = CenterCrop | Normalize | Resize | ToTensor


def chain(transforms: Sequence[Any]) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns the operations and the output of `_lib.Image` for transforms.

    Raises:
        ValueError: Transforms in an order that makes no sense.
    """
    ops: list[tuple[Any, ...]] = []
    values: torch.Tensor | None = None  # of the 256 bytes, per channel
    for each in transforms:
        name = type(each).__name__
        if isinstance(each, ToTensor):
            if values is not None:
                msg = "cannot apply ToTensor twice: leave the second one out"
                raise ValueError(msg)
            values = each._apply(torch.arange(256, dtype=torch.uint8, device="cpu").expand(3, -1))
        elif isinstance(each, Normalize):
            if values is None:
                msg = "cannot normalize bytes: put ToTensor() before Normalize"
                raise ValueError(msg)
            values = each._apply(values)
        elif values is not None:
            does = "resize" if isinstance(each, Resize) else "crop"
            msg = f"cannot {does} a tensor: put {name} before ToTensor()"
            raise ValueError(msg)
        else:
            ops.append(each._op())
    return ops, ("bytes", "hwc") if values is None else table(values)


def table(values: torch.Tensor) -> tuple[Any, ...]:
    """Returns the output of `_lib.Image` that writes `(C, H, W)`, looking each byte up in a table.

    Args:
        values: The elements, of shape `(C, 256)`.
    """
    elements = values.contiguous().view(torch.uint8).numpy().tobytes()
    return "table", "chw", str(values.dtype).removeprefix("torch."), len(values), elements


def _sizes(name: str, size: int | Sequence[int]) -> tuple[int, ...]:
    """Returns the one or two integers of `size`."""
    several = tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size,)
    try:
        sizes = tuple(map(operator.index, several))
    except TypeError:
        msg = f"{name}: size should be an int or (height, width), but got {size!r}"
        raise TypeError(msg) from None
    if len(sizes) not in (1, 2):
        msg = f"{name}: size should have one or two values, but got {len(sizes)}"
        raise ValueError(msg)
    if min(sizes) < 1 or max(sizes) >= 2**31:
        msg = f"{name}: size should be between 1 and 2**31 - 1 pixels, but got {size!r}"
        raise ValueError(msg)
    return sizes


def _channels(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Returns the value of each of three channels."""
    try:
        floats = tuple(map(float, values))
    except (TypeError, ValueError):
        msg = f"Normalize: {name} should be a sequence of numbers, but got {values!r}"
        raise TypeError(msg) from None
    if len(floats) not in (1, 3):
        msg = (
            f"Normalize: {name} should have one value or one per channel, 3, but got {len(floats)}"
        )
        raise ValueError(msg)
    if not all(map(math.isfinite, floats)):
        msg = f"Normalize: {name} should be finite, but got {values!r}"
        raise ValueError(msg)
    return floats * 3 if len(floats) == 1 else floats
