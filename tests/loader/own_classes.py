"""Dataset classes as public training code has them: what a loader finds that it has never seen."""

import collections
import csv
import dataclasses
import functools
import io
import json
import math
import pickle
import random
import sqlite3
import threading
import types
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)
from torchvision import transforms
from torchvision.transforms import functional, v2

N = 11

DETERMINISTIC: dict[str, Callable[[Path], Any]] = {}
RANDOM: dict[str, Callable[[Path], Any]] = {}


def same(make: Any) -> Any:
    """Registers what makes the same samples each time."""
    DETERMINISTIC[make.__name__] = make
    return make


def draws(make: Any) -> Any:
    """Registers what draws."""
    RANDOM[make.__name__] = make
    return make


class Sized(Dataset):
    def __len__(self):
        return N


def photographs(folder: Path, mode: str = "RGB", kind: str = "jpg") -> list[Path]:
    """Returns small files; JPEG with all orientations of EXIF."""
    place = folder / f"{mode.replace(';', '')}-{kind}"
    if not place.exists():
        place.mkdir()
        draw = np.random.RandomState(3)
        for number in range(N):
            image = Image.fromarray(draw.randint(0, 255, (30, 40, 3), np.uint8))
            if mode == "I;16":
                image = Image.fromarray(draw.randint(0, 60000, (30, 40)).astype(np.uint16))
            exif = Image.Exif()
            exif[0x0112] = number % 8 + 1
            extra = {"exif": exif} if kind == "jpg" else {}
            image = image if image.mode == mode else image.convert(mode)
            image.save(place / f"{number:02}.{kind}", **extra)
    return sorted(place.iterdir())


# --- pictures


class Modes(Dataset):
    def __init__(self, files, transform=None):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index])
        told = {"mode": image.mode, "size": image.size, "format": image.format}
        made = self.transform(image) if self.transform else torch.from_numpy(np.array(image))
        return {"image": made, **told}


for _mode, _kind in (
    ("P", "png"),
    ("1", "png"),
    ("I;16", "png"),
    ("RGBA", "png"),
    ("CMYK", "jpg"),
    ("L", "jpg"),
):
    DETERMINISTIC[f"mode {_mode}"] = lambda folder, mode=_mode, kind=_kind: Modes(
        photographs(folder, mode, kind)
    )


@same
def turned_by_exif(folder):
    def turned(image):
        image = ImageOps.exif_transpose(image).convert("RGB")
        return functional.pil_to_tensor(image.resize((8, 6), Image.Resampling.BILINEAR))

    return Modes(photographs(folder), turned)


@draws
def own_callables_in_compose(folder):
    steps = [
        transforms.Lambda(lambda image: image.convert("L")),
        transforms.RandomResizedCrop(16),
        lambda image: ImageOps.autocontrast(image),
        transforms.ToTensor(),
        transforms.RandomErasing(p=0.5),
    ]
    return Modes(photographs(folder), transforms.Compose(steps))


@draws
def v2_with_a_lambda(folder):
    steps = [
        v2.ToImage(),
        v2.RandomHorizontalFlip(),
        v2.RandomCrop(20),
        v2.ToDtype(torch.float32, scale=True),
        v2.Lambda(lambda image: image * 2),
    ]
    return Modes(photographs(folder), v2.Compose(steps))


class Segmentation(Modes):
    """Augments an image and its mask together, with two generators."""

    def __init__(self, files, masks, size):
        super().__init__(files)
        self.masks, self.size = masks, size

    def augment(self, image, mask):
        if random.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        top, left = (np.random.randint(0, side - self.size) for side in mask.shape)
        rows, columns = slice(top, top + self.size), slice(left, left + self.size)
        return {"image": image[rows, columns], "mask": mask[rows, columns]}

    def __getitem__(self, index):
        image = np.array(Image.open(self.files[index]).convert("RGB"))
        found = self.augment(image, np.array(Image.open(self.masks[index])))
        image = torch.from_numpy(np.ascontiguousarray(found["image"].transpose(2, 0, 1)))
        return image.float() / 255, torch.from_numpy(found["mask"].copy()).long()


@draws
def segmentation(folder):
    return Segmentation(photographs(folder), photographs(folder, "P", "png"), 16)


class Detection(Modes):
    def __getitem__(self, index):
        image = functional.to_tensor(Image.open(self.files[index]).convert("RGB"))
        count = index % 3
        boxes = torch.as_tensor([[n, n, n + 5, n + 7] for n in range(count)], dtype=torch.float32)
        boxes = boxes.reshape(-1, 4)
        area = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0])
        labels = torch.ones((count,), dtype=torch.int64)
        return image, {"boxes": boxes, "labels": labels, "area": area, "id": torch.tensor([index])}


@same
def detection(folder):
    return Detection(photographs(folder)), {"collate_fn": lambda batch: tuple(zip(*batch))}  # noqa: B905


class Letterbox(Modes):
    def __getitem__(self, index):
        image = Image.open(self.files[index])
        scale = 24 / max(image.size)
        size = tuple(int(side * scale) for side in image.size)
        canvas = Image.new("RGB", (24, 24), (128, 128, 128))
        canvas.paste(image.resize(size, Image.Resampling.BICUBIC), (0, 3))
        array = np.asarray(canvas, dtype=np.float32).transpose(2, 0, 1) / 255.0
        return array, np.array(image.size), np.float64(scale)


@same
def letterbox(folder):
    return Letterbox(photographs(folder))


class Placeholder(Modes):
    def __getitem__(self, index):
        try:
            with Path(self.files[index]).open("rb") as file:
                image = Image.open(file).convert("RGB")
            return functional.to_tensor(image.resize((8, 8))), index
        except Exception:
            return torch.zeros(3, 8, 8), -1


@same
def damaged_files(folder):
    files = photographs(folder)
    content = files[0].read_bytes()
    for name, data in (("cut", content[: len(content) // 2]), ("text", b"nope"), ("empty", b"")):
        (folder / name).write_bytes(data)
    return Placeholder([*files[:4], *(folder / name for name in ("cut", "text", "empty", "none"))])


class Clips(Modes):
    def __len__(self):
        return len(self.files) - 3

    def __getitem__(self, index):
        start = random.randint(0, len(self) - 1)
        size = transforms.Compose([transforms.Resize(16), transforms.CenterCrop(12)])
        frames = [size(Image.open(file).convert("RGB")) for file in self.files[start : start + 3]]
        return torch.stack([functional.to_tensor(frame) for frame in frames], 1), start


@draws
def video_clips(folder):
    return Clips(photographs(folder))


class Encoded(Dataset):
    def __init__(self, files):
        self.blobs = [file.read_bytes() for file in files]

    def __len__(self):
        return len(self.blobs)

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.blobs[index])).crop((2, 2, 22, 20))
        return functional.to_tensor(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT))


@same
def encoded_in_memory(folder):
    return Encoded(photographs(folder))


class Cached(Modes):
    def __init__(self, files):
        super().__init__(files)
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = np.array(Image.open(self.files[index]).resize((8, 8)))
        return self.cache[index]


@same
def cached_arrays(folder):
    return Cached(photographs(folder))


# --- files of arrays, databases, tables


class Volumes(Dataset):
    def __init__(self, folder, patch=None):
        for number in range(N):
            volume = np.random.RandomState(number).randn(6, 7, 8).astype(np.float32)
            np.save(folder / f"{number:02}.npy", volume)
        self.paths, self.patch = sorted(folder.glob("*.npy")), patch

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        volume = np.load(self.paths[index], mmap_mode="r")
        if self.patch:
            corner = [np.random.randint(0, side - self.patch + 1) for side in volume.shape]
            volume = volume[tuple(slice(start, start + self.patch) for start in corner)]
        volume = (volume - volume.mean()) / (volume.std() + 1e-8)
        return torch.tensor(np.ascontiguousarray(volume), dtype=torch.float32)[None]


@same
def volumes(folder):
    return Volumes(folder)


@draws
def patches_of_volumes(folder):
    return Volumes(folder, 4)


class Archives(Sized):
    def __init__(self, folder):
        self.paths = [folder / f"{number}.npz" for number in range(N)]
        for number, path in enumerate(self.paths):
            np.savez(path, image=np.eye(3) * number, label=np.int64(number), name=f"case{number}")

    def __getitem__(self, index):
        with np.load(self.paths[index]) as archive:
            found = {name: archive[name] for name in ("image", "label")}
            return found | {"name": str(archive["name"])}


@same
def archives(folder):
    return Archives(folder)


class Blocks(Dataset):
    def __init__(self, path, block):
        np.arange(30, dtype=np.uint16).tofile(path)
        self.path, self.block = path, block

    def __len__(self):
        return N

    def __getitem__(self, _):
        tokens = np.memmap(self.path, dtype=np.uint16, mode="r")
        start = torch.randint(len(tokens) - self.block, (1,))
        return torch.from_numpy(tokens[start : start + self.block].astype(np.int64))


@draws
def blocks_of_tokens(folder):
    return Blocks(folder / "tokens.bin", 5)


class Hdf5(Sized):
    """Opens its file with the first sample, and closes it at the end."""

    def __init__(self, path):
        import h5py

        with h5py.File(path, "w") as file:
            file["x"] = np.random.RandomState(1).rand(N, 3).astype(np.float32)
            file["name"] = [f"name{number}" for number in range(N)]
        self.path, self.file = path, None

    def __getitem__(self, index):
        import h5py

        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["x"][index], self.file["name"][index].decode()

    def __del__(self):
        if self.file is not None:
            self.file.close()


@same
def hdf5_opened_late(folder):
    return Hdf5(folder / "data.h5")


class Lmdb(Sized):
    def __init__(self, path):
        import lmdb

        self.path, self.environment = str(path), None
        with lmdb.open(self.path, map_size=1 << 20) as made, made.begin(write=True) as entries:
            for number in range(N):
                record = {"x": np.full(3, number, np.float32), "text": f"text {number}"}
                entries.put(f"{number:04}".encode(), zlib.compress(pickle.dumps(record)))

    def __getitem__(self, index):
        import lmdb

        if self.environment is None:
            self.environment = lmdb.open(self.path, readonly=True, lock=False)
        with self.environment.begin() as entries:
            return pickle.loads(zlib.decompress(entries.get(f"{index:04}".encode())))


@same
def lmdb_of_pickles(folder):
    return Lmdb(folder / "lmdb")


class Rows(Sized):
    def __init__(self, path):
        self.path = path
        path.unlink(missing_ok=True)
        made = sqlite3.connect(path)
        made.execute("create table rows (id integer, x real, text text)")
        rows = [(number, number / 3, f"row {number}") for number in range(N)]
        made.executemany("insert into rows values (?, ?, ?)", rows)
        made.commit()
        made.close()

    @functools.cached_property
    def database(self):
        return sqlite3.connect(self.path)

    def __getitem__(self, index):
        found = self.database.execute("select x, text from rows where id = ?", (int(index),))
        x, text = found.fetchone()
        return {"x": x, "text": text}

    def __del__(self):
        if "database" in vars(self):
            self.database.close()


@same
def database_opened_late(folder):
    return Rows(folder / "rows.db")


class Lines(Dataset):
    """Keeps the offsets of lines."""

    def __init__(self, path):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[n, n / 10, f"na,me é{n}"] for n in range(N)])
        self.path, self.offsets = path, [0]
        for line in path.read_bytes().splitlines(keepends=True)[:-1]:
            self.offsets.append(self.offsets[-1] + len(line))

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, index):
        with self.path.open("rb") as file:
            file.seek(self.offsets[index])
            *numbers, name = next(csv.reader([file.readline().decode()]))
        return [float(number) for number in numbers], name


@same
def lines_of_csv(folder):
    return Lines(folder / "lines.csv")


class Items(Dataset):
    def __init__(self, path, items):
        path.write_text(json.dumps(items))
        self.items = json.loads(path.read_text())

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


@same
def json_with_lists(folder):
    deep = [{"v": [n, n + 0.5], "tags": ["a", str(n)], "n": {"b": [n % 2 == 0]}} for n in range(N)]
    return Items(folder / "items.json", deep)


@same
def json_with_lists_of_several_lengths(folder):
    return Items(folder / "ragged.json", [{"v": list(range(n))} for n in range(N)])


@same
def json_with_a_null(folder):
    return Items(folder / "null.json", [{"v": None if n == 5 else n} for n in range(N)])


class FrameRows(Dataset):
    def __init__(self):
        import pandas as pd

        kinds = pd.Categorical([("u", "v")[n % 2] for n in range(N)])
        columns = {"a": np.arange(N) / 2, "b": np.arange(N), "kind": kinds, "is": np.arange(N) > 4}
        self.frame = pd.DataFrame(columns)

    def __len__(self):
        return self.frame.shape[0]

    def __getitem__(self, index):
        row = self.frame.iloc[index.tolist() if torch.is_tensor(index) else index]
        numbers = row[["a", "b"]].to_numpy(dtype=np.float32)
        return {"x": numbers, "kind": row["kind"], "is": row["is"], "id": f"{row['kind']}_{index}"}


@same
def rows_of_a_frame(folder):
    return FrameRows()


class Waves(Sized):
    def __init__(self, folder):
        self.paths = [folder / f"{number}.wav" for number in range(N)]
        for number, path in enumerate(self.paths):
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", None))
                draw = np.random.RandomState(number)
                file.writeframes(draw.randint(-999, 999, 400 + 20 * number).astype("<i2").tobytes())

    def __getitem__(self, index):
        with wave.open(str(self.paths[index]), "rb") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
            return torch.from_numpy(samples.copy()).float() / 32768, file.getframerate()


def padded(batch):
    waves, rates = zip(*batch, strict=True)
    lengths = torch.tensor([len(each) for each in waves])
    return pad_sequence(waves, batch_first=True), lengths, rates


@same
def waves(folder):
    return Waves(folder), {"collate_fn": padded}


@same
def waves_that_do_not_stack(folder):
    return Waves(folder)


# --- memory: series, text, pairs, graphs


class Forecast(Dataset):
    def __init__(self, series, window, horizon, stride):
        self.series, self.window, self.horizon, self.stride = series, window, horizon, stride

    def __len__(self):
        return (len(self.series) - self.window - self.horizon) // self.stride + 1

    def __getitem__(self, index):
        start = index * self.stride
        x = self.series[start : start + self.window]
        y = self.series[start + self.window : start + self.window + self.horizon]
        mean = x.mean(0, keepdims=True)
        return (x - mean).astype(np.float32), (y - mean).astype(np.float32), mean[0]


@same
def forecast_windows(folder):
    return Forecast(np.random.RandomState(0).rand(60, 3), 7, 3, 4)


class Characters(Dataset):
    def __init__(self, text, length):
        self.text, self.length = text, length
        self.numbers = {letter: number for number, letter in enumerate(sorted(set(text)))}

    def __len__(self):
        return len(self.text) - self.length

    def __getitem__(self, index):
        ids = [self.numbers[letter] for letter in self.text[index : index + self.length + 1]]
        return torch.tensor(ids[:-1], dtype=torch.long), torch.tensor(ids[1:], dtype=torch.long)


@same
def characters(folder):
    return Characters("the quick brown fox", 6)


class Tokenized(Sized):
    def __init__(self):
        self.texts = ["a b c"[: 1 + number % 5] for number in range(N)]
        self.vocabulary = collections.defaultdict(int, {"a": 2, "b": 3})

    def __getitem__(self, index):
        ids = [self.vocabulary.get(word, 1) for word in self.texts[index].split()]
        pad = [0] * (4 - len(ids))
        mask = [1] * len(ids) + pad
        return {"input_ids": ids + pad, "attention_mask": mask, "text": self.texts[index]}


@same
def tokens_as_lists(folder):
    return Tokenized()


class Masked(Sized):
    def __getitem__(self, index):
        ids = torch.arange(8) + 8 * index
        mask = torch.bernoulli(torch.full(ids.shape, 0.3)).bool()
        return {"input_ids": ids.masked_fill(mask, 999), "labels": ids.masked_fill(~mask, -100)}


@draws
def masked_tokens(folder):
    return Masked()


class Pairs(Sized):
    def __init__(self):
        self.x, self.y = np.random.RandomState(0).rand(N, 4).astype(np.float32), np.arange(N) % 3
        self.members = {label: np.where(self.y == label)[0] for label in set(self.y.tolist())}

    def __getitem__(self, index):
        same = np.random.randint(0, 2)
        label = int(self.y[index])
        if not same:
            label = np.random.choice(list(set(self.members) - {label}))
        other = random.choice(self.members[label])
        return (self.x[index], self.x[other]), np.float32(same)


@draws
def siamese_pairs(folder):
    return Pairs()


class Triplets(Sized):
    def __init__(self):
        self.x, self.y = torch.arange(N * 3.0).view(N, 3), torch.arange(N) % 2

    def __getitem__(self, index):
        positive = negative = index
        while positive == index:
            positive = random.choice(torch.nonzero(self.y == self.y[index]).flatten().tolist())
        while self.y[negative] == self.y[index]:
            negative = torch.randint(N, (1,)).item()
        return self.x[index], self.x[positive], self.x[negative]


@draws
def triplets(folder):
    return Triplets()


class Graphs(Sized):
    def __getitem__(self, index):
        nodes = torch.arange(2 + index % 3)
        edges = torch.stack([nodes, nodes.roll(1)])
        return types.SimpleNamespace(edges=edges, x=nodes.float()[:, None] * index, y=index)


def joined(graphs):
    starts = np.cumsum([0, *(len(graph.x) for graph in graphs[:-1])])
    edges = [graph.edges + int(start) for graph, start in zip(graphs, starts, strict=True)]
    ids = torch.tensor([graph.y for graph in graphs])
    return {"edges": torch.cat(edges, 1), "x": torch.cat([graph.x for graph in graphs]), "y": ids}


@same
def graphs(folder):
    return Graphs(), {"collate_fn": joined}


@same
def graphs_that_cannot_be_collated(folder):
    return Graphs()


# --- samples


class Point(NamedTuple):
    x: Any
    meta: Any


@dataclasses.dataclass
class Record:
    x: torch.Tensor
    y: int


class Collator:
    """Counts its batches."""

    def __init__(self):
        self.calls = 0

    def __call__(self, records):
        self.calls += 1
        return torch.stack([record.x for record in records]), [record.y for record in records]


class Words(str):
    __slots__ = ()


class Table(dict[str, Any]):
    pass


class PathError(Exception):
    """Takes more than a message."""

    def __init__(self, path, number):
        super().__init__(f"bad sample {number}")
        self.path = path


class Sample(Sized):
    def __init__(self, make):
        self.make = make

    def __getitem__(self, index):
        return self.make(index)


def fails(index):
    if index == 6:
        raise PathError(index, index)
    return index


SAMPLES: dict[str, Callable[[int], Any]] = {
    "numpy's scalars": lambda n: (np.int8(n), np.uint16(n), np.float32(n), np.bool_(n % 2)),
    "nested": lambda n: {"a": [torch.tensor(n), {"b": (n, float(n), str(n), bytes([n]))}], 5: n},
    "named tuple": lambda n: Point(torch.ones(2) * n, {"k": str(n)}),
    "dataclass": lambda n: Record(torch.ones(2) * n, n),
    "half": lambda n: (torch.ones(2, dtype=torch.bfloat16) * n, np.ones(2, np.float16) * n),
    "unsigned": lambda n: (torch.tensor([n], dtype=torch.uint16), np.array([2**63 + n], np.uint64)),
    "complex": lambda n: (np.complex64(n + 1j), torch.tensor([n + 2j])),
    "no dimensions": lambda n: (torch.tensor(n), np.array(1.5)),
    "empty": lambda n: (torch.empty(0, 3), np.empty((0,), np.float32), (), {}, ""),
    "large ints": lambda n: 2**62 + n,
    "too large ints": lambda n: 2**64 + n,
    "ints and floats": lambda n: n if n % 2 else float(n),
    "bools and ints": lambda n: True if n % 2 else n,
    "not a number": lambda n: float("nan") if n % 2 else -0.0,
    "a subclass of str": Words,
    "a subclass of dict": lambda n: Table(v=n),
    "ordered": lambda n: collections.OrderedDict([("b", n), ("a", n)]),
    "counter": lambda n: collections.Counter("aab"),
    "deque": lambda n: collections.deque([n, n]),
    "range": lambda n: range(n, n + 2),
    "dates": lambda n: np.datetime64("2026-01-01") + n,
    "objects": lambda n: np.array([1, "a", None], dtype=object),
    "none": lambda n: None,
    "transposed": lambda n: torch.arange(12.0).view(3, 4).t() + n,
    "backwards": lambda n: np.arange(6.0)[::-1],
    "sparse": lambda n: torch.eye(3).to_sparse() * n,
    "nested tensors": lambda n: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
    "conjugated": lambda n: torch.tensor([n + 1j]).conj(),
    "negated": lambda n: torch.tensor([n + 1j]).conj().imag,
    "several shapes": torch.zeros,
    "several types": lambda n: torch.zeros(1) if n % 2 else 0,
    "several keys": lambda n: {"a": 1} if n % 2 else {"b": 1},
    "a missing key": lambda n: {"a": 1} if n % 2 else {"a": 1, "b": 2},
    "an exception of its own": fails,
    "text that does not decode": lambda n: b"\xff".decode() if n == 3 else n,
    "json that does not parse": lambda n: json.loads("{" if n == 3 else str(n)),
}


# --- state, protocols


class Bare:
    """Has no base class."""

    letters = "abcdefghijk"

    def __len__(self):
        return len(self.letters)

    def __getitem__(self, index):
        return self.letters[index], ord(self.letters[index])


class Listed(Sized):
    def __getitem__(self, index):
        return index, "single"

    def __getitems__(self, indices):
        return [(index, "several") for index in indices]


class Wrapper(Dataset):
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


class Slotted(Sized):
    __slots__ = ("values",)

    def __init__(self):
        self.values = torch.arange(N)

    def __getitem__(self, index):
        return self.values[index] + 0


class Remembered(Sized):
    @functools.cache  # noqa: B019
    def load(self, index):
        return np.arange(3) * index

    def __getitem__(self, index):
        return self.load(index)


class Buffered(Sized):
    """Returns the same memory for each sample."""

    def __init__(self):
        self.buffer = np.zeros(3)

    def __getitem__(self, index):
        self.buffer[:] = index
        return self.buffer


class Retries(Sized):
    def __getitem__(self, index):
        if index % 4 == 0:
            return self[(index + 1) % N]
        return torch.tensor(index)


class Held(Sized):
    """Holds a lock, a thread's local and a function."""

    def __init__(self):
        self.lock, self.local, self.add = threading.Lock(), threading.local(), lambda n: n + 1

    def __getitem__(self, index):
        with self.lock:
            return self.add(index)


class Filtered(Sized):
    def __getitem__(self, index):
        return None if index % 3 == 0 else (torch.tensor([index]), index)


def without_none(batch):
    batch = [sample for sample in batch if sample is not None]
    return default_collate(batch) if batch else None


class Padded(Sized):
    """Its method collates."""

    def __getitem__(self, index):
        return [index] * (index % 3 + 1)

    def collate(self, batch):
        longest = max(map(len, batch))
        return torch.tensor([each + [0] * (longest - len(each)) for each in batch])


class Squares(Dataset):
    def __init__(self, count, shift=0):
        self.count, self.shift = count, shift

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        return (index + self.shift) ** 2


class Unmeasured(Dataset):
    def __len__(self):
        msg = "no length here"
        raise TypeError(msg)

    def __getitem__(self, index):
        return index


def split():
    whole = ConcatDataset([Squares(7), Subset(Squares(20, 5), [3, 1, 1, 8])])
    return ConcatDataset(random_split(whole, [0.6, 0.4], torch.Generator().manual_seed(4)))


PROTOCOLS: dict[str, Callable[[], Any]] = {
    "no base class": Bare,
    "__getitems__": Listed,
    "__getitems__ in a wrapper": lambda: Wrapper(Listed()),
    "slots": Slotted,
    "a cached method": Remembered,
    "one buffer": Buffered,
    "the next sample instead": Retries,
    "a lock and a lambda": Held,
    "filtered": lambda: (Filtered(), {"collate_fn": without_none}),
    "filtered to nothing": lambda: (Filtered(), {"collate_fn": without_none, "batch_size": 1}),
    "a method collates": lambda: (Padded(), {"collate_fn": Padded().collate}),
    "a collator with a state": lambda: (
        Sample(SAMPLES["dataclass"]),
        {"collate_fn": Collator()},
    ),
    "subsets of joined ones": split,
    "stacked": lambda: StackDataset(a=Squares(N), b=TensorDataset(torch.arange(N), torch.ones(N))),
    "a list": lambda: [(number, str(number)) for number in range(N)],
    "a dict": lambda: {number: torch.ones(2) * number for number in range(N)},
    "a range": lambda: range(5, 5 + N),
    "text": lambda: "abcdefghijk",
    "bytes": lambda: b"abcdefghijk",
    "an array": lambda: np.arange(N * 2.0).reshape(N, 2),
    "a tensor": lambda: torch.arange(N),
    "nothing": lambda: Squares(0),
    "no length": Unmeasured,
    "large batches": lambda: (Squares(3), {"batch_size": 100}),
    "without batches": lambda: (Squares(N), {"batch_size": None}),
    "without a last batch": lambda: (Squares(N), {"drop_last": True}),
    "page-locked": lambda: (Squares(N), {"pin_memory": torch.cuda.is_available()}),
}

for _name, _make in SAMPLES.items():
    DETERMINISTIC[_name] = lambda folder, make=_make: Sample(make)
for _name, _make in PROTOCOLS.items():
    DETERMINISTIC[_name] = lambda folder, make=_make: make()


class Generators(Sized):
    """Draws from generators of its own."""

    def __init__(self):
        self.old, self.new = np.random.RandomState(5), np.random.default_rng(5)
        self.torchs, self.pythons = torch.Generator().manual_seed(5), random.Random(5)

    def __getitem__(self, index):
        third = torch.rand(1, generator=self.torchs)
        return self.old.rand(), self.new.integers(0, 100), third, self.pythons.random()


class AllThree(Sized):
    def __getitem__(self, index):
        torchs = torch.randn(2), torch.randperm(3)
        numpys = np.random.rand(2), np.random.randn(), np.random.permutation(3)
        return *torchs, *numpys, random.random(), random.gauss(0, 1), random.sample(range(10), 2)


class Model(Sized):
    def __init__(self):
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))

    @torch.no_grad()
    def __getitem__(self, index):
        return self.net(torch.full((4,), float(index)))


def seed_from_numpy(worker):
    np.random.seed(np.random.get_state()[1][0] + worker)


def seed_from_torch(worker):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def seed_from_info(worker):
    np.random.seed(get_worker_info().seed % 2**32)


RANDOM["generators of its own"] = lambda folder: Generators()
RANDOM["all three generators"] = lambda folder: AllThree()
RANDOM["dropout"] = lambda folder: Model()
for _seed in (seed_from_numpy, seed_from_torch, seed_from_info):
    RANDOM[_seed.__name__] = lambda folder, seed=_seed: (AllThree(), {"worker_init_fn": seed})


# --- orders


class Shuffled(Sampler[Any]):
    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return N

    def __iter__(self):
        return iter(self.draw(N))


class Kind(Sized):
    def __getitem__(self, index):
        return type(index).__name__, int(index)


class Sizes(Sized):
    """Is indexed with an index and a size."""

    def __getitem__(self, pair):
        index, size = pair
        return torch.zeros(2) + index * 10 + size


class Buckets(Sampler[list[int]]):
    """Batches of similar lengths, in an order that is drawn."""

    def __len__(self):
        return math.ceil(N / 3)

    def __iter__(self):
        order = sorted(range(N), key=lambda index: (index % 4, random.random()))
        batches = [order[start : start + 3] for start in range(0, N, 3)]
        random.shuffle(batches)
        yield from batches


class Names(Sampler[str]):
    """Has no length."""

    def __iter__(self):
        return iter("acb")


ORDERED: dict[str, Callable[[], Any]] = {
    "numpy's order": lambda: (Kind(), {"sampler": Shuffled(np.random.permutation)}),
    "torch's order": lambda: (Kind(), {"sampler": Shuffled(torch.randperm)}),
    "pairs": lambda: (Sizes(), {"sampler": [(n, n % 3) for n in range(N)]}),
    "names": lambda: ({"a": 1, "b": 2, "c": 3}, {"sampler": Names()}),
    "weighted": lambda: (Squares(N), {"sampler": WeightedRandomSampler([0.1] * N, 20)}),
    "a subset": lambda: (Squares(50), {"sampler": SubsetRandomSampler([3, 9, 27])}),
    "repeated": lambda: (
        Squares(N),
        {"sampler": RandomSampler(range(N), replacement=True, num_samples=20)},
    ),
    "beyond the end": lambda: (Squares(N), {"sampler": [0, 1, 99, 3, -1]}),
    "buckets": lambda: (
        [torch.arange(number % 4 + 1) for number in range(N)],
        {"batch_sampler": Buckets(), "collate_fn": pad_sequence},
    ),
    "batches of every kind": lambda: (
        Squares(N),
        {"batch_sampler": [[0, 1], (2,), range(3), np.array([5, 5]), [], [7]]},
    ),
    "the dataset makes batches": lambda: (
        np.arange(N * 2.0).reshape(N, 2),
        {"sampler": BatchSampler(range(N), 4, drop_last=False), "batch_size": None},
    ),
}


# --- streams


class Shards(IterableDataset):
    def __init__(self, count, length=None):
        self.count, self.length = count, length

    def __len__(self):
        if self.length is None:
            raise TypeError
        return self.length

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from ({"k": number, "s": str(number)} for number in range(first, self.count, step))


class OwnIterator(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        self.position = 0
        return self

    def __next__(self):
        if self.position >= self.count:
            raise StopIteration
        self.position += 1
        return self.position


class Broken(IterableDataset):
    def __iter__(self):
        yield from range(5)
        raise PathError(self, 5)


class Batches(IterableDataset):
    def __iter__(self):
        for number in range(4):
            yield torch.full((2,), number), [str(number)]


class Ranges(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


def divide(worker):
    """Gives each worker a part of the range, as torch's documentation does."""
    info = get_worker_info()
    dataset, size = info.dataset, math.ceil((info.dataset.end - 3) / info.num_workers)
    dataset.start = 3 + worker * size
    dataset.end = min(dataset.start + size, dataset.end)


class Buffer(IterableDataset):
    def __iter__(self):
        buffer = []
        for number in range(15):
            buffer.append(number)
            if len(buffer) >= 4:
                yield buffer.pop(random.randrange(len(buffer)))
        np.random.shuffle(buffer)
        yield from buffer


STREAMS: dict[str, Callable[[], Any]] = {
    "shards": lambda: Shards(13),
    "a length": lambda: Shards(13, 13),
    "joined": lambda: ChainDataset([Shards(5), Shards(4)]),
    "its own iterator": lambda: OwnIterator(9),
    "broken": Broken,
    "batches": lambda: (Batches(), {"batch_size": None}),
    "divided": lambda: (Ranges(3, 14), {"worker_init_fn": divide}),
}
