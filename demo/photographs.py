"""A folder of photographs to load: JPEG files as varied as those of an image data set.

Two photographs come with scikit-learn (`china.jpg`, `flower.jpg`, 640x427). They are cut, zoomed,
mirrored, tinted and saved at 400 to 600 pixels on the longer side, quality 75 to 95, with the
three usual chroma subsamplings; the same files on every machine with the same Pillow.

Smooth sky and enlarged crops compress better than most photographs do, so sensor noise is added:
the files come to 0.35 bytes per pixel and 76 kB each, still less than those of ImageNet's
training set (138 GiB in 1.28 million files, 115 kB each).
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "photographs"
COUNT = 800
CLASSES = ("china", "flower")

_RECIPE = 1  # raised whenever the pixels below change: the cache is named after it
_CHROMA = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}  # Pillow's numbers


def photographs(count: int = COUNT, cache: Path = CACHE) -> Path:
    """Returns a folder with `count` photographs in class folders, made at the first call.

    Args:
        count: How many files, shared evenly between the classes.
        cache: Where such folders are kept.

    Returns:
        A folder as `torchvision.datasets.ImageFolder` wants it: `china/0000.jpg`, ...
    """
    root = cache / f"{count}-files-recipe-{_RECIPE}"
    if root.is_dir():
        return root
    from sklearn.datasets import load_sample_image

    originals = [Image.fromarray(load_sample_image(f"{name}.jpg")) for name in CLASSES]
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cache))
    for name in CLASSES:
        (unfinished / name).mkdir()
    for number in range(count):
        label = number % len(CLASSES)
        path = unfinished / CLASSES[label] / f"{number:04}.jpg"
        _save(_photograph(originals[label], number), path, number)
    try:
        unfinished.rename(root)
    except OSError:  # another process was faster; its files are the same
        shutil.rmtree(unfinished)
    return root


def _photograph(original: Image.Image, number: int) -> Image.Image:
    """Cuts one photograph out of an original; all that is random depends on `number` only."""
    random = np.random.default_rng([number, 0])
    longer = int(random.integers(400, 601))
    shorter = round(longer * random.uniform(0.66, 1.0))
    width, height = (longer, shorter) if random.random() < 0.7 else (shorter, longer)

    zoom = max(random.uniform(1.0, 1.8), width / original.width, height / original.height)
    cut_width = min(width / zoom, original.width)
    cut_height = min(height / zoom, original.height)
    left = random.uniform(0, original.width - cut_width)
    top = random.uniform(0, original.height - cut_height)
    cut = original.resize(
        (width, height),
        Image.Resampling.LANCZOS,
        box=(left, top, left + cut_width, top + cut_height),
    )
    if random.random() < 0.5:
        cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

    tint = random.uniform(0.9, 1.1, size=3)
    grain = random.normal(0, random.uniform(3, 10), size=(height, width, 1))
    pixels = np.asarray(cut) * tint + grain
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


def _save(photograph: Image.Image, path: Path, number: int) -> None:
    """Writes a JPEG file whose quality and subsampling depend on `number` only."""
    random = np.random.default_rng([number, 1])
    photograph.save(
        path,
        quality=int(random.integers(75, 96)),
        subsampling=int(random.choice(list(_CHROMA.values()), p=[0.2, 0.2, 0.6])),
    )
