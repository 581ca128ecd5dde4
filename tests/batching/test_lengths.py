"""`fastload.lengths`: from storage, or from one look at each sample."""

import collections
import json
import logging

import datasets
import numpy as np
import PIL.Image
import pytest
import soundfile
import torch
from torch.utils.data import IterableDataset, Subset, TensorDataset, get_worker_info

import fastload
from fastload import Dataset, columns, lengths
from tests.shared.compare import MANY_WORKERS

pytestmark = MANY_WORKERS

Pair = collections.namedtuple("Pair", ["text", "label"])
SIZES = [3, 0, 5, 1, 7]


KINDS = {
    "dict": lambda index, size: {
        "x": torch.zeros(size, 2),
        "y": size,
        "t": "",
        "f": 1.5,
        "n": {"a": [0] * size},
    },
    "pair": lambda index, size: Pair(np.zeros((2, size)), size),
    "tensor": lambda index, size: torch.zeros(4, size),
    "image": lambda index, size: PIL.Image.new("L", (3, size + 1)),
    "both": lambda index, size: torch.zeros(size, index),
    "ranks": lambda index, size: torch.zeros((2,) * (1 + index // 3)),
    "alike": lambda index, size: torch.zeros(4, 6),
}


class Python(torch.utils.data.Dataset):
    """Samples of many kinds, by Python; says how often each was made."""

    def __init__(self, kind="dict", count=5):
        self.kind = kind
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        size = SIZES[index % 5]
        return KINDS[self.kind](index, size)


@pytest.mark.parametrize(
    ("kind", "field", "dim", "expected"),
    [
        ("dict", "x", None, SIZES),
        ("dict", "x", 1, [2] * 5),
        ("dict", "y", None, SIZES),
        ("dict", ("n", "a"), None, SIZES),
        ("pair", "text", None, SIZES),
        ("pair", 0, -2, [2] * 5),
        ("pair", 1, None, SIZES),
        ("tensor", None, None, SIZES),
        ("tensor", None, 0, [4] * 5),
        ("image", None, None, [size + 1 for size in SIZES]),
        ("both", None, -2, SIZES),
        ("both", lambda sample: sample.shape[0] + 1, None, [size + 1 for size in SIZES]),
        ("alike", None, None, [4] * 5),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_python_samples_are_looked_at(kind, field, dim, expected, workers):
    found = lengths(Python(kind), field, dim=dim, num_workers=workers)
    assert found.dtype is torch.int64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("kind", "field", "dim", "error", "words"),
    [
        ("dict", "q", None, KeyError, "no field 'q': sample 0"),
        ("dict", "t", None, TypeError, "field 't' of sample 0 is a str, not an array"),
        ("dict", "f", None, TypeError, "field 'f' of sample 0 is a single float"),
        ("dict", None, None, TypeError, "a sample of sample 0 is a dict"),
        ("pair", 7, None, KeyError, "no field 7"),
        ("both", None, None, ValueError, "a sample varies in dimensions 0, 1: choose one by dim"),
        ("ranks", None, None, ValueError, "2 dimensions in sample 3 and 1 in sample 0"),
        ("tensor", None, 2, ValueError, "2 dimensions, and so no dimension 2"),
        ("dict", lambda sample: -1, None, TypeError, "is -1; a length is an integer"),
    ],
)
def test_what_has_no_length(kind, field, dim, error, words):
    with pytest.raises(error, match=words):
        lengths(Python(kind), field, dim=dim, num_workers=1)


def test_datasets_without_numbered_samples():
    class Stream(IterableDataset):
        def __iter__(self):
            yield 1

    with pytest.raises(TypeError, match="Stream cannot be looked up"):
        lengths(Stream())


def test_many_samples_stay_in_order():
    dataset = Python(count=1000)
    assert lengths(dataset, "x", num_workers=3).tolist() == SIZES * 200
    assert lengths([[0] * n for n in SIZES] * 100).tolist() == SIZES * 100
    assert lengths([]).tolist() == lengths(Python(count=0), "x").tolist() == []


class Broken(Python):
    def __getitem__(self, index):
        if index == 700:
            msg = "no such recording"
            raise FileNotFoundError(msg)
        return super().__getitem__(index)


def test_errors_of_a_dataset_say_where():
    with pytest.raises(FileNotFoundError, match="no such recording") as raised:
        lengths(Broken(count=1000), "x", num_workers=1)
    where = raised.value.__notes__
    assert where[-1] == "while looking up lengths, at sample 512 or soon after"


class Opened(Python):
    handle = None

    def __getitem__(self, index):
        assert self.handle == get_worker_info().id
        return super().__getitem__(index)


def open_it(number):
    get_worker_info().dataset.handle = number


def test_workers_are_prepared_as_the_loaders_are():
    found = lengths(Opened(), "x", num_workers=2, worker_init_fn=open_it)
    assert found.tolist() == SIZES


class Several(Python):
    def __getitems__(self, indices):
        assert len(indices) <= 32
        return [self[index] for index in indices]


def test_samples_that_are_made_together_are_looked_at_together():
    assert lengths(Several(count=100), "x", num_workers=1).tolist() == SIZES * 20


@pytest.mark.parametrize("workers", [0, 1])
def test_generators_are_left_alone(workers):
    before = torch.get_rng_state()
    lengths([[1]], None, num_workers=workers)
    lengths(Python(count=300), lambda sample: torch.rand(3), num_workers=workers)
    assert torch.equal(torch.get_rng_state(), before)


def recordings(folder):
    for number, size in enumerate(SIZES):
        soundfile.write(folder / f"{number}.wav", np.zeros((size + 1, 2)), 8000)
    return columns.Audio(str(folder / "*.wav"))


def test_recordings_are_as_long_as_their_frames(tmp_path):
    audio = recordings(tmp_path)
    frames = [size + 1 for size in SIZES]
    assert lengths(Dataset({"wave": audio}), "wave").tolist() == frames
    assert lengths(audio, dim=0).tolist() == [2] * 5
    loader = fastload.Loader(audio, max_tokens=16, num_workers=1)
    padded = [batch.shape for batch in loader]
    assert sum(count for count, _, _ in padded) == 5
    assert all(count * length <= 16 for count, _, length in padded)


def test_images_are_decoded_to_be_measured(tmp_path):
    for number, size in enumerate(SIZES):
        PIL.Image.new("RGB", (20, 10 + size)).save(tmp_path / f"{number}.png")
    images = columns.Image(str(tmp_path / "*.png"))
    rows = [10 + size for size in SIZES]
    assert lengths(images).tolist() == lengths(images, dim=0).tolist() == rows
    assert lengths(images, lambda sample: sample[:, 0]).tolist() == rows
    (tmp_path / "0.png").write_bytes(b"no image")
    with pytest.raises(OSError, match=r"0\.png"):
        lengths(columns.Image(str(tmp_path / "*.png")))


def test_lists_of_lines_are_parsed_to_be_measured(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f"{[1] * size}\n" for size in SIZES))
    assert lengths(columns.Jsonl(path, ()), num_workers=2).tolist() == SIZES


def test_what_recognised_datasets_store(tmp_path):
    tensors = TensorDataset(torch.zeros(5, 4), torch.tensor(SIZES, dtype=torch.int16))
    assert lengths(tensors, 0).tolist() == [4] * 5
    assert lengths(tensors, 1).tolist() == SIZES
    assert lengths(Subset(tensors, [4, 0]), 1).tolist() == [7, 3]
    table = datasets.Dataset.from_dict({"ids": [[1] * n for n in SIZES], "text": ["a"] * 5})
    assert lengths(table, "ids").tolist() == SIZES
    assert lengths(table.with_format("torch"), "ids").tolist() == SIZES
    with pytest.raises(TypeError, match=r"'text'.* has no lengths"):
        lengths(table, "text")
    doubled = table.with_transform(lambda batch: {"ids": [2 * each for each in batch["ids"]]})
    assert lengths(doubled, "ids").tolist() == [2 * size for size in SIZES]


class Counted(Python):
    """Leaves a file for each sample that was made."""

    def __init__(self, folder, count=5):
        super().__init__(count=count)
        self.folder = folder

    def __getitem__(self, index):
        (self.folder / f"{index}").touch()
        return super().__getitem__(index)

    def made(self):
        found = list(self.folder.iterdir())
        for path in found:
            path.unlink()
        return len(found)


@pytest.fixture
def counted(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    return Counted(folder)


def test_lengths_are_kept_in_memory(counted):
    first = lengths(counted, "x")
    assert counted.made() == 5
    again = Counted(counted.folder)
    assert torch.equal(lengths(again, "x"), first)
    assert counted.made() == 0
    for change in ({"field": "y"}, {"field": "x", "dim": 0}):
        lengths(counted, **change)
        assert counted.made() == 5
    again.count = 4
    assert len(lengths(again, "x")) == 4
    assert counted.made() == 4


def test_lengths_are_kept_in_a_file(counted, tmp_path, monkeypatch, caplog):
    cache = tmp_path / "lengths"
    first = lengths(counted, "x", cache)
    assert counted.made() == 5
    monkeypatch.setattr("fastload.batching.fields._known", {})
    assert torch.equal(lengths(counted, "x", cache=cache), first)
    assert counted.made() == 0
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "fastload"):
        assert lengths(Counted(counted.folder, 3), "x", cache).tolist() == SIZES[:3]
    assert "belongs to another dataset, by its fingerprint, samples" in caplog.text
    assert counted.made() == 3
    monkeypatch.setattr("fastload.batching.fields._known", {})
    assert lengths(Counted(counted.folder, 3), "x", cache).tolist() == SIZES[:3]
    assert counted.made() == 0
    header, _ = cache.read_bytes().split(b"\n", 1)
    assert json.loads(header)["samples"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lengths", "made"]


def test_files_that_are_no_cache(counted, tmp_path, caplog):
    other = tmp_path / "thesis.txt"
    for content in (b"Chapter 1\n", b"{}\n", b'{"kind": 3}\n', b"\xff" * 99, b"[1]"):
        other.write_bytes(content)
        with pytest.raises(ValueError, match=r"thesis\.txt' is not a file of lengths"):
            lengths(counted, "x", other)
        assert other.read_bytes() == content
    cache = tmp_path / "lengths"
    lengths(counted, "x", cache)
    cache.write_bytes(cache.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, "fastload"):
        assert lengths(counted, "x", cache).tolist() == SIZES
    assert "is damaged" in caplog.text
    cache.write_bytes(b"")
    assert lengths(counted, "x", cache).tolist() == SIZES
    with pytest.raises(FileNotFoundError):
        lengths(counted, "x", tmp_path / "no" / "folder")
