"""The installed Pillow, if there is one.

Owns Pillow's process-wide switches, the arithmetic that differs between its versions, and decoding by Pillow of
files that native code refuses: a GIF, a truncated file.
"""

import functools
import io
import re
import sys
from importlib import util
from typing import Any, TypedDict

from fastload.machine.libraries import is_of_module

_DEFAULT_MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3

_BYTES = ("L", "P", "LA", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
"""Modes that NumPy converts to arrays of bytes."""

_METHODS = (
    "convert",
    "copy",
    "crop",
    "load",
    "reduce",
    "resize",
    "rotate",
    "thumbnail",
    "transpose",
)
_FORMATS = ("JPEG", "PNG", "WEBP")


class Switches(TypedDict):
    """Pillow's switches, under the names of the native core."""

    max_pixels: int | None


def switches() -> Switches:
    """Returns Pillow's switches as they are now; their defaults if it is not imported."""
    image = sys.modules.get("PIL.Image")
    # native code cannot warn of decompression bombs, so the limit is where Pillow raises
    default = _DEFAULT_MAX_PIXELS * (1 if is_installed() else 2)
    limit = getattr(image, "MAX_IMAGE_PIXELS", default)
    return {
        "max_pixels": None if limit is None else max(0, int(limit)),
    }


def decode(source: str | bytes, mode: str) -> tuple[bytes, tuple[int, int, int]]:
    """Decodes a file in the same steps as torchvision's image loader, or as `datasets`.

    Args:
        source: The path of the file, or its bytes.
        mode: The mode for Pillow's `convert`; with the prefix `"upright"`, decodes as `datasets` does.

    Returns:
        The pixels, row after row, and (height, width, channels).

    Raises:
        Exception: Pillow's own, with a note that names the file.
    """
    from PIL import Image

    kind, _, wanted = mode.partition(" ")
    try:
        if kind == "upright":
            image = _upright(source, wanted)
        else:
            # opened as text, not as a Path: Pillow's messages quote the name of the file object
            with open(source, "rb") if isinstance(source, str) else io.BytesIO(source) as file:  # noqa: PTH123
                image = Image.open(file).convert(mode)
    except Exception as error:
        what = f"{len(source)} bytes" if isinstance(source, bytes) else repr(source)
        error.add_note(f"while Pillow decoded {what}")
        raise
    return image.tobytes(), (image.height, image.width, len(image.getbands()))


def _upright(source: str | bytes, mode: str) -> Any:
    """Returns the image that the feature `Image` of `datasets` makes of a file; `mode` may be empty."""
    from PIL import ExifTags, Image, ImageOps

    with Image.open(source if isinstance(source, str) else io.BytesIO(source)) as file:
        image: Image.Image = file
        image.load()
        if image.getexif().get(ExifTags.Base.Orientation) is not None:
            image = ImageOps.exif_transpose(image)
        if mode and mode != image.mode:
            image = image.convert(mode)
    if image.mode not in _BYTES:
        msg = f"an image of Pillow's mode {image.mode} has no 8-bit channels, and only these are decoded natively"
        raise NotImplementedError(msg)
    return image


def replaced() -> str | None:
    """Returns the name of a function by which Pillow opens or changes images that is other code now, if there is one."""
    image = sys.modules.get("PIL.Image")
    if image is None:
        return None
    own = vars(image.Image)
    functions = {name: vars(image).get(name) for name in ("open", "fromarray")}
    functions |= {f"Image.{name}": own.get(name) for name in _METHODS}
    for name, function in functions.items():
        if not is_of_module(function, vars(image)):
            return f"PIL.Image.{name}"
    for kind in _FORMATS:
        factory = image.OPEN.get(kind, (None,))[0]
        if factory is not None and not factory.__module__.startswith("PIL."):
            return f"Pillow's opener of {kind}"
    return None


@functools.cache
def is_installed() -> bool:
    """Returns true if Pillow can be imported."""
    return util.find_spec("PIL") is not None


def kernel(interpolation: str) -> tuple[str, str]:
    """Returns the kernel of `_lib.Image` that resizes as the installed Pillow."""
    return _resize(), interpolation


@functools.cache
def _resize() -> str:
    """Returns the name of Pillow's resize: 12.2 and 13.0 resize tall images vertically first, by rules of their own."""
    try:
        from PIL import __version__  # also that of pillow-simd, whose distribution has another name
    except ImportError:
        return "pillow13"
    numbers = [int(number) for number in re.findall(r"\d+", __version__)]
    return "pillow13" if numbers >= [13] else "pillow12.2" if numbers >= [12, 2] else "pillow"
