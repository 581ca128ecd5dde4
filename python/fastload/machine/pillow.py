"""What depends on the Pillow that is installed, which need not be at all.

Owns Pillow's process-wide switches, the arithmetic that differs between its versions, and how Pillow
itself decodes what native code refuses: a GIF, a truncated file.
"""

import functools
import io
import sys
from importlib import metadata, util
from typing import Any, TypedDict

_DEFAULT_MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3

_BYTES = ("L", "P", "LA", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
"""The modes of which NumPy makes arrays of bytes."""


class Switches(TypedDict):
    """Pillow's switches, under the names of the native core."""

    truncated: bool
    max_pixels: int | None


def switches() -> Switches:
    """Returns Pillow's switches as they are now; their defaults where nobody imported it."""
    image, file = sys.modules.get("PIL.Image"), sys.modules.get("PIL.ImageFile")
    # where nobody can warn of many pixels, they are refused as late as Pillow raises
    default = _DEFAULT_MAX_PIXELS * (1 if is_installed() else 2)
    limit = getattr(image, "MAX_IMAGE_PIXELS", default)
    return {
        "truncated": bool(getattr(file, "LOAD_TRUNCATED_IMAGES", False)),
        "max_pixels": None if limit is None else max(0, int(limit)),
    }


def decode(source: str | bytes, mode: str) -> tuple[bytes, tuple[int, int, int]]:
    """Decodes a file as torchvision's loader of images does, or as `datasets`, in the same steps.

    Args:
        source: The path of the file, or its bytes.
        mode: What Pillow's `convert` is asked for; behind `"upright"`, as `datasets` does it.

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
    """Returns what the feature `Image` of `datasets` makes of a file; `mode` is empty if it has none."""
    from PIL import ExifTags, Image, ImageOps

    with Image.open(source if isinstance(source, str) else io.BytesIO(source)) as file:
        image: Image.Image = file
        image.load()
        if image.getexif().get(ExifTags.Base.Orientation) is not None:
            image = ImageOps.exif_transpose(image)
        if mode and mode != image.mode:
            image = image.convert(mode)
    if image.mode not in _BYTES:
        msg = (
            f"an image of Pillow's mode {image.mode} is not of bytes, which are all that is decoded "
            "natively; give the feature a mode, as Image(mode='RGB'), or the loader workers='process'"
        )
        raise ValueError(msg)
    return image


@functools.cache
def is_installed() -> bool:
    """Returns whether Pillow can be imported."""
    return util.find_spec("PIL") is not None


def kernel(interpolation: str) -> tuple[str, str]:
    """Returns the kernel of `_lib.Image` that scales as the Pillow installed here."""
    return _resize(), interpolation


@functools.cache
def _resize() -> str:
    """Returns which of Pillow's resizes is meant: since 13.0, tall images go downwards first."""
    try:
        version = metadata.version("pillow")
    except metadata.PackageNotFoundError:
        return "pillow13"
    return "pillow13" if int(version.partition(".")[0]) >= 13 else "pillow"
