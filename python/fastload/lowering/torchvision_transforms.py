"""Transforms of torchvision, v1 and v2, that do not draw: what becomes of size, channels and dtype.

Both families have the same names and attributes, and the same results on Pillow images; on tensors they
differ in the type of the result alone.
"""

import sys
from collections.abc import Sequence
from typing import Any

import torch

from fastload import registry
from fastload.images import kernels
from fastload.images.chain import Chain
from fastload.registry import NotNative

__all__ = [
    "both",
    "cropped",
    "fill_bytes",
    "geometric",
    "luma",
    "mirrored",
    "padding",
    "resized",
    "version",
    "zero_stays",
]

_V1 = "torchvision.transforms.transforms"
_V2 = "torchvision.transforms.v2"


def both(module: str, *names: str) -> tuple[str, ...]:
    """Returns the full names of classes that v1 has, and v2 in `module`."""
    return tuple(f"{place}.{name}" for name in names for place in (_V1, f"{_V2}.{module}"))


@registry.transform(
    *both("_type_conversion", "PILToTensor"),
    *both("_deprecated", "ToTensor"),
    *both("_misc", "ConvertImageDtype", "Normalize"),
    f"{_V2}._type_conversion.ToImage",
    f"{_V2}._type_conversion.ToPureTensor",
    f"{_V2}._misc.ToDtype",
    f"{_V2}._misc.Identity",
    "torch.nn.modules.linear.Identity",
    "torchvision.transforms.functional.to_tensor",
    "torchvision.transforms.functional.pil_to_tensor",
    notes="any parameters whose result has a dtype that torch's default collation knows",
)
def _each_element(transform: Any, chain: Chain) -> None:
    chain.map(transform)


@registry.transform(
    *both("_geometry", "Resize"),
    notes="size, pair or max_size; Pillow images; in v2 also tensors of bytes",
)
def _resize(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    resized(chain, transform)


@registry.transform(*both("_geometry", "CenterCrop"), notes="")
def _center_crop(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    cropped(chain, transform.size)


@registry.transform(*both("_geometry", "Pad"), notes="with one colour")
def _pad(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    mode = transform.padding_mode
    sides = padding(transform.padding)
    fill = fill_bytes(transform, chain)
    if mode == "constant":
        zero_stays(chain, fill)
    mirrored(chain, mode, sides)
    left, top, right, bottom = sides
    least = chain.least[0] + top + bottom, chain.least[1] + left + right
    chain.add(("pad", sides, fill, mode), least=least)


@registry.transform(*both("_color", "Grayscale"), notes="Pillow images, and tensors of bytes")
def _grayscale(transform: Any, chain: Chain) -> None:
    geometric(transform, chain)
    channels = transform.num_output_channels
    if channels not in (1, 3):
        msg = f"it makes {channels} channels"
        raise NotNative(msg, "make it 1 or 3")
    if not chain.on_pillow and chain.channels < channels and version(transform) == 1:
        msg = "it leaves a grey tensor grey, whatever its num_output_channels"
        raise NotNative(msg, "take it out")
    chain.add(("grayscale", channels, luma(transform, chain)), least=chain.least)
    if chain.values is not None:
        kind = type(chain.values)
        chain.values = chain.values[:1].expand(channels, 1, -1).as_subclass(kind)
    chain.channels = channels


def luma(transform: Any, chain: Chain) -> str:
    """Returns whose arithmetic makes the image grey."""
    if chain.on_pillow:
        return "pillow"
    made = kernels.torch_luma(version(transform)) if chain.on_bytes else None
    if made is None:
        msg = "it makes grey of a tensor of other numbers than bytes, or by another routine"
        raise NotNative(msg, "put it before the image becomes a tensor")
    return made


@registry.transform("torchvision.transforms._presets.ImageClassification", notes="")
def _image_classification(transform: Any, chain: Chain) -> None:
    resized(chain, transform, transform.resize_size)
    cropped(chain, transform.crop_size)
    _to_floats(chain, transform)
    chain.names.append(f"{transform!r}".replace("\n   ", "").replace("\n", ""))


@registry.transform(
    "torchvision.transforms._presets.SemanticSegmentation", notes="of the image alone"
)
def _semantic_segmentation(transform: Any, chain: Chain) -> None:
    if isinstance(transform.resize_size, list):
        resized(chain, transform, transform.resize_size)
    _to_floats(chain, transform)


@registry.transform("torchvision.transforms._presets.ObjectDetection", notes="of the image alone")
def _object_detection(transform: Any, chain: Chain) -> None:
    chain.map(transform)


def _to_floats(chain: Chain, preset: Any) -> None:
    """Adds what a preset does at its end."""
    functional = sys.modules["torchvision.transforms.functional"]

    def convert(image: Any) -> Any:
        image = image if isinstance(image, torch.Tensor) else functional.pil_to_tensor(image)
        floats = functional.convert_image_dtype(image, torch.float)
        return functional.normalize(floats, mean=preset.mean, std=preset.std)

    chain.map(convert)


def version(transform: Any) -> int:
    """Returns which family of torchvision's transforms one is of, 1 or 2."""
    return 2 if type(transform).__module__.startswith(_V2) else 1


def geometric(transform: Any, chain: Chain) -> None:
    """Refuses operations of v1 on images of v2, whose type they change on some paths only."""
    if chain.wrap is not None and version(transform) == 1:
        msg = "it is of torchvision.transforms, on an image of torchvision.transforms.v2"
        raise NotNative(msg, "use the transform of v2")


def resized(chain: Chain, transform: Any, size: Any = None) -> None:
    """Adds what scales an image."""
    size = transform.size if size is None else size
    longest = getattr(transform, "max_size", None)
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    if not all(type(each) is int and each > 0 for each in sizes) or len(sizes) not in (1, 2):
        msg = f"it scales to size={size!r}"
        raise NotNative(msg, "give it an int or (height, width)")
    interpolation, antialias = transform.interpolation, transform.antialias
    kernel = chain.kernel(interpolation, antialias=antialias, version=version(transform))
    if len(sizes) == 2:
        if longest is not None:
            msg = "it has both max_size and a pair of sizes"
            raise NotNative(msg, "leave max_size out")
        chain.add(("resize", sizes, None, kernel), least=sizes)
        return
    (shorter,) = sizes
    if longest is not None and longest <= shorter:
        msg = f"its max_size {longest} is not above its size {shorter}"
        raise NotNative(msg, "make it larger")
    chain.add(
        ("resize", shorter, longest, kernel), least=(shorter, shorter) if longest is None else None
    )


def cropped(chain: Chain, size: Any) -> None:
    """Adds what cuts the middle out of an image; refuses it if what lies outside of the image would not be 0."""
    height, width = (size[0], size[-1]) if isinstance(size, Sequence) else (size, size)
    if chain.least[0] < height or chain.least[1] < width:
        zero_stays(chain, (0, 0, 0))
    chain.add(("center_crop", height, width), least=(height, width))


def zero_stays(chain: Chain, fill: tuple[int, int, int]) -> None:
    """Refuses to fill with bytes what is not bytes any more, unless both are 0."""
    if chain.values is None or chain.on_bytes:
        return
    if any(fill) or chain.values[:, :, 0].any():
        msg = "it fills with a value of a tensor whose elements are no longer bytes"
        raise NotNative(msg, "put it before Normalize")


def mirrored(
    chain: Chain,
    mode: str,
    sides: tuple[int, int, int, int],
    least: tuple[int, int] | None = None,
) -> None:
    """Refuses to mirror more of a tensor than it has: torch does that to no tensor.

    Args:
        chain: The operations before.
        mode: Torchvision's `padding_mode`.
        sides: The pixels that are added: left, top, right and bottom.
        least: Height and width that the image has at least; None for the chain's.
    """
    if chain.on_pillow or mode not in ("reflect", "symmetric"):
        return
    height, width = chain.least if least is None else least
    left, top, right, bottom = sides
    own = mode == "reflect"  # pixels of a side that are not repeated
    if any(
        added and added > side - own
        for added, side in ((max(left, right), width), (max(top, bottom), height))
    ):
        msg = f"it adds more pixels to a tensor than the tensor may have to {mode}"
        raise NotNative(msg, "put it before the image becomes a tensor, or behind a Resize")


def padding(given: Any) -> tuple[int, int, int, int]:
    """Returns left, top, right and bottom of a padding as torchvision takes it.

    Raises:
        NotNative: It is none, or cuts.
    """
    sides = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(sides) == 1:
        sides *= 4
    elif len(sides) == 2:
        sides *= 2
    if len(sides) != 4 or not all(type(each) is int and each >= 0 for each in sides):
        msg = f"its padding is {given!r}"
        raise NotNative(msg, "use integers from 0 on")
    return sides[0], sides[1], sides[2], sides[3]


def fill_bytes(transform: Any, chain: Chain) -> tuple[int, int, int]:
    """Returns the colour that a transform fills with, for three channels.

    Raises:
        NotNative: It is no colour of bytes.
    """
    fill = transform.fill
    msg = f"its fill is {fill!r}"
    # torchvision gives NumPy's numbers to the first channel alone
    if not isinstance(fill, int | float | tuple | list | None):
        raise NotNative(msg, "give it an int")
    values = tuple(fill) if isinstance(fill, tuple | list) else (fill or 0,)
    whole = chain.on_pillow or all(float(value).is_integer() for value in values)
    if len(values) not in (1, chain.channels) or not whole:
        raise NotNative(msg, "give it a number, or one for each channel")
    values = values * 3 if len(values) == 1 else values
    red, green, blue = (int(value) for value in values)  # as torchvision rounds for Pillow
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        raise NotNative(msg, "give it numbers from 0 to 255")
    return red, green, blue
