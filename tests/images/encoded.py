"""Reads encoded bytes natively and as the oracles do."""

import io
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import PIL.Image
import torch
import torchvision.io

from fastload import _lib
from fastload.machine import pillow


def read(encoded, mode="RGB", ops=()):
    """Decodes `encoded` natively, `(H, W, C)`."""
    handle, name = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encoded)
        column = _lib.Image([name], mode, list(ops), ("bytes", "hwc"))
        return _lib.Program([column], 0).sample(0, **pillow.switches()).numpy()
    finally:
        Path(name).unlink()


def by_pillow(encoded, mode="RGB"):
    """Decodes `encoded` with Pillow, `(H, W, C)`."""
    with PIL.Image.open(io.BytesIO(encoded)) as image:
        pixels = np.asarray(image.convert(mode))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def by_torchvision(encoded, mode="UNCHANGED"):
    """Decodes `encoded` with torchvision, `(H, W, C)`."""
    data = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
    with warnings.catch_warnings(action="ignore"):  # it is deprecated in favour of torchcodec
        return torchvision.io.decode_image(data, mode).permute(1, 2, 0).numpy()


def centre(pixels, height, width):
    """Cuts the middle out as torchvision's CenterCrop; the image is no smaller."""
    top, left = round((len(pixels) - height) / 2), round((pixels.shape[1] - width) / 2)
    return pixels[top : top + height, left : left + width]


def outcome(encoded, mode="RGB", window=None):
    """Says how our reading of `encoded`, or of a (height, width) in its middle, is to Pillow's."""
    try:
        ours = read(encoded, mode, [("center_crop", *window)] if window else ())
    except OSError:
        ours = None
    with warnings.catch_warnings(action="ignore"):
        try:
            pillows = by_pillow(encoded, mode)
        except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError):
            return "refused by both" if ours is None else "read alone"
    if ours is None:
        return "refused alone"
    if window and (pillows.shape[0] < window[0] or pillows.shape[1] < window[1]):
        return "padded"  # the damage changed the size
    if window:
        pillows = centre(pillows, *window)
    return "equal" if np.array_equal(ours, pillows) else "different"
