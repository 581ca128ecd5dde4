"""Writes small files of a format for the fuzzer to start from: `python fuzz/seeds.py jpeg FOLDER`."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIZES = (1, 1), (9, 5), (17, 33)
"""Width and height: a pixel, less than a block, several blocks."""

TURNED = Image.Exif()
TURNED[0x0112] = 6

SETTINGS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "jpeg": [
        *(("RGB", {"subsampling": each, "progressive": False}) for each in range(3)),
        *(("RGB", {"subsampling": each, "progressive": True}) for each in range(3)),
        *(("L", {}), ("CMYK", {})),
        ("RGB", {"restart_marker_blocks": 1, "exif": TURNED}),
    ],
    "png": [
        *((mode, {}) for mode in ("RGB", "L", "P", "RGBA", "LA", "1", "I;16")),
        *(("P", {"bits": bits}) for bits in (1, 2, 4)),
        *(("P", {"transparency": 3}), ("RGB", {"transparency": (1, 2, 3)})),
        ("RGB", {"exif": TURNED}),
    ],
    "webp": [
        *((mode, {"lossless": False}) for mode in ("RGB", "RGBA")),
        *((mode, {"lossless": True}) for mode in ("RGB", "RGBA")),
        *(("RGB", {"save_all": True}), ("RGB", {"exif": TURNED})),
    ],
}
"""For each format the modes of Pillow, and the arguments of `Image.save`."""


def picture(mode: str, width: int, height: int) -> Image.Image:
    """Returns a slope with noise."""
    draw = np.random.default_rng(width)
    slope = np.linspace(0, 200, width)[:, None] * draw.random(3)
    pixels = (slope + draw.integers(0, 55, (height, width, 3))).astype(np.uint8)
    image = Image.fromarray(pixels)
    return image.convert("L").convert("I").convert(mode) if mode == "I;16" else image.convert(mode)


def main(name: str, folder: Path) -> None:
    """Writes the files of one format."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, height in SIZES:
        for number, (mode, arguments) in enumerate(SETTINGS[name]):
            image = picture(mode, width, height)
            frames = {"append_images": [image.rotate(180)]} if "save_all" in arguments else {}
            image.save(folder / f"{width}x{height}-{number}", name, **arguments, **frames)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
