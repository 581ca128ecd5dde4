"""Names of files: bytes that are not UTF-8, which Python writes with surrogates; patterns; the same name elsewhere."""

import io
import json
import os
import sys
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fastload import Dataset, Loader, OnError, columns
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .megatron import megatron

pytestmark = [
    MANY_WORKERS,
    pytest.mark.skipif(
        sys.platform in ("darwin", "win32"), reason="this system's file names are Unicode"
    ),
]

ODD = os.fsdecode(b"caf\xe9")


def png(path):
    pixels = np.random.default_rng(0).integers(0, 255, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, "PNG")
    return columns.Image([path])


def npy(path):
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    return columns.Npy([path])


def npz(path):
    with path.open("wb") as file:
        np.savez(file, a=np.arange(3))
    return columns.Npz([path], "a")


def pt(path):
    with path.open("wb") as file:
        torch.save(torch.arange(3), file)
    return columns.Pt([path])


def audio(path):
    with path.open("wb") as file, wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"\0\1" * 10)
    return columns.Audio([path])


def jsonl(path):
    path.write_text('{"a": 1}\n{"a": 2}\n')
    return columns.Jsonl(path, "a")


def tokens(path):
    np.arange(32, dtype=np.uint16).tofile(path)
    return columns.Tokens(path, 8, dtype="uint16")


def parquet(path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    with path.open("wb") as file:
        parquet.write_table(pa.table({"a": [1, 2, 3]}), file)
    return columns.Parquet(path, "a")


def tar(path):
    picture = path.with_name("picture.png")
    png(picture)
    with tarfile.open(path, "w") as file:
        file.add(picture, "1.png")
    return columns.Tar([path], "png")


def pair(path):
    return columns.Megatron(megatron(path, [np.arange(3, dtype=np.uint16)]))


@pytest.mark.parametrize("make", [png, npy, npz, pt, audio, jsonl, tokens, parquet, tar, pair])
def test_samples_are_those_of_a_file_with_a_plain_name(tmp_path, make):
    batches = [list(Loader(make(tmp_path / name), **SIZES)) for name in ("plain", ODD)]
    assert len(batches[0]) >= 1
    assert_same(*batches)


def test_a_pattern_finds_them(tmp_path):
    png(tmp_path / f"{ODD}.png")
    assert len(columns.Image(f"{tmp_path}/*.png")) == 1


def test_a_file_whose_name_is_a_pattern(tmp_path):
    folder = tmp_path / "run[1]"
    folder.mkdir()
    npy(folder / "a.npy")
    assert_same(columns.Npy(str(folder / "a.npy"))[0], torch.arange(3))
    jsonl(folder / "a.jsonl")
    assert len(columns.Jsonl(str(folder / "a.jsonl"), "a")) == 2


def in_turn(tmp_path, monkeypatch, write, read):
    """Returns what is read of a file of one name, size and time in two folders, by its name alone."""
    held = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder / "a", number)
        os.utime(folder / "a", (1e9, 1e9))
        monkeypatch.chdir(folder)
        held.append(read("a"))
    return [held[number][0] for number in range(2)]


def test_tables_of_one_name_in_two_folders(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(path, number):
        parquet.write_table(pa.table({"x": [number]}), path)

    def read(path):
        return columns.Parquet(path, "x")

    assert_same(in_turn(tmp_path, monkeypatch, write, read), [torch.tensor(0), torch.tensor(1)])
    (tmp_path / "new").mkdir()
    write(tmp_path / "new" / "a", 2)
    os.utime(tmp_path / "new" / "a", (1e9, 1e9))
    old = read("a")
    (tmp_path / "new" / "a").replace(tmp_path / "1" / "a")
    assert_same(read("a")[0], torch.tensor(2))
    del old


def test_shards_of_one_name_in_two_folders(tmp_path, monkeypatch):
    def write(path, number):
        with tarfile.open(path, "w") as file:
            member = tarfile.TarInfo("1.txt")
            member.size = 1
            file.addfile(member, io.BytesIO(str(number).encode()))

    assert in_turn(tmp_path, monkeypatch, write, lambda path: columns.Tar([path], "txt")) == [
        "0",
        "1",
    ]


@pytest.mark.parametrize(
    "read", [lambda path: columns.Tokens(path, 4), lambda path: columns.Jsonl(path, "a")]
)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match='pipe": it is a pipe or a device'):
        read(tmp_path / "pipe")


@pytest.mark.parametrize("kind", [columns.Npy, columns.Pt, columns.Audio, columns.Tar])
def test_a_folder_is_named_as_one(tmp_path, kind):
    with pytest.raises(IsADirectoryError):
        kind([tmp_path])


def test_errors_and_the_list_of_bad_samples_name_the_file(tmp_path):
    missing, torn = tmp_path / f"missing {ODD}", tmp_path / ODD
    png(torn)
    dataset = columns.Image([missing, torn, torn])
    os.truncate(torn, 40)
    with pytest.raises(FileNotFoundError) as error:
        list(Loader(dataset, **SIZES))
    assert error.value.filename == str(missing)
    good = tmp_path / "good"
    png(good)
    file = tmp_path / "bad.jsonl"
    dataset = columns.Image([missing, torn, good])
    loader = Loader(dataset, 3, on_error=OnError("skip", quarantine=file, max_share=1), **SIZES)
    [batch] = loader
    assert len(batch) == 1
    assert [bad.path for bad in loader.bad] == [str(missing), str(torn)]
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["path"] for record in records] == [str(missing), str(torn)]
    assert [record["size"] for record in records] == [None, 40]


def test_a_damaged_array_names_its_file_in_escapes(tmp_path):
    column = npy(tmp_path / ODD)
    os.truncate(tmp_path / ODD, 100)
    with pytest.raises(OSError, match=r"caf\\xE9.*") as error:
        list(Loader(column, **SIZES))
    str(error.value).encode()


def test_pyarrow_opens_none(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / ODD
    path.write_text("a\n1\n")
    with pytest.raises(OSError, match="pyarrow opens files with names in UTF-8 only; rename"):
        columns.Csv(path, "a")


def test_folders_of_torchvision_are_native(tmp_path):
    folder = pytest.importorskip("torchvision.datasets").ImageFolder
    transforms = pytest.importorskip("torchvision.transforms")
    (tmp_path / ODD).mkdir()
    for number in range(3):
        png(tmp_path / ODD / f"{ODD} {number}.png")
    dataset = folder(tmp_path, transforms.ToTensor())
    loader = Loader(dataset, 3, **SIZES)
    assert "lane: native" in loader.explain()
    [(pixels, labels)] = loader
    assert_same(list(pixels), [sample for sample, _ in dataset])
    assert labels.tolist() == [0, 0, 0]
    assert Path(dataset.samples[0][0]).exists()


def test_a_mapping_of_columns(tmp_path):
    dataset = Dataset({"x": npy(tmp_path / ODD)})
    assert_same(list(Loader(dataset, **SIZES)), [{"x": torch.arange(3)[None]}])
