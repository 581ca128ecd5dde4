"""The lanes under test: for each a dataset, how it is loaded, and the files it reads."""

import functools
import json
import tarfile
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import Dataset, IterableDataset

import fastload
from fastload.columns import Audio, Image, Jsonl, Npy, Npz, Parquet, Pt, Rows, Tar
from fastload.transforms import Resize, ToTensor

__all__ = ["LANES", "SAMPLES", "Lane"]

SAMPLES = 24
_SIDE = 16


class Lane(NamedTuple):
    """What is loaded, and how.

    Attributes:
        write: Writes the files into a folder.
        make: Makes the dataset of a folder's files.
        options: Further arguments of the loader.
        processes: Whether worker processes make the batches.
        python: Whether the dataset opens files itself, so that errors of reading are its own.
    """

    write: Callable[[Path], Any]
    make: Callable[[Path], Any]
    options: dict[str, Any]
    processes: bool = False
    python: bool = False


def _pictures(folder: Path, suffix: str) -> list[Path]:
    draw = np.random.default_rng(0)
    paths = [folder / f"{number:02}.{suffix}" for number in range(SAMPLES)]
    for path in paths:
        PIL.Image.fromarray(draw.integers(0, 256, (20, 20, 3), np.uint8)).save(path)
    return paths


def _write_wav(folder: Path) -> None:
    for number in range(SAMPLES):
        with wave.open(str(folder / f"{number:02}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(np.full(500, number, np.int16).tobytes())


def _write_jsonl(folder: Path) -> None:
    for shard in range(4):
        lines = [{"x": shard * 6 + n, "text": f"line {n}"} for n in range(SAMPLES // 4)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{shard}.jsonl").write_text(text)


def _write_tar(folder: Path) -> None:
    paths = _pictures(folder, "png")
    for shard in range(3):
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for path in paths[shard::3]:
                archive.add(path, path.name)
    for path in paths:
        path.unlink()


def _write_parquet(folder: Path) -> None:
    for part in range(3):
        table = pa.table({"x": np.arange(8.0) + 8 * part, "t": [f"row {n}" for n in range(8)]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=4)


def _write_each(save: Callable[[Path, int], Any], suffix: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for number in range(SAMPLES):
            save(folder / f"{number:02}.{suffix}", number)

    return write


_STEPS = [Resize((_SIDE, _SIDE)), ToTensor()]
_write_png = functools.partial(_pictures, suffix="png")
_write_npy = _write_each(lambda path, n: np.save(path, np.full((30, 4), n, np.float32)), "npy")
_write_npz = _write_each(lambda path, n: np.savez_compressed(path, x=np.full((30, 4), n)), "npz")
_write_pt = _write_each(lambda path, n: torch.save(torch.full((30, 4), n), path), "pt")


def _images(folder: Path) -> Any:
    paths = sorted(folder.iterdir())
    return fastload.Dataset((Image(paths, transform=_STEPS), Rows(torch.arange(len(paths)))))


def _rows(_: Path) -> Any:
    return fastload.Dataset(Rows(torch.arange(SAMPLES * 40_000).reshape(SAMPLES, 40_000)))


def _jsonl(folder: Path) -> Any:
    for path in folder.glob("*.index"):
        path.unlink()
    return Jsonl(str(folder / "*.jsonl"), ["x", "text"], index=True)


def _parquet(folder: Path) -> Any:
    paths = str(folder / "*.parquet")
    return fastload.Dataset((Parquet(paths, "x", cache="1KiB"), Parquet(paths, "t", cache="1KiB")))


class Pictures(Dataset):
    """A dataset in Python, which opens files with Pillow."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.iterdir())

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with PIL.Image.open(self.paths[index]) as picture:
            return torch.from_numpy(np.array(picture.convert("RGB"))), index


class Stream(IterableDataset):
    """An iterable dataset in Python; one worker reads all of it."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.iterdir())

    def __iter__(self) -> Any:
        worker = torch.utils.data.get_worker_info()
        if worker is None or worker.id == 0:
            for path in self.paths:
                with PIL.Image.open(path) as picture:
                    yield torch.from_numpy(np.array(picture.convert("RGB")))


_NATIVE = {"num_workers": 2}

LANES = {
    "images": Lane(functools.partial(_pictures, suffix="jpg"), _images, _NATIVE),
    "webp": Lane(functools.partial(_pictures, suffix="webp"), _images, _NATIVE),
    "images by Pillow": Lane(functools.partial(_pictures, suffix="bmp"), _images, _NATIVE),
    "rows": Lane(lambda _: None, _rows, _NATIVE),
    "npy": Lane(_write_npy, lambda folder: fastload.Dataset(Npy(str(folder / "*.npy"))), _NATIVE),
    "npz": Lane(
        _write_npz, lambda folder: fastload.Dataset(Npz(str(folder / "*.npz"), "x")), _NATIVE
    ),
    "pt": Lane(_write_pt, lambda folder: fastload.Dataset(Pt(str(folder / "*.pt"))), _NATIVE),
    "wav": Lane(_write_wav, lambda folder: fastload.Dataset(Audio(str(folder / "*.wav"))), _NATIVE),
    "jsonl": Lane(_write_jsonl, _jsonl, _NATIVE),
    "tar": Lane(
        _write_tar, lambda folder: Tar(str(folder / "*.tar"), ("png",), transform=_STEPS), _NATIVE
    ),
    "parquet": Lane(_write_parquet, _parquet, _NATIVE),
    "process, AUTO": Lane(_write_png, Pictures, {}, processes=True, python=True),
    "process, 2": Lane(_write_png, Pictures, {"num_workers": 2}, processes=True, python=True),
    "process, iterable": Lane(_write_png, Stream, {"num_workers": 1}, processes=True, python=True),
    "threads": Lane(_write_png, Pictures, {"num_workers": 2, "lane": "threads"}, python=True),
    "inline": Lane(_write_png, Pictures, {"num_workers": 0, "timeout": 0}, python=True),
}
"""The lanes by name."""
