"""Files of features, one for each sample: made once, read as people do, read and dropped."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

READ = "the same bytes, read in one thread"


class Files(Dataset[torch.Tensor]):
    """What people write around files of features."""

    def __init__(self, paths: list[Path], load: Callable[[Path], np.ndarray]) -> None:
        self.paths = paths
        self.load = load

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.load(self.paths[index]))


def made(
    folder: Path, kind: str, count: int, write: Callable[[Path, np.random.Generator], None]
) -> list[Path]:
    """Returns `count` files; has each written once, from one generator."""
    paths = [folder / f"{number:05}.{kind}" for number in range(count)]
    if not paths[-1].exists():
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(0)
        for path in paths:
            write(path, random)
    return paths


def read(paths: list[Path]) -> Iterator[int]:
    """Reads files and drops what they hold."""
    for path in paths:
        yield len(path.read_bytes())
