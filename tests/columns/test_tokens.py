"""`Tokens` and `Megatron` beside `numpy.memmap` and a reader of the index in NumPy."""

import pickle
import struct

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Megatron, Rows, Tokens
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

from .megatron import CODES, megatron
from .megatron import read as read_megatron

pytestmark = MANY_WORKERS

WHOLE = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"]


def elements(dtype, count, seed=0):
    """Numbers of all bit patterns that a dtype has, as far as they are no NaN."""
    size = np.dtype(dtype).itemsize
    drawn = np.random.default_rng(seed).integers(0, 256, count * size).astype(np.uint8).view(dtype)
    return np.nan_to_num(drawn) if drawn.dtype.kind == "f" else drawn


def write(path, array, header=b""):
    path.write_bytes(header + array.tobytes())
    return path


def windows(path, length, dtype, stride=None, offset=0):
    """What the usual code makes of a file."""
    stride = stride or length
    size = path.stat().st_size
    tokens = (
        np.memmap(path, dtype, mode="r", offset=offset) if size > offset else np.empty(0, dtype)
    )
    starts = range(0, len(tokens) - length + 1, stride)
    wide = np.int64 if np.dtype(dtype).kind in "iu" else np.dtype(dtype)
    return [torch.from_numpy(tokens[at : at + length].astype(wide)) for at in starts]


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [*WHOLE, "float32", "float64"])
def test_windows_are_those_of_memmap(tmp_path, dtype):
    path = write(tmp_path / "x.bin", elements(dtype, 101))
    for length, stride in [(1, None), (7, None), (9, 8), (5, 20), (4, 1), (101, 7), (102, 1)]:
        same(Tokens(path, length, dtype, stride=stride), windows(path, length, dtype, stride))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9])
def test_short_files_have_as_many_windows_as_fit(tmp_path, count):
    path = write(tmp_path / "x.bin", elements("uint16", count))
    column = Tokens(str(path), 8)
    assert len(column) == count // 8
    same(column, windows(path, 8, "uint16"))


@pytest.mark.parametrize(
    ("dtype", "out"),
    [(d, "int64") for d in WHOLE]
    + [(d, "int32") for d in ["uint8", "int8", "uint16", "int16"]]
    + [(d, d) for d in WHOLE]
    + [("uint64", "uint64"), ("float16", "float32"), ("float32", "float64"), ("bool", "bool")],
)
def test_elements_are_converted_as_numpy_does(tmp_path, dtype, out):
    array = elements(dtype, 24) if dtype != "bool" else np.arange(24) % 3 == 0
    path = write(tmp_path / "x.bin", array)
    named = getattr(torch, out)
    for given in (out, named, np.dtype(out)):
        column = Tokens([path], 6, getattr(torch, dtype), out_dtype=given)
        batch = next(iter(fastload.Loader(column, batch_size=4)))
        assert batch.dtype == named
        assert batch.numpy().tobytes() == array.astype(out).tobytes()


def test_a_header_is_skipped(tmp_path):
    path = write(tmp_path / "x.bin", elements("uint16", 50), header=bytes(1024))
    same(Tokens(path, 5, offset=1024), windows(path, 5, "uint16", offset=1024))
    odd = write(tmp_path / "y.bin", elements("uint16", 50), header=bytes(7))
    same(Tokens(odd, 5, np.uint16, offset=7), windows(odd, 5, "uint16", offset=7))
    assert len(Tokens(path, 5, offset=1124)) == 0


def test_windows_of_many_files_follow_each_other_and_never_cross(tmp_path):
    sizes = [33, 0, 8, 7, 40, 9] * 7
    paths = [
        write(tmp_path / f"{n:02}.bin", elements("uint16", size, n)) for n, size in enumerate(sizes)
    ]
    theirs = [window for path in paths for window in windows(path, 8, "uint16", 5)]
    for given in (paths, str(tmp_path / "*.bin"), (str(path) for path in paths)):
        same(Tokens(given, 8, stride=5), theirs)
    loader = fastload.Loader(Tokens(paths, 8, stride=5), batch_size=64, shuffle=True)
    rows = torch.cat(list(loader))
    assert sorted(rows.tolist()) == sorted(torch.stack(theirs).tolist())


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("stride", [16, 15, 40])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_torch(tmp_path, num_workers, stride, shuffle):
    path = write(tmp_path / "x.bin", elements("uint16", 5000))
    column = Tokens(path, 16, stride=stride)
    theirs = windows(path, 16, "uint16", stride)
    assert_as_torchs(column, theirs, 32, shuffle=shuffle, num_workers=num_workers)


def test_in_one_sample_with_other_columns(tmp_path):
    path = write(tmp_path / "x.bin", elements("uint16", 80))
    dataset = fastload.Dataset({"tokens": Tokens(path, 8), "place": Rows(torch.arange(10))})
    batch = next(iter(fastload.Loader(dataset, batch_size=10)))
    assert torch.equal(batch["tokens"], torch.stack(windows(path, 8, "uint16")))


def test_runs_of_windows_beyond_the_size_of_one_read(tmp_path):
    path = write(tmp_path / "x.bin", elements("uint16", 3 << 20))
    for column, stride in [
        (Tokens(path, 1 << 18), 1 << 18),
        (Tokens(path, 1 << 20, stride=1 << 18), 1 << 18),
    ]:
        batch = next(iter(fastload.Loader(column, batch_size=len(column))))
        tokens = np.fromfile(path, "u2").astype("i8")
        for at, row in enumerate(batch):
            assert torch.equal(row, torch.from_numpy(tokens[at * stride :][: len(row)]))


def test_words_for_what_cannot_be(tmp_path):
    path = write(tmp_path / "x.bin", elements("uint8", 101))
    with pytest.raises(OSError, match=r"x\.bin.*101 bytes.*uint16.*dtype.*offset"):
        Tokens(path, 4)
    with pytest.raises(OSError, match=r"x\.bin.*101 bytes.*begins at 200"):
        Tokens(path, 4, offset=200)
    with pytest.raises(FileNotFoundError, match=r"none\.bin"):
        Tokens(tmp_path / "none.bin", 4)
    with pytest.raises(ValueError, match="no file matches"):
        Tokens(str(tmp_path / "none*.bin"), 4)
    with pytest.raises(ValueError, match="no file is given"):
        Tokens([], 4)
    with pytest.raises(ValueError, match="is a URL"):
        Tokens("s3://bucket/x.bin", 4)
    with pytest.raises(ValueError, match="length should be at least 1, but got 0"):
        Tokens(path, 0, "uint8")
    with pytest.raises(ValueError, match="stride should be at least 1, but got -1"):
        Tokens(path, 4, "uint8", stride=-1)
    with pytest.raises(ValueError, match="uint32 cannot be read as int32"):
        Tokens(path, 4, "uint32", out_dtype="int32", offset=1)
    with pytest.raises(TypeError, match="datetime64"):
        Tokens(path, 4, "M8[s]")
    with pytest.raises(ValueError, match="byte order"):
        Tokens(path, 4, ">u2")
    assert len(Tokens(path, 1 << 40, "uint8", stride=1 << 50)) == 0


def test_a_file_that_changes_or_vanishes_is_an_error_that_says_so(tmp_path):
    paths = [write(tmp_path / f"{n}.bin", elements("uint16", 64)) for n in range(3)]
    column = Tokens(paths, 8)
    write(paths[0], elements("uint16", 80))
    with pytest.raises(OSError, match=r"0\.bin.*changed since"):
        column[0]
    with paths[1].open("r+b") as file:
        file.truncate(20)
    batches = iter(fastload.Loader(column, batch_size=8))
    for name in ("0", "1"):
        with pytest.raises(OSError, match=rf"{name}\.bin.*changed since"):
            next(batches)
    assert torch.equal(next(batches), torch.stack(windows(paths[2], 8, "uint16")))
    column = Tokens(paths[2], 8)
    paths[2].unlink()
    with pytest.raises(FileNotFoundError, match=r"2\.bin"):
        column[0]


def test_columns_are_small_when_pickled(tmp_path):
    path = write(tmp_path / "x.bin", elements("uint16", 5000))
    column = Tokens(path, 9, stride=8, offset=16)
    reread(column, 500)
    assert repr(column) == f"Tokens({len(column)} windows of int64, shape (9,))"
    same([column[-1], column[np.int64(3)]], [column[len(column) - 1], column[3]])
    with pytest.raises(IndexError):
        column[len(column)]


@pytest.mark.parametrize("dtype", CODES.values())
def test_sequences_are_those_of_the_index(tmp_path, dtype):
    sequences = [elements(dtype, n, n) for n in (3, 0, 17, 1, 1, 200, 5)]
    prefix = megatron(tmp_path / "x", sequences)
    for given in (prefix, str(prefix), f"{prefix}.bin", f"{prefix}.idx"):
        same(Megatron(given), read_megatron(prefix))
    same(Megatron(prefix, out_dtype=dtype), [torch.from_numpy(s.copy()) for s in sequences])


def test_documents_join_their_sequences(tmp_path):
    sequences = [elements("uint16", n, n) for n in (3, 4, 0, 5, 6)]
    prefix = megatron(tmp_path / "x", sequences, boundaries=[0, 2, 2, 3, 5], modes=b"\0" * 5)
    joined = [sequences[:2], [], sequences[2:3], sequences[3:]]
    joined = [np.concatenate([np.empty(0, "u2"), *parts]).astype("i8") for parts in joined]
    same(Megatron(prefix, unit="document"), [torch.from_numpy(each) for each in joined])
    assert len(Megatron(megatron(tmp_path / "none", []))) == 0


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_one_length_are_stacked(tmp_path, shuffle):
    prefix = megatron(tmp_path / "x", [elements("uint16", 12, n) for n in range(100)])
    theirs = read_megatron(prefix)
    assert_as_torchs(Megatron(prefix), theirs, 16, shuffle=shuffle)


def test_different_lengths_are_torchs_error_and_the_next_batch_comes(tmp_path):
    prefix = megatron(tmp_path / "x", [elements("uint16", n) for n in (4, 4, 4, 5, 6, 6)])
    batches = iter(fastload.Loader(Megatron(prefix), batch_size=2))
    assert next(batches).shape == (2, 4)
    with pytest.raises(RuntimeError, match=r"equal size, but got \[4\] at entry 0 and \[5\]"):
        next(batches)
    assert next(batches).shape == (2, 6)


def test_words_for_a_wrong_pair(tmp_path):
    prefix = megatron(tmp_path / "x", [elements("uint16", n) for n in (3, 5)])
    prefix.with_suffix(".bin").write_bytes(bytes(10))
    with pytest.raises(OSError, match=r"x\.bin.*document 1 is 5 elements from byte 6 on.*10 bytes"):
        Megatron(prefix)
    prefix = megatron(tmp_path / "y", [elements("uint16", 3)], version=2)
    with pytest.raises(OSError, match=r"y\.idx.*version is 2"):
        Megatron(prefix)
    with pytest.raises(ValueError, match="unit"):
        Megatron(prefix, unit="page")
    with pytest.raises(FileNotFoundError, match=r"z\.bin"):
        Megatron(tmp_path / "z")
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1 << 62, 1 << 61)
    prefix.with_suffix(".idx").write_bytes(index)
    with pytest.raises(OSError, match=r"y\.idx.*announces"):
        Megatron(prefix)
    assert repr(Megatron(megatron(prefix, [elements("uint16", 3)]))).startswith(
        "Megatron(1 sequences"
    )
    assert len(pickle.loads(pickle.dumps(Megatron(prefix)))) == 1
