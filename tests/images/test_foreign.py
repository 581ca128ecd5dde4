"""What native code refuses is Pillow's: its pixels, in the batch, by the sample's own way."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as v1

import fastload
from fastload import _lib, transforms
from fastload.columns import Image, Rows
from fastload.images import foreign
from fastload.machine import pillow
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes
from tests.shared.sizes import SIZES
from tests.shared.streams import feed

from .foreign import KINDS, Plain, dataset, write

pytestmark = [MANY_WORKERS, pytest.mark.usefixtures("no_foreign_thread")]


@pytest.mark.own_sizes
@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 2), (8, 8)])
def test_equals_torch_over_a_python_dataset(tmp_path: Path, workers: int, ahead: int):
    paths = write(tmp_path, [*KINDS, "jpeg", "jpeg", "gif"] * 2)
    for batch_size in (1, 4, len(paths), None):
        loader = fastload.Loader(
            dataset(paths), batch_size, num_workers=workers, prefetch_factor=ahead
        )
        assert_same(list(loader), list(DataLoader(Plain(paths), batch_size)))


def test_equals_torch_with_transforms(tmp_path: Path):
    paths = write(tmp_path, [*KINDS, "jpeg"])
    ours = transforms.Resize(24), transforms.CenterCrop(20), transforms.ToTensor()
    theirs = v1.Compose([v1.Resize(24), v1.CenterCrop(20), v1.ToTensor()])
    data = dataset(paths, *ours)
    want = list(DataLoader(Plain(paths, theirs), 5))
    assert_same(list(fastload.Loader(data, 5, **SIZES)), want)
    assert_same([data[index] for index in range(5)], [Plain(paths, theirs)[i] for i in range(5)])


def test_draws_are_those_of_a_native_file(tmp_path: Path):
    """The same pixels as JPEG and as BMP files give the same random samples."""
    jpegs = write(tmp_path, ["jpeg"] * 6)
    bitmaps = [path.replace(".jpeg", ".bmp") for path in jpegs]
    for jpeg, bitmap in zip(jpegs, bitmaps, strict=True):
        with PIL.Image.open(jpeg) as image:
            image.save(bitmap)
    ops = [("random_resized_crop", (16, 16), (0.1, 1), (0.8, 1.2), pillow.kernel("bilinear"))]
    ops.append(("flip", 0.5, False))

    def samples(paths: list[str]) -> list[Any]:
        program = _lib.Program([_lib.Image(paths, "RGB", ops, ("bytes", "hwc"))], 0)
        decode = foreign.decoder()
        one_by_one = [program.sample(index, seed=5, foreign=decode) for index in range(len(paths))]
        stream = _lib.Stream(
            program,
            batched=True,
            depth=2,
            budget_bytes=1 << 20,
            threads=2,
            seed=5,
            foreign=foreign.server(dataset(paths)),
        )
        feed(stream, range(len(paths)))
        batch = stream.take(0)
        stream.close()
        assert_same(batch, torch.stack(one_by_one))
        return one_by_one

    assert_same(samples(bitmaps), samples(jpegs))


def test_samples_of_several_images(tmp_path: Path):
    """Each image is made once, whichever of a sample's files are refused."""
    kinds = ["jpeg", "gif", "bmp", "jpeg", "gif"]
    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    left, right = write(tmp_path / "left", kinds), write(tmp_path / "right", kinds[::-1])
    columns = [Image(left), Rows(torch.arange(5)), Image(right), Image(left)]
    data = fastload.Dataset(tuple(columns))
    assert_same(list(fastload.Loader(data, 2, **SIZES)), list(DataLoader(data, 2)))
    assert_same(data[1][2], Plain(right)[1][0])


def test_the_right_file_behind_columns_over_columns(tmp_path: Path):
    """A refused file is the one that a selection of several columns means, in each of two leaves."""
    kinds = ["gif", "jpeg", "bmp", "gif"]
    paths = write(tmp_path, kinds)
    encoded = [Path(path).read_bytes() for path in paths]
    ends = np.cumsum([0, *map(len, encoded)])
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    want = [image for image, _ in (Plain(paths)[index] for index in range(len(paths)))]

    def rows(array: Any) -> Any:
        return Rows(np.asarray(array))._core

    buffer = _lib.Ragged(rows(letters), rows(ends))
    of_files, of_bytes, of_pixels = (
        _lib.Image(source, "RGB", [], ("bytes", "hwc"))
        for source in (paths, buffer, rows(torch.stack(want)))
    )
    left = _lib.concat([_lib.select(of_files, rows([3, 1])), of_pixels, of_bytes])
    right = _lib.select(left, rows(range(len(left) - 1, -1, -1)))
    expected = [want[3], want[1], *want, *want]
    program = _lib.Program([left, right], (0, 1))
    limits = {"depth": 2, "budget_bytes": 1 << 20, "threads": 2}
    asker = dataset(paths)
    stream = _lib.Stream(program, batched=True, foreign=foreign.server(asker), **limits)
    order = [9, 0, 4, 6, 0, 8, 2, 1]
    feed(stream, order)
    batch = stream.take(0)
    assert sum(stream.stats()["pillow_fallbacks"].values()) == 9
    stream.close()
    assert_same(batch[0], torch.stack([expected[index] for index in order]))
    assert_same(batch[1], torch.stack([expected[len(left) - 1 - index] for index in order]))
    for index in range(len(left)):
        sample = program.sample(index, foreign=foreign.decoder())
        assert_same(sample, (expected[index], expected[-1 - index]))


def test_pixels_beyond_the_budget(tmp_path: Path):
    """What came back counts as fetched, and the oldest batch still goes on."""
    paths = write(tmp_path, ["gif", "jpeg", "bmp"] * 6)
    loader = fastload.Loader(dataset(paths), 4, memory_budget=1, **SIZES)
    assert_same(list(loader), list(DataLoader(Plain(paths), 4)))


@pytest.mark.parametrize(
    "answer",
    [
        (b"\0" * 12, (2, 2, 3)),
        (b"\0" * 11, (2, 2, 3)),
        (b"\0" * 4, (2, 2, 1)),
        (b"", (2**62, 4, 1)),
    ],
)
def test_an_answer_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any):
    monkeypatch.setattr(pillow, "decode", lambda *_: answer)
    data = dataset(write(tmp_path, ["gif"]))
    [result] = outcomes(fastload.Loader(data, **SIZES))
    if answer[0] == b"\0" * 12:
        assert_same(result[0], torch.zeros(1, 2, 2, 3, dtype=torch.uint8))
        return
    assert isinstance(result, ValueError)
    with pytest.raises(ValueError, match="cannot take"):
        data[0]


def test_counted_and_named_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    paths = write(tmp_path, ["jpeg", "gif", "jpeg", "tiff", "gif", "ppm"])
    loader = fastload.Loader(dataset(paths), 2, **SIZES)
    with caplog.at_level(logging.INFO, logger="fastload"):
        for _ in range(2):
            list(loader)
            stats = loader.stats()
            assert stats["pillow_fallbacks"] == {"gif": 2, "tiff": 1, "unknown": 1}
            assert stats["pillow_fallback_s"] > 0
            assert stats["samples"] == 6
    [record] = caplog.records
    assert any(path in record.message for path in paths)
