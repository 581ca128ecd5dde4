"""Files that native code refuses: what writes them, the Python dataset that is the oracle, threads."""

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.features
import PIL.Image
import torch

import fastload
from fastload.columns import Image, Rows

HEIGHT, WIDTH = 40, 30
THREAD = "fastload-decode"


def pixels(seed: int, height: int = HEIGHT, width: int = WIDTH) -> "PIL.Image.Image":
    """Returns a picture of its own for each seed."""
    draw = np.random.default_rng(seed)
    ramp = np.linspace(0, 200, height)[:, None, None] * draw.random(3)
    noise = draw.integers(0, 55, (height, width, 3))
    return PIL.Image.fromarray((ramp + noise).astype(np.uint8))


def with_transparency(image: "PIL.Image.Image") -> "PIL.Image.Image":
    image.putalpha(image.convert("L"))
    return image


KINDS: dict[str, Callable[["PIL.Image.Image", Path], Any]] = {
    "jpeg": lambda image, path: image.save(path, "JPEG"),
    "gif": lambda image, path: image.save(path, "GIF"),
    "bmp": lambda image, path: image.save(path, "BMP"),
    "tiff": lambda image, path: image.save(path, "TIFF", compression="tiff_lzw"),
    "cmyk": lambda image, path: image.convert("CMYK").save(path, "JPEG"),
    "cmyk tiff": lambda image, path: image.convert("CMYK").save(path, "TIFF"),
    "palette": lambda image, path: image.convert("P").save(path, "PNG"),
    "alpha": lambda image, path: with_transparency(image).save(path, "PNG"),
    "wide": lambda image, path: image.convert("I;16").save(path, "TIFF"),
    "one bit": lambda image, path: image.convert("1").save(path, "TIFF"),
    "webp": lambda image, path: image.save(path, "WEBP"),
    "ppm": lambda image, path: image.save(path, "PPM"),
}
if PIL.features.check("avif"):
    KINDS["avif"] = lambda image, path: image.save(path, "AVIF")


def write(folder: Path, kinds: list[str]) -> list[str]:
    """Writes one file of each kind, whose names do not tell what they are."""
    paths = [folder / f"{number:03}.jpeg" for number in range(len(kinds))]
    for seed, (kind, path) in enumerate(zip(kinds, paths, strict=True)):
        KINDS[kind](pixels(seed), path)
    return list(map(str, paths))


class Plain(torch.utils.data.Dataset[Any]):
    """The dataset that people have: Pillow opens, converts, and says what is wrong."""

    def __init__(self, paths: list[str], transform: Any = None) -> None:
        self.paths = paths
        self.transform = transform or (lambda image: torch.from_numpy(np.array(image)))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:  # noqa: PTH123 (as torchvision does)
            image = PIL.Image.open(file).convert("RGB")
        return self.transform(image), torch.tensor(index)


def dataset(paths: list[str], *steps: Any) -> fastload.Dataset:
    """Returns the same dataset as columns."""
    return fastload.Dataset((Image(paths, list(steps)), Rows(torch.arange(len(paths)))))


def threads() -> list[threading.Thread]:
    """Returns the threads in which Pillow decodes."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def assert_no_threads() -> None:
    """Waits until no thread is left that decodes."""
    deadline = time.monotonic() + 10
    while threads() and time.monotonic() < deadline:
        gc.collect()  # again: a thread holds the exception that it gave for a moment longer
        time.sleep(0.005)
    assert not threads()
