"""Where the samples of a soak come from: small files of every format, and what reads them without fastload.

Invariant: `native()` and `python()` of a source have the same samples, and the second has no code of ours.
"""

import io
import json
import random
import tarfile
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
import torch
import torchvision.datasets
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)
from torchvision import transforms as v1

import fastload
from fastload import columns

SAMPLES = 240
PER_SHARD = 60


class Source(NamedTuple):
    """A dataset, twice.

    Attributes:
        native: Makes the one that native code loads; None if none does.
        python: Makes the one of Python code, which torch loads.
        ragged: Whether samples differ in length, so that they are padded or packed.
        random: Whether samples are drawn: torch's are then others under AUTO.
        iterable: Whether it is an iterable dataset.
        seam: Whether workers begin samples natively.
        lengths: Of ragged samples.
    """

    native: Callable[[], Any] | None
    python: Callable[[], Any]
    ragged: bool = False
    random: bool = False
    iterable: bool = False
    seam: bool = False
    lengths: Any = None


class Each(Dataset[Any]):
    """Samples that a function makes of their index."""

    def __init__(self, length: int, sample: Callable[[int], Any]) -> None:
        self.length, self.sample = length, sample

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


class Drawn(Dataset[Any]):
    """Draws from every generator, unevenly much; some samples are bad."""

    def __init__(self, bad: frozenset[int] = frozenset(), length: int = SAMPLES) -> None:
        self.bad, self.length = bad, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index in self.bad:
            msg = f"sample {index} is bad"
            raise ValueError(msg)
        return {
            "index": index,
            "row": torch.full((index % 5 + 1,), index).sum(),
            "noise_torch": torch.rand(2 + index % 3).sum(),
            "noise_numpy": torch.from_numpy(np.random.randn(3)),
            "noise_python": random.random(),
        }


class Numbered(Dataset[Any]):
    """Samples in Python that draw nothing: a number, and a row of which a batch of four fills a slot."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return index, torch.full((300,), float(index), dtype=torch.float64)


class Streamed(IterableDataset[Any]):
    """Shards itself by worker, unevenly."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, SAMPLES + 4 * first, step):
            yield {"index": number, "noise": torch.rand(2), "noise_python": random.random()}


def twice(tensor: torch.Tensor) -> torch.Tensor:
    """Ends a chain of transforms in Python: what is before it is native, behind the seam."""
    return 2 * tensor


def make(folder: Path) -> dict[str, Source]:
    """Writes the files into `folder` and returns the sources by name."""
    rng = np.random.default_rng(18)
    vectors = torch.from_numpy(rng.standard_normal((SAMPLES, 24), dtype=np.float32))
    labels = torch.arange(SAMPLES) * 3
    sources = {
        "rows": _same(lambda: TensorDataset(vectors, labels)),
        "dict": Source(
            lambda: fastload.Dataset({"x": columns.Rows(vectors), "y": columns.Rows(labels)}),
            lambda: Each(SAMPLES, lambda i: {"x": vectors[i], "y": labels[i]}),
        ),
        "subset": _same(lambda: Subset(TensorDataset(vectors, labels), range(7, SAMPLES, 2))),
        "concat": _same(
            lambda: ConcatDataset(
                [TensorDataset(vectors[:90], labels[:90]), TensorDataset(vectors[90:], labels[90:])]
            )
        ),
        "heavy": _heavy(),
        "ragged": _ragged(rng),
        "drawn": Source(None, Drawn, random=True),
        "iterable": Source(None, Streamed, random=True, iterable=True),
    }
    writers = (_images, _jsonl, _tar, _parquet, _npy, _wav, _tokens)
    for writer in writers:
        own = folder / writer.__name__.strip("_")
        own.mkdir()
        sources |= writer(own, rng)
    return sources


def _same(dataset: Callable[[], Any]) -> Source:
    return Source(dataset, dataset)


def _heavy() -> Source:
    rows = torch.arange(64 * 40_000, dtype=torch.int32).reshape(64, 40_000)
    return _same(lambda: TensorDataset(rows))


def _ragged(rng: np.random.Generator) -> Source:
    lengths = rng.integers(0, 40, SAMPLES)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = torch.from_numpy(rng.integers(0, 30_000, int(offsets[-1])))
    labels = torch.arange(SAMPLES)
    tokens = columns.Ragged(values, offsets)

    def sample(index: int) -> Any:
        return {
            "input_ids": values[offsets[index] : offsets[index + 1]].clone(),
            "label": labels[index],
        }

    return Source(
        lambda: fastload.Dataset({"input_ids": tokens, "label": columns.Rows(labels)}),
        lambda: Each(SAMPLES, sample),
        ragged=True,
        lengths=lengths,
    )


def _images(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    for number in range(72):
        size = rng.integers(24, 60, 2)
        ramp = np.linspace(0, 255, size[0])[:, None, None] * np.linspace(0.2, 1, size[1])[:, None]
        pixels = (ramp * rng.random(3) + rng.integers(0, 20, (*size, 3))).clip(0, 255)
        image = PIL.Image.fromarray(pixels.astype(np.uint8))
        kind = ("jpg", "jpg", "png", "webp")[number % 4]
        frames = (
            {"save_all": True, "append_images": [image]} if number % 24 == 2 else {}
        )  # Pillow decodes it
        own = folder / f"class{number % 3}"
        own.mkdir(exist_ok=True)
        image.save(own / f"{number:03}.{kind}", **frames)
    broken = folder / "class1" / "999.jpg"
    broken.write_bytes((folder / "class1" / "001.jpg").read_bytes()[:400])
    fixed = v1.Compose([v1.Resize(20), v1.CenterCrop(16), v1.ToTensor()])
    drawn = v1.Compose([v1.RandomResizedCrop(16), v1.RandomHorizontalFlip(), v1.ToTensor()])
    ended = v1.Compose([v1.Resize(20), v1.CenterCrop(16), v1.ToTensor(), v1.Lambda(twice)])

    def images(transform: Any) -> Callable[[], Any]:
        return lambda: torchvision.datasets.ImageFolder(str(folder), transform)

    return {
        "images": _same(images(fixed)),
        "images drawn": Source(images(drawn), images(drawn), random=True),
        "images seam": Source(None, images(ended), seam=True),
    }


def _jsonl(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    kept: list[Any] = []
    for shard in range(SAMPLES // PER_SHARD):
        lines = [
            {"text": f"Nº {n} «{n * 'x'}»", "stars": n % 5, "score": float(rng.random())}
            for n in range(PER_SHARD)
        ]
        path = folder / f"{shard}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        kept += [(path, number) for number in range(PER_SHARD)]

    def sample(index: int) -> Any:
        path, number = kept[index]
        return _as_tensors(json.loads(path.read_text(encoding="utf-8").splitlines()[number]))

    fields = ["text", "stars", "score"]
    return {
        "jsonl": Source(
            lambda: columns.Jsonl(str(folder / "*.jsonl"), fields),
            lambda: Each(len(kept), sample),
        )
    }


def _tar(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    arrays = rng.standard_normal((SAMPLES, 4, 3))
    for shard in range(SAMPLES // PER_SHARD):
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for number in range(shard * PER_SHARD, (shard + 1) * PER_SHARD):
                stored = io.BytesIO()
                np.save(stored, arrays[number])
                files = {"npy": stored.getvalue(), "cls": b"%d" % (number % 7), "bin": b"\0" * 9}
                for extension, data in files.items():
                    member = tarfile.TarInfo(f"{number:06}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))

    def sample(index: int) -> Any:
        with tarfile.open(folder / f"{index // PER_SHARD}.tar") as archive:
            files = {
                extension: archive.extractfile(f"{index:06}.{extension}").read()  # type: ignore[union-attr]
                for extension in ("npy", "cls", "bin")
            }
        array = torch.from_numpy(np.load(io.BytesIO(files["npy"])))
        return array, torch.tensor(int(files["cls"])), files["bin"]

    return {
        "tar": Source(
            lambda: columns.Tar(str(folder / "*.tar"), ("npy", "cls", "bin")),
            lambda: Each(SAMPLES, sample),
        )
    }


def _parquet(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    values = rng.standard_normal(SAMPLES)
    for shard in range(SAMPLES // PER_SHARD):
        own = np.arange(shard * PER_SHARD, (shard + 1) * PER_SHARD)
        table = pa.table({"x": values[own], "label": own % 10, "name": [f"row {n}" for n in own]})
        pq.write_table(table, folder / f"{shard}.parquet", row_group_size=25)

    def column(name: str, cache: str) -> Any:
        return columns.Parquet(str(folder / "*.parquet"), name, cache=cache)

    def native(cache: str) -> Callable[[], Any]:
        return lambda: fastload.Dataset(
            {name: column(name, cache) for name in ("x", "label", "name")}
        )

    # read at once: pyarrow's threads survive no fork
    paths = sorted(folder.glob("*.parquet"))
    rows = [_as_tensors(row) for path in paths for row in _read_rows(path)]
    python = Each(SAMPLES, rows.__getitem__)
    return {
        "parquet": Source(native("1GiB"), lambda: python),
        "parquet small cache": Source(native("1KiB"), lambda: python),
    }


def _as_tensors(row: dict[str, Any]) -> dict[str, Any]:
    """Returns what a sample of a column is: tensors, and strings as they are."""
    return {
        name: value
        if isinstance(value, str)
        else torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        for name, value in row.items()
    }


def _read_rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path, use_threads=False, pre_buffer=False).to_pylist()  # type: ignore[no-any-return]


def _npy(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    paths = [folder / f"{number:03}.npy" for number in range(SAMPLES)]
    for path in paths:
        np.save(path, rng.standard_normal((5, 3), dtype=np.float32))
    return {
        "npy": Source(
            lambda: columns.Npy(paths),
            lambda: Each(len(paths), lambda i: torch.from_numpy(np.load(paths[i]))),
        )
    }


def _wav(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    paths = [folder / f"{number:03}.wav" for number in range(80)]
    for path in paths:
        soundfile.write(path, rng.uniform(-1, 1, (600, 2)), 8000)

    def sample(index: int) -> Any:
        # soundfile opens files under a lock, which a child that is forked at that moment inherits held
        with wave.open(str(paths[index])) as file:
            file.setpos(100)
            read = np.frombuffer(file.readframes(300), np.int16).reshape(-1, 2)
        return torch.from_numpy(np.ascontiguousarray(read.T, np.float32) / 32768)

    return {
        "wav": Source(
            lambda: columns.Audio(paths, start=100, frames=300),
            lambda: Each(len(paths), sample),
        )
    }


def _tokens(folder: Path, rng: np.random.Generator) -> dict[str, Source]:
    path = folder / "train.bin"
    rng.integers(0, 60_000, 32 * SAMPLES + 1).astype(np.uint16).tofile(path)

    def sample(index: int) -> Any:
        window = np.memmap(path, np.uint16, "r")[32 * index : 32 * index + 33]
        return torch.from_numpy(window.astype(np.int64))

    return {
        "tokens": Source(
            lambda: columns.Tokens(path, 33, dtype="uint16", stride=32),
            lambda: Each(SAMPLES, sample),
        )
    }
