"""Samples selected and put one after the other; torch's Subset and ConcatDataset are the oracle."""

import io
import pathlib

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from fastload import _lib
from fastload.memory import layout
from tests.shared.compare import assert_same
from tests.shared.streams import feed


def rows(array):
    return _lib.Rows(*layout.of_array(np.asarray(array)))


def stream(program, **changes):
    limits = {"depth": 2, "budget_bytes": 1 << 20, "threads": 2}
    limits |= {"batched": True}
    return _lib.Stream(program, **limits | changes)


def both(data, depth):
    """Draws a dataset of torch's and the column that equals it."""
    kind = data.draw(st.sampled_from(["rows", "select", "concat"] if depth else ["rows"]))
    if kind == "rows":
        array = np.random.default_rng(depth).random((data.draw(st.integers(1, 9)), 3), np.float32)
        return TensorDataset(torch.from_numpy(array)), rows(array)
    if kind == "concat":
        parts = [both(data, depth - 1) for _ in range(data.draw(st.integers(1, 3)))]
        theirs, ours = zip(*parts, strict=True)
        return ConcatDataset(theirs), _lib.concat(list(ours))
    theirs, ours = both(data, depth - 1)
    place = st.integers(0, len(theirs) - 1)
    indices = data.draw(st.lists(place, min_size=1, max_size=12))
    width = data.draw(st.sampled_from([np.int32, np.int64]))
    return Subset(theirs, indices), _lib.select(ours, rows(np.array(indices, width)))


@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_any_nesting_gives_the_batches_of_torch(data):
    theirs, ours = both(data, 3)
    assert len(ours) == len(theirs)
    program = _lib.Program([ours], (0,))
    order = data.draw(st.permutations(range(len(theirs))))
    batches = [order[at : at + 4] for at in range(0, len(order), 4)]
    got = stream(program)
    feed(got, *batches)
    assert_same([got.take(0) for _ in batches], list(DataLoader(theirs, batch_sampler=batches)))
    assert_same([program.sample(index) for index in order], [theirs[index] for index in order])


def test_indices_outside_of_the_column_are_refused():
    for index in (-1, 3, 1 << 40):
        with pytest.raises(IndexError, match=rf"index {index} is out of range .* 3 samples"):
            _lib.select(rows(np.zeros(3)), rows([0, index]))


def test_indices_that_change_later_are_an_error():
    indices = np.array([2, 1])
    program = _lib.Program([_lib.select(rows(np.arange(3)), rows(indices))], 0)
    indices[1] = 7
    assert program.sample(0) == 2
    with pytest.raises(IndexError, match="index 7 is out of range"):
        program.sample(1)


def test_indices_are_whole_numbers():
    for indices in (np.zeros(2), np.zeros((2, 1), np.int64), np.zeros(2, np.uint64)):
        with pytest.raises(ValueError, match="indices are one int64 or int32 per row"):
            _lib.select(rows(np.zeros(3)), rows(indices))


@pytest.mark.parametrize(
    "other", [np.zeros((2, 3)), np.zeros((2, 2), np.float32), np.zeros(2)], ids=str
)
def test_columns_that_differ_are_not_put_together(other):
    with pytest.raises(ValueError, match="samples of a column have one kind, dtype"):
        _lib.concat([rows(np.zeros((2, 2))), rows(other)])


def test_nothing_is_no_column():
    with pytest.raises(ValueError, match="cannot concatenate nothing"):
        _lib.concat([])


def test_empty_parts_are_passed_over():
    column = _lib.concat([rows(np.zeros(0)), rows(np.arange(2.0)), rows(np.zeros(0))])
    program = _lib.Program([column], 0)
    assert [program.sample(index).item() for index in (0, 1, -1)] == [0, 1, 1]
    with pytest.raises(IndexError):
        program.sample(2)


@pytest.fixture
def photographs(tmp_path):
    """Writes five grey squares, and returns their files and brightnesses."""
    levels = [10, 60, 110, 160, 210]
    paths = [tmp_path / f"{level}.jpg" for level in levels]
    for path, level in zip(paths, levels, strict=True):
        PIL.Image.new("RGB", (8, 8), (level,) * 3).save(path)
    return list(map(str, paths)), levels


def brightness(image):
    return round(image.float().mean().item())


def test_images_are_selected_and_put_together(photographs):
    paths, levels = photographs
    encoded = [pathlib.Path(path).read_bytes() for path in paths]
    offsets = np.cumsum([0, *map(len, encoded)])
    buffer = _lib.Ragged(rows(np.frombuffer(b"".join(encoded), np.uint8)), rows(offsets))
    pixels = np.stack([np.asarray(PIL.Image.open(io.BytesIO(each))) for each in encoded])
    output = "bytes", "chw"
    of_files = _lib.Image(paths, "RGB", [], output)
    of_bytes = _lib.Image(buffer, "RGB", [], output)
    of_rows = _lib.Image(rows(pixels), "RGB", [], output)
    column = _lib.concat([_lib.select(of_files, rows([4, 1])), of_bytes, of_rows])
    program = _lib.Program([column, rows(np.arange(12))], (0, 1))
    found = stream(program)
    order = [11, 0, 3, 7, 1, 0]
    feed(found, order)
    images, numbers = found.take(0)
    want = [levels[4], levels[1], *levels, *levels]
    assert [brightness(image) for image in images] == [want[index] for index in order]
    assert numbers.tolist() == order
    for index in range(12):
        image, _ = program.sample(index)
        assert brightness(image) == want[index]


def test_errors_name_the_file_that_is_meant(photographs, tmp_path):
    paths, _ = photographs
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff nothing")
    column = _lib.Image([*paths, str(broken), "/no/such.jpg"], "RGB", [], ("bytes", "hwc"))
    chosen = _lib.concat([_lib.select(column, rows([0, 6])), _lib.select(column, rows([5]))])
    program = _lib.Program([chosen], 0)
    with pytest.raises(FileNotFoundError, match=r"/no/such\.jpg"):
        program.sample(1)
    with pytest.raises(OSError, match=r"broken\.jpg"):
        program.sample(2)


def test_draws_are_made_by_the_index_that_the_sampler_gives():
    pixels = np.arange(300, dtype=np.uint8).reshape(1, 10, 10, 3).repeat(64, 0)
    flips = [("flip", 0.5, False)]
    image = _lib.Image(rows(pixels), "RGB", flips, ("bytes", "hwc"))
    alike = _lib.select(image, rows(np.zeros(64, np.int64)))
    programs = [_lib.Program([column], 0) for column in (image, alike)]
    plain, selected = ([p.sample(i, seed=3) for i in range(64)] for p in programs)
    assert_same(selected, plain)
    assert len({each.numpy().tobytes() for each in selected}) == 2


def test_pillow_images_are_in_samples_alone():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), np.uint8)
    image = _lib.Image(rows(pixels), "RGB", [], ("bytes", "hwc"))
    program = _lib.Program([_lib.select(image, rows([2]))], _lib.Leaf(0, "pillow"))
    sample = program.sample(0)
    assert (type(sample), sample.mode) == (PIL.Image.Image, "RGB")
    assert (np.asarray(sample) == pixels[2]).all()
    with pytest.raises(ValueError, match="a batch cannot hold PIL images"):
        stream(program)
