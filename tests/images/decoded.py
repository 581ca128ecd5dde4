"""Folders whose loader is torchvision's `decode_image`, of files in the formats that it decodes."""

import functools
import io
from pathlib import Path
from typing import Any

import pytest
import torchvision
from torch.utils.data import Subset
from torchvision.io import decode_image

import fastload
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import SIZES

from .foreign import pixels

MARKS = [
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore:The image decoding and encoding:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Webp does not support grayscale:UserWarning"),
]
"""For all tests of the decoder, which is deprecated in favour of torchcodec."""


def photograph(seed: int = 0, mode: str = "RGB") -> Any:
    image = pixels(seed)
    if mode in ("LA", "RGBA"):
        image.putalpha(image.convert("L").rotate(90))
    return image.convert(mode)


def encode(kind: str, mode: str = "RGB", seed: int = 0, **options: Any) -> bytes:
    buffer = io.BytesIO()
    photograph(seed, mode).save(buffer, kind, **options)
    return buffer.getvalue()


def folder(
    root: Path, *files: bytes, mode: str | None = None, transform: Any = None, spare: int = 0
) -> Any:
    """Returns an `ImageFolder` of files whose names do not tell what they are.

    The first is listed `spare` times more, so that the others are few among many.
    """
    (root / "class").mkdir(exist_ok=True)
    for number, encoded in enumerate(files):
        (root / "class" / f"{number:03}.jpeg").write_bytes(encoded)
    loader = decode_image if mode is None else functools.partial(decode_image, mode=mode)
    made = torchvision.datasets.ImageFolder(root, transform, loader=loader)
    made.samples = made.samples[:1] * spare + made.samples
    return made


def stray(root: Path, encoded: bytes, **arguments: Any) -> Any:
    """Returns four samples: three that native code decodes, and behind the first of them `encoded`."""
    plain = encode("JPEG", "L" if arguments.get("mode") == "GRAY" else "RGB")
    return Subset(folder(root, plain, encoded, spare=100, **arguments), [0, 101, 1, 2])


def asked(loader: Any) -> int:
    return sum(loader.stats()["torchvision_fallbacks"].values())


def native(dataset: Any, *arguments: Any, **keywords: Any) -> fastload.Loader:
    """Returns a loader that must be native."""
    return fastload.Loader(dataset, *arguments, lane="native", **{**SIZES, **keywords})
