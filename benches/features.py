"""Arrays and recordings, one file each: `Npy` and `Audio` beside the usual Python code.

3,000 .npy files of (100, 128) float32; 3,000 recordings of one second and 16 kHz, as WAV (16 bits), FLAC
and MP3. The rivals read with `numpy.load` and `soundfile.read` in a map-style dataset. Limits: the same
bytes, read and dropped; and one thread. Memory: what the process tree takes above the start while an
epoch runs.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from _contest import OURS, Bench, against_torch, isolated, peak_mb
from _files import READ, Files, made, read
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Audio, Npy

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "features"
FILES, BATCH_SIZE = 3_000, 64
SHAPE, RATE_HZ = (100, 128), 16_000


def recording(path: Path) -> np.ndarray:
    """Reads a recording as torchaudio does: (channels, frames)."""
    samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    return samples.T


def files(kind: str) -> list[Path]:
    """Returns the files of a kind; makes them once."""

    def write(path: Path, random: np.random.Generator) -> None:
        if kind == "npy":
            np.save(path, random.standard_normal(SHAPE, np.float32))
        else:
            tones = np.sin(np.arange(RATE_HZ) * random.uniform(0.01, 0.3, (4, 1))).mean(0)
            noise = 0.01 * random.standard_normal(RATE_HZ)
            soundfile.write(path, 0.5 * tones + noise, RATE_HZ)

    return made(CACHE / kind, kind, FILES, write)


def loader(who: str, kind: str) -> Any:
    """Makes a contestant's loader."""
    paths = files(kind)
    if who == OURS:
        column = Npy(paths) if kind == "npy" else Audio(paths)
        return fastload.Loader(column, BATCH_SIZE, shuffle=True, num_workers=2)
    load = np.load if kind == "npy" else recording
    return DataLoader(Files(paths, load), BATCH_SIZE, shuffle=True, num_workers=2)


def memory(who: str, kind: str) -> float:
    """Returns what an epoch takes at most above the start."""
    return peak_mb(lambda: loader(who, kind))


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    promises = {"npy": 3.0, "wav": 3.5, "flac": 1.0, "mp3": 1.0}
    for kind, promised in promises.items():
        paths = files(kind)
        column = Npy(paths) if kind == "npy" else Audio(paths)
        theirs = Files(paths, np.load if kind == "npy" else recording)
        assert torch.equal(column[7], theirs[7]) or kind == "mp3"

        def load(maker: Any, workers: int, ours: Any = column, theirs: Any = theirs) -> Any:
            dataset = ours if maker is fastload.Loader else theirs
            return maker(dataset, BATCH_SIZE, shuffle=True, num_workers=workers)

        against_torch(
            bench,
            f"{FILES:,} .{kind} files",
            load,
            FILES,
            promised=promised,
            limits={READ: functools.partial(read, paths)},
        )
    bench.show(
        "Memory above the start, MB",
        {
            who: {f".{kind}": [isolated(memory, who, kind)] for kind in ("npy", "wav")}
            for who in (OURS, "torch, num_workers=2")
        },
    )
    bench.close()


if __name__ == "__main__":
    main()
