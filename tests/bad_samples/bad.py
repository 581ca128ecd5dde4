"""What the tests of bad samples share: damaged data, lanes, and what batches must be, in plain Python."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import default_collate

from fastload import AUTO

COUNT = 240
TORN = [5, 6, 31, 100, 127, 128, 239]
"""Files that end early: neighbours, the last sample of a batch of 16, the first, and the last of all."""
MISSING = [64, 200]
BAD = sorted(TORN + MISSING)

NATIVE = {f"native, {n} threads": {"lane": "native", "num_workers": n} for n in (1, 2, 8)}
PYTHON: dict[str, dict[str, Any]] = {
    "inline": {"num_workers": 0},
    "2 processes": {"lane": "process", "num_workers": 2},
    "AUTO processes": {"lane": "process"},
    "2 threads": {"lane": "threads", "num_workers": 2},
    "AUTO threads": {"lane": "threads", "num_workers": AUTO},
}


def write_images(root: Path, *, damaged: bool = True) -> None:
    """Writes JPEG files for an `ImageFolder`; the missing ones are still there."""
    rng = np.random.default_rng(7)
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
    for number in range(COUNT):
        path = path_of(root, number)
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        if damaged and number in TORN:
            path.write_bytes(path.read_bytes()[:-200])


def path_of(root: Path, number: int) -> Path:
    """Returns the file of a sample of the `ImageFolder`."""
    return root / ("a" if number < COUNT // 2 else "b") / f"{number:04}.jpg"


def donors(size: int, bad: set[int], action: str) -> list[int]:
    """Returns the position whose sample stands at each place of a batch, as the documentation says."""
    good = [at for at in range(size) if at not in bad]
    if action == "skip":
        return good
    return [min(good, key=lambda other: (other - at) % size) for at in range(size)]


def expected(dataset: Any, batches: list[list[int]], action: str) -> list[Any]:
    """Returns the batches that a loader must make, and the (batch, position, index) that are bad."""
    made, found = [], []
    for number, indices in enumerate(batches):
        samples: dict[int, Any] = {}
        for position, index in enumerate(indices):
            try:
                samples[position] = dataset[index]
            except (OSError, ValueError):
                found.append((number, position, index))
        bad = set(range(len(indices))) - set(samples)
        batch = default_collate([samples[at] for at in donors(len(indices), bad, action)])
        if action == "mask":
            batch = [*batch, torch.tensor([at not in bad for at in range(len(indices))])]
        made.append(batch)
    return [made, found]


def places(loader: Any) -> list[tuple[int, int, Any]]:
    """Returns (batch, position, index) of a loader's bad samples."""
    return [(bad.batch, bad.position, bad.index) for bad in loader.bad]
