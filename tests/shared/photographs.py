"""Small JPEG files, and a file that keeps its reader waiting."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import PIL.Image

from fastload import transforms

SIDE = 24
"""Pixels on each side of a transformed photograph."""


def pixels(seed: int) -> "np.ndarray":
    """Returns smooth colours, so that a wrong file or a wrong order is visible in every pixel."""
    draw = np.random.Generator(np.random.PCG64(seed))
    height, width = draw.integers(SIDE + 4, 60, 2)
    ramp = np.linspace(0, 255, height)[:, None] * draw.random(3)
    return (ramp[:, None, :] * np.linspace(0.3, 1.0, width)[None, :, None]).astype(np.uint8)


def encoded(seed: int) -> bytes:
    """Returns the JPEG of `pixels(seed)`."""
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels(seed)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def write_photographs(folder: Path, count: int) -> list[Path]:
    """Writes `count` JPEG files of different sizes; returns their paths."""
    paths = [folder / f"{number:03}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(encoded(number))
    return paths


def operations() -> list[object]:
    """Returns transforms that give every photograph one shape."""
    return [transforms.Resize(SIDE), transforms.CenterCrop(SIDE), transforms.ToTensor()]


@contextmanager
def fifo(path: Path) -> Iterator[Path]:
    """Replaces `path` by a FIFO; on leaving, pending readers get its end, and later ones find no file."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    try:
        yield path
    finally:
        if path.is_fifo():
            # a writer, whether there is a reader by now or not
            end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
            path.unlink()
            os.close(end)
