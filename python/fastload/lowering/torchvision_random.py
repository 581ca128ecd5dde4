"""Transforms of torchvision, v1 and v2, that draw.

Native code draws its own parameters, from the distributions that torchvision draws from; given equal
parameters the pixels are equal.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from fastload import registry
from fastload.images.chain import Chain, filter_name
from fastload.images.operations import Op
from fastload.lowering.torchvision_transforms import (
    both,
    fill_bytes,
    geometric,
    luma,
    mirrored,
    padding,
    version,
    zero_stays,
)
from fastload.machine.libraries import is_of_module
from fastload.registry import NotNative

__all__ = ["resized_crop"]

_V2 = "torchvision.transforms.v2"
_AUTO = ("torchvision.transforms.autoaugment", f"{_V2}._auto_augment")


@registry.transform(
    *both("_geometry", "RandomHorizontalFlip", "RandomVerticalFlip"),
    notes="at any place of the chain",
)
def _flip(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    vertical = type(transform).__name__ == "RandomVerticalFlip"
    _draws(chain, ("flip", float(transform.p), vertical))


@registry.transform(
    *both("_geometry", "RandomResizedCrop"),
    notes="Pillow images; in v2 also tensors of bytes",
)
def _random_resized_crop(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    interpolation, antialias = transform.interpolation, transform.antialias
    kernel = chain.kernel(interpolation, antialias=antialias, version=version(transform))
    resized_crop(transform, chain, [kernel])


@registry.transform(
    *both("_geometry", "RandomCrop"),
    notes="padded with one colour; on tensors of other numbers than bytes, with zeros that stay 0",
)
def _random_crop(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    size = transform.size[0], transform.size[-1]
    sides, mode = transform.padding, transform.padding_mode
    if version(transform) == 2 and sides is not None:
        left, right, top, bottom = sides  # as v2 keeps them
        sides = [left, top, right, bottom]
    sides = None if sides is None else padding(sides)
    if_needed = bool(transform.pad_if_needed)
    fill = fill_bytes(transform, chain) if sides or if_needed else (0, 0, 0)
    if (sides or if_needed) and mode == "constant":
        zero_stays(chain, fill)
    if version(transform) == 2 and sides and if_needed and mode != "constant":
        msg = f"it pads twice at once with {mode}"
        raise NotNative(msg, "leave padding or pad_if_needed out")
    _check_mirrored(chain, mode, size, sides, if_needed=if_needed)
    words = f"v{version(transform)}"
    _draws(chain, ("random_crop", size, sides, if_needed, fill, mode, words), least=size)


def _check_mirrored(chain: Chain, mode: str, size: Any, sides: Any, *, if_needed: bool) -> None:
    """Refuses what `mirrored` refuses, of the padding before a crop of `size`."""
    left, top, right, bottom = sides or (0, 0, 0, 0)
    mirrored(chain, mode, (left, top, right, bottom))
    if if_needed:
        padded = chain.least[0] + top + bottom, chain.least[1] + left + right
        down, across = (max(0, want - have) for want, have in zip(size, padded, strict=True))
        mirrored(chain, mode, (across, down, across, down), padded)


@registry.transform(*both("_color", "RandomGrayscale"), notes="Pillow images, and tensors of bytes")
def _random_grayscale(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    _draws(chain, ("random_grayscale", float(transform.p), luma(transform, chain)))


@registry.transform(*both("_color", "ColorJitter"), notes="Pillow images")
def _color_jitter(transform: Any, chain: Chain) -> None:
    _needs_pillow(chain)
    of = (getattr(transform, n) for n in ("brightness", "contrast", "saturation", "hue"))
    ranges = (None if each is None else _pair(each) for each in of)
    _draws(chain, ("color_jitter", *ranges))


@registry.transform(*both("_geometry", "RandomRotation"), notes="Pillow images")
def _random_rotation(transform: Any, chain: Chain) -> None:
    _needs_pillow(chain)
    center = None if transform.center is None else _pair(transform.center)
    name, fill = _filter(transform), fill_bytes(transform, chain)
    expand = bool(transform.expand)
    degrees = _pair(transform.degrees)
    least = (0, 0) if expand else chain.least
    _draws(chain, ("random_rotation", degrees, name, expand, center, fill), least=least)


@registry.transform(*both("_geometry", "RandomAffine"), notes="Pillow images")
def _random_affine(transform: Any, chain: Chain) -> None:
    _needs_pillow(chain)
    shear = transform.shear
    if shear is not None:
        shear = tuple(map(float, (*shear, 0, 0)[:4]))
    op = (
        "random_affine",
        _pair(transform.degrees),
        None if transform.translate is None else _pair(transform.translate),
        None if transform.scale is None else _pair(transform.scale),
        shear,
        _filter(transform),
        fill_bytes(transform, chain),
        None if transform.center is None else _pair(transform.center),
        f"v{version(transform)}",
    )
    _draws(chain, op)


@registry.transform(*(f"{place}.RandAugment" for place in _AUTO), notes="Pillow images")
def _rand_augment(transform: Any, chain: Chain) -> None:
    numbers = transform.num_ops, transform.magnitude, transform.num_magnitude_bins
    _augment(transform, chain, "rand_augment", *numbers)


@registry.transform(*(f"{place}.TrivialAugmentWide" for place in _AUTO), notes="Pillow images")
def _trivial_augment_wide(transform: Any, chain: Chain) -> None:
    _augment(transform, chain, "trivial_augment_wide", transform.num_magnitude_bins)


@registry.transform(*(f"{place}.AutoAugment" for place in _AUTO), notes="Pillow images")
def _auto_augment(transform: Any, chain: Chain) -> None:
    given = transform._policies if version(transform) == 2 else transform.policies
    if given != transform._get_policies(transform.policy):
        msg = "its policies are not those of torchvision"
        raise NotNative(msg, "choose one by policy=")
    _augment(transform, chain, "auto_augment", transform.policy.value)


def _augment(transform: Any, chain: Chain, *op: Any) -> None:
    """Adds an operation that picks operations, in which v1 and v2 differ slightly."""
    _needs_pillow(chain)
    if version(transform) == 2 and not _has_own_operations(transform):
        msg = "its operations are not those of torchvision"
        raise NotNative(msg, "leave _AUGMENTATION_SPACE as it is")
    fill = None if transform.fill is None else fill_bytes(transform, chain)
    family = f"v{version(transform)}"
    _draws(chain, (*op, _filter(transform), fill, family))


def _has_own_operations(transform: Any) -> bool:
    """Returns true if a transform of v2 picks from the operations that torchvision gave its class."""
    names = vars(sys.modules[type(transform).__module__])
    table = transform._AUGMENTATION_SPACE
    is_own = type(table) is dict and all(
        type(each) is tuple and is_of_module(each[0], names) for each in table.values()
    )
    return is_own and _are_of_v1(type(transform).__name__, tuple(table.items()))


@functools.lru_cache
def _are_of_v1(kind: str, table: tuple[tuple[str, tuple[Callable[..., Any], bool]], ...]) -> bool:
    """Returns true if operations are those of the class of this name in v1, which makes its table in a method."""
    bins, (height, width) = sizes = 10, (331, 97)
    make = getattr(sys.modules[_AUTO[0]], kind)._augmentation_space
    known = make(None, *sizes[: 1 if kind == "TrivialAugmentWide" else 2])
    if [name for name, _ in table] != list(known):
        return False
    for name, (magnitudes, is_signed) in table:
        of_v1, is_signed_in_v1 = known[name]
        made = magnitudes(bins, height, width)
        if made is None:  # it has none, and v1 has a zero
            made = torch.tensor(0.0)
        elif name == "Solarize":  # from 1, and from 255 in v1
            made = made * 255
        is_close = made.shape == of_v1.shape and torch.allclose(made.float(), of_v1.float())
        if not is_close or is_signed is not is_signed_in_v1:
            return False
    return True


_COLOURS: dict[str, Callable[[Any], Op]] = {
    "RandomInvert": lambda _: ("invert",),
    "RandomPosterize": lambda each: ("posterize", int(each.bits)),
    "RandomSolarize": lambda each: ("solarize", _whole(each.threshold)),
    "RandomAdjustSharpness": lambda each: ("sharpness", float(each.sharpness_factor)),
    "RandomAutocontrast": lambda _: ("autocontrast",),
    "RandomEqualize": lambda _: ("equalize",),
}


@registry.transform(*both("_color", *_COLOURS), notes="Pillow images")
def _colour(transform: Any, chain: Chain) -> None:
    _needs_pillow(chain)
    if not 1 <= getattr(transform, "bits", 1) <= 8:
        msg = f"its bits are {transform.bits!r}"
        raise NotNative(msg, "use 1 to 8")
    op = _COLOURS[type(transform).__name__](transform)
    _draws(chain, ("apply", float(transform.p), [op]))


@registry.transform(
    "torchvision.transforms.transforms.RandomErasing",
    "torchvision.transforms.v2._augment.RandomErasing",
    notes='as the last transform; `value="random"` for float32',
)
def _random_erasing(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    if chain.values is None:
        msg = "it erases a part of a Pillow image, which torchvision refuses"
        raise NotNative(msg, "put it after ToTensor")
    scale, ratio = _pair(transform.scale), _pair(transform.ratio)
    value = _elements(transform.value, chain.values)
    _draws(chain, ("random_erasing", float(transform.p), scale, ratio, value))
    chain.sealed = "RandomErasing"


def _elements(value: Any, like: torch.Tensor) -> bytes | str:
    """Returns the bytes of the elements that an erased part is filled with."""
    if value is None or isinstance(value, str):
        if like.dtype != torch.float32:
            msg = f"it fills with noise what is {like.dtype}"
            raise NotNative(msg, "convert to float32 before it")
        return "random"
    several = list(value) if isinstance(value, tuple | list) else [value]
    if len(several) not in (1, len(like)):
        msg = f"it has {len(several)} values for {len(like)} channels"
        raise NotNative(msg, "give it one, or one for each")
    elements = torch.tensor([float(each) for each in several], device="cpu").to(like.dtype)
    return elements.view(torch.uint8).numpy().tobytes()


def resized_crop(transform: Any, chain: Chain, kernels: list[tuple[str, str]]) -> None:
    """Adds a crop of random size and shape, scaled by one of several kernels."""
    size = transform.size[0], transform.size[-1]
    kernel = kernels[0] if len(kernels) == 1 else kernels
    scale, ratio = _pair(transform.scale), _pair(transform.ratio)
    _draws(chain, ("random_resized_crop", size, scale, ratio, kernel), least=size)


def _draws(chain: Chain, op: Op, least: tuple[int, int] | None = None) -> None:
    """Adds an operation that draws, after which the image has at least `least` pixels; by default as many as before."""
    chain.add(op, least=chain.least if least is None else least)
    chain.random = True


def _needs_pillow(chain: Chain) -> None:
    """Refuses tensors."""
    if not chain.on_pillow:
        msg = "it changes a tensor, and is native on Pillow images only"
        raise NotNative(msg, "put it before the image becomes a tensor")


def _filter(transform: Any) -> str:
    """Returns the name of a filter that moves pixels."""
    name = filter_name(transform.interpolation)
    if name not in ("nearest", "bilinear", "bicubic"):
        msg = f"its interpolation is {name}"
        raise NotNative(msg, "use nearest, bilinear or bicubic")
    return name


def _pair(values: Any) -> tuple[float, float]:
    low, high = values
    return float(low), float(high)


def _whole(value: Any) -> int:
    if not float(value).is_integer():
        msg = f"its threshold is {value!r}"
        raise NotNative(msg, "give it an int")
    return int(value)
