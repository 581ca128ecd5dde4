"""What depends on the Pillow that is installed, which need not be at all.

Owns Pillow's process-wide switches and the arithmetic that differs between its versions.
"""

import functools
import sys
from importlib import metadata
from typing import TypedDict

_DEFAULT_MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3


class Switches(TypedDict):
    """Pillow's switches, under the names of the native core."""

    truncated: bool
    max_pixels: int | None


def switches() -> Switches:
    """Returns Pillow's switches as they are now; its defaults where nobody imported it."""
    image, file = sys.modules.get("PIL.Image"), sys.modules.get("PIL.ImageFile")
    limit = getattr(image, "MAX_IMAGE_PIXELS", _DEFAULT_MAX_PIXELS)
    return {
        "truncated": bool(getattr(file, "LOAD_TRUNCATED_IMAGES", False)),
        "max_pixels": None if limit is None else max(0, int(limit)),
    }


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
