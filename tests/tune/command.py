"""Runs `python -m fastload.tune` as a user does, on targets written to a file."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.shared import interpreter

TAKES_TIME = [pytest.mark.slow, pytest.mark.own_sizes, pytest.mark.timeout(180)]
"""For tests that start the command, which measures for seconds."""

TARGETS = """
    import time
    import numpy as np
    import PIL.Image
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
    import fastload

    def tensors():
        return TensorDataset(torch.rand(4000, 8), torch.arange(4000))

    def loader():
        print("a factory that talks")
        return fastload.Loader(tensors(), 50, shuffle=True)

    class Counted(Dataset):
        def __init__(self):
            self.seen = 0

        def __len__(self):
            return 200

        def __getitem__(self, index):
            self.seen += 1
            return torch.full((4,), float(sum(range(20000)) + index))

    DATASET = Counted()

    def python():
        return DataLoader(DATASET, 8, shuffle=True)

    class Slow(Counted):
        def __getitem__(self, index):
            time.sleep(0.01)
            return torch.zeros(4)

    def slow():
        return DataLoader(Slow(), 8)

    class Pictures(Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            image = PIL.Image.open(self.paths[index]).convert("RGB").resize((32, 32))
            return torch.from_numpy(np.asarray(image).copy())

    def pictures():
        from pathlib import Path
        return DataLoader(Pictures(sorted(Path("photographs").glob("*.jpg"))), 8)

    class Bad(Counted):
        def __getitem__(self, index):
            if index % 5 == 0:
                raise ValueError(f"sample {index} is bad")
            return torch.zeros(4)

    def bad():
        return DataLoader(Bad(), 2)

    class Worst(Counted):
        def __getitem__(self, index):
            raise OSError("there is no such sample")

    def worst():
        return DataLoader(Worst(), 2)

    class Unknown(Counted):
        def __len__(self):
            raise NotImplementedError("its length is not known")

    def unknown():
        return DataLoader(Unknown(), 2)

    class Endless(IterableDataset):
        def __iter__(self):
            yield from torch.zeros(500, 4)

    def iterable():
        return DataLoader(Endless(), 8)

    def empty():
        return TensorDataset(torch.zeros(0, 3))

    def broken():
        raise RuntimeError("no data here\\nand a second line")

    def leaving():
        raise SystemExit("no arguments were given")

    def number():
        return 7

    def step(batch):
        time.sleep(0.01)

    def collapsing(batch):
        time.sleep(len(batch[0]) * (0.0002 if len(batch[0]) <= 64 else 0.002))

    def ending(batch):
        if len(batch[0]) > 64:
            raise MemoryError("no more than 64")

    def odd(batch):
        if len(batch[0]) != 32:
            raise ValueError("batches have 32 samples")

    def failing(batch):
        raise ValueError("a step that fails")
"""


def write_targets(folder: Path) -> None:
    """Writes `targets.py`."""
    (folder / "targets.py").write_text(textwrap.dedent(TARGETS))


def tune(folder: Path, *arguments: str, seconds: float = 2.0) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder, for a small time."""
    return interpreter.run(*_program(arguments, seconds), folder=folder)


def command(*arguments: str, seconds: float) -> list[str]:
    """Returns the command; warnings are errors, as they may be in a user's program."""
    return [sys.executable, "-W", "error", *_program(arguments, seconds)]


def _program(arguments: Sequence[str], seconds: float) -> list[str]:
    return ["-m", "fastload.tune", *arguments, "--seconds", str(seconds)]


def found(folder: Path, *arguments: str, seconds: float = 2.0) -> dict[str, Any]:
    """Runs the command and returns its JSON."""
    done = tune(folder, *arguments, "--json", seconds=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
