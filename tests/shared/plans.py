"""Plans of random operations: torchvision's, recorded, and ours, carried out by torchvision."""

from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import PIL.Image
import pytest
import torch
from PIL.Image import Resampling, Transpose
from torchvision import transforms
from torchvision.transforms import InterpolationMode, _functional_tensor, autoaugment, v2
from torchvision.transforms import functional as F  # noqa: N812
from torchvision.transforms.v2 import _auto_augment as autoaugment_v2

from fastload import _lib
from fastload.columns import Rows
from fastload.transforms import table

BYTES = ("bytes", "hwc")
FLOATS = table(torch.arange(256.0)[None])
"""An output of float32, `(C, H, W)`, not divided."""

KERNEL = ("pillow13", "bilinear")
Plan = list[tuple[Any, ...]]


def photograph(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Returns colours that no two neighbours share, some of them black and white."""
    noise = np.random.default_rng(seed)
    pixels = noise.integers(0, 256, (height, width, channels), np.uint8)
    pixels[noise.random((height, width)) < 0.2] = noise.choice([0, 255])
    return pixels


def column(
    *ops: tuple[Any, ...], pixels: np.ndarray | None = None, output: tuple[Any, ...] = BYTES
) -> _lib.Image:
    """Returns images that go through operations given as the core takes them."""
    pixels = np.zeros((1, 1, 1, 3), np.uint8) if pixels is None else pixels
    return _lib.Image(Rows(pixels)._core, "RGB", list(ops), output)


def sample(image: _lib.Image, index: int = 0, seed: int = 0) -> torch.Tensor:
    """Returns one sample."""
    made: torch.Tensor = _lib.Program([image], 0).sample(index, seed=seed)
    return made


def plans_of(image: _lib.Image, count: int, height: int, width: int, **key: int) -> list[Plan]:
    """Returns the plans of the first `count` indices, were all images of this size."""
    return [image.plan(height, width, index=index, **key) for index in range(count)]


TURNS = {Transpose.ROTATE_90: 1, Transpose.ROTATE_180: 2, Transpose.ROTATE_270: 3}
"""Quarters, counter-clockwise."""


class Recorder:
    """Stands for an image and for `torchvision.transforms.functional`; notes what is asked for."""

    NAMES: ClassVar = {
        "adjust_brightness": "brightness",
        "adjust_contrast": "contrast",
        "adjust_saturation": "saturation",
        "adjust_hue": "hue",
        "adjust_sharpness": "sharpness",
    }

    def __init__(self, height: int, width: int, channels: int = 3) -> None:
        self.shape = (channels, height, width)
        self.plan: Plan = []

    def __getattr__(self, name: str) -> Callable[..., "Recorder"]:
        name = self.NAMES.get(name, name)
        return lambda _, *values, **named: self.add(name, *values, *named.values())

    def add(self, *action: Any, size: tuple[int, int] | None = None) -> "Recorder":
        self.plan.append(action)
        self.shape = (self.shape[0], *(size or self.shape[1:]))
        return self

    def get_dimensions(self, _: Any) -> list[int]:
        return list(self.shape)

    def hflip(self, _: Any) -> "Recorder":
        return self.add("flip", False)

    def vflip(self, _: Any) -> "Recorder":
        return self.add("flip", True)

    def crop(self, _: Any, *region: int) -> "Recorder":
        return self if self.shape[1:] == region[2:] else self.add("crop", region, size=region[2:])

    def resized_crop(self, _: Any, *region: Any, antialias: bool) -> "Recorder":
        *region, size, interpolation = region
        self.add("crop", tuple(region), size=tuple(size))
        return self.add("resize", tuple(size), ("pillow13", interpolation.value))

    def pad(self, _: Any, padding: Any, fill: Any, mode: str) -> "Recorder":
        sides = [padding] if isinstance(padding, int) else list(padding)
        left, top, right, bottom = (sides * 4)[:4]
        (_, height, width) = self.shape
        size = (top + height + bottom, left + width + right)
        return self.add("pad", (left, top, right, bottom), (fill,) * 3, mode, size=size)

    def affine(self, _: Any, *values: Any, **named: Any) -> "Recorder":
        return self._map(lambda canvas: F.affine(canvas, *values, **named))

    def rotate(self, _: Any, *values: Any, **named: Any) -> "Recorder":
        return self._map(lambda canvas: F.rotate(canvas, *values, **named))

    def _map(self, function: Callable[[Any], Any]) -> "Recorder":
        """Notes what Pillow is asked for in the end."""
        canvas: Any = PIL.Image.new("RGB", self.shape[:0:-1])
        canvas.copy = lambda: self
        canvas.transpose = lambda turn: self.add("turn", TURNS[turn])
        canvas.transform = lambda size, _, matrix, resample, fillcolor: self.add(
            "affine",
            tuple(matrix),
            size[::-1],
            Resampling(resample).name.lower(),
            fillcolor,
            size=size[::-1],
        )
        function(canvas)
        return self

    def rgb_to_grayscale(self, _: Any, num_output_channels: int) -> "Recorder":
        return self.add("grayscale", num_output_channels, "pillow")

    def erase(self, _: Any, *values: Any) -> "Recorder":
        *region, value, _ = values
        if tuple(region) != (0, 0, *self.shape[1:]):  # nothing: the image is put over itself
            self.add("erase", tuple(region), value.numpy().tobytes())
        return self


def their_plans(
    monkeypatch: pytest.MonkeyPatch, transform: Any, size: tuple[int, int], count: int
) -> list[Plan]:
    """Returns what torchvision does to images, as the core would say it."""
    plans = []
    canvas = PIL.Image.new("RGB", size[::-1])
    with monkeypatch.context() as patch:
        for _ in range(count):
            recorder = Recorder(*size)
            patch.setattr(transforms.transforms, "F", recorder)
            patch.setattr(autoaugment, "F", recorder)
            patch.setattr(autoaugment_v2, "F", recorder)
            transform(canvas if isinstance(transform, v2.Transform) else recorder)
            plans.append(recorder.plan)
    return plans


def carry_out(plan: Plan, image: PIL.Image.Image) -> PIL.Image.Image:
    """Does to Pillow's image what is planned, with torchvision's functions."""
    for name, *arguments in plan:
        image = STEPS[name](image, *arguments)
    return image


def _fill(image: PIL.Image.Image, fill: tuple[int, ...]) -> tuple[int, ...]:
    return fill[: len(image.getbands())]


def _blur(image: PIL.Image.Image, *sides: list[float]) -> PIL.Image.Image:
    weights = [torch.tensor(side) for side in sides]
    name = "_get_gaussian_kernel1d"
    with mock.patch.object(_functional_tensor, name, side_effect=weights):
        blurred: PIL.Image.Image = F.gaussian_blur(image, list(map(len, sides)), [1.0, 1.0])
    return blurred


STEPS: dict[str, Callable[..., PIL.Image.Image]] = {
    "crop": lambda image, region: F.crop(image, *region),
    "resize": lambda image, size, kernel: F.resize(image, size, InterpolationMode(kernel[1])),
    "flip": lambda image, vertical: (F.vflip if vertical else F.hflip)(image),
    "pad": lambda image, sides, fill, mode: F.pad(image, list(sides), _fill(image, fill), mode),
    "turn": lambda image, quarters: image.transpose({v: k for k, v in TURNS.items()}[quarters]),
    "affine": lambda image, matrix, size, name, fill: image.transform(
        size[::-1],
        PIL.Image.Transform.AFFINE,
        matrix,
        Resampling[name.upper()],
        fillcolor=_fill(image, fill),
    ),
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "hue": F.adjust_hue,
    "sharpness": F.adjust_sharpness,
    "grayscale": lambda image, channels, _library: F.rgb_to_grayscale(image, channels),
    "gaussian_blur": _blur,
    "invert": F.invert,
    "posterize": F.posterize,
    "solarize": F.solarize,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
}
