"""`Npz` beside `numpy.load`: dtypes, orders, compression, zip64, slices, damage."""

import struct
import warnings
import zipfile

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Npz
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

pytestmark = MANY_WORKERS

DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(), (1,), (7,), (0,), (3, 5), (0, 4), (4, 0), (2, 3, 4), (5, 1, 6), (40, 50)]
SAVES = [np.savez, np.savez_compressed]


def values(dtype, shape, seed=0):
    """Numbers of a dtype that differ from each other."""
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    return np.asarray(numbers % 2 if dtype == "?" else numbers).astype(dtype)


def save(folder, arrays, write=np.savez):
    """Writes one file for each array, under the key `x`, between two others."""
    paths = []
    for number, array in enumerate(arrays):
        paths.append(folder / f"{number:04}.npz")
        write(paths[-1], before=np.arange(number), x=array, zlast=np.array(number))
    return paths


def load(path, key="x"):
    with np.load(path) as file:
        array = file[key]
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).reshape(array.shape)
    return torch.from_numpy(array)


def equal(ours, theirs):
    """True if two tensors have the same dtype, shape and bits."""
    return (
        ours.dtype == theirs.dtype
        and ours.shape == theirs.shape
        and ours.numpy().tobytes() == theirs.numpy().tobytes()
    )


@pytest.mark.parametrize("write", SAVES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_order_and_shape_is_numpys(tmp_path, dtype, write):
    for shape in SHAPES:
        for order in "<>":
            array = values(dtype, shape).astype(np.dtype(dtype).newbyteorder(order))
            for layout in (array, np.asfortranarray(array)):
                [path] = save(tmp_path, [layout], write)
                assert equal(Npz([path], "x")[0], load(path))


@pytest.mark.parametrize(
    "rows", [slice(None), slice(2, 5), slice(-3, None), slice(4, 2), slice(7, 99)]
)
@pytest.mark.parametrize("write", SAVES)
@pytest.mark.parametrize("shape", [(8,), (8, 3), (8, 2, 2)])
def test_slices_of_rows_are_those_of_python(tmp_path, rows, write, shape):
    array = values("i4", shape)
    for layout in (array, np.asfortranarray(array)):
        [path] = save(tmp_path, [layout], write)
        assert equal(Npz([path], "x", rows=rows)[0], load(path)[rows])


def read_bytes(column):
    """How much is read for the first sample."""
    loader = fastload.Loader(column, batch_size=1, num_workers=1)
    next(batches := iter(loader))
    assert batches is not None
    return loader.stats()["read_bytes"]


def test_no_more_is_read_than_the_member_or_the_rows_of_a_stored_one(tmp_path):
    array = np.random.default_rng(0).random((1000, 100), dtype="f4")
    for write, limit in zip(SAVES, [10 * 100 * 4, array.nbytes], strict=True):
        [path] = save(tmp_path, [array], write)
        with zipfile.ZipFile(path) as file:
            member = file.getinfo("x.npy").compress_size
        assert read_bytes(Npz([path], "x")) == member
        assert read_bytes(Npz([path], "x", rows=slice(10, 20))) == min(limit, member)


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("write", SAVES)
def test_batches_are_those_of_torch(tmp_path, num_workers, write):
    arrays = [values("f4", (30, 40), seed) for seed in range(50)]
    paths = save(tmp_path, arrays, write)
    column = Npz([str(path) for path in paths], "x")
    assert_as_torchs(column, [load(path) for path in paths], 8, num_workers=num_workers)


def test_several_keys_of_a_file_are_one_sample(tmp_path):
    paths = save(tmp_path, [values("f4", (2, 3), seed) for seed in range(4)])
    dataset = fastload.Dataset({"x": Npz(paths, "x"), "label": Npz(paths, "zlast")})
    batch = next(iter(fastload.Loader(dataset, batch_size=4)))
    assert torch.equal(batch["x"], torch.stack([load(path) for path in paths]))
    assert batch["label"].tolist() == [0, 1, 2, 3]


def test_keys_are_those_of_numpy(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, np.arange(2), **{"ä/ö": np.arange(3), "b": np.arange(4), "b.npy": np.arange(5)})
    for key in ("arr_0", "ä/ö", "b", "b.npy", "arr_0.npy"):
        assert equal(Npz([path], key)[0], load(path, key))
    with pytest.raises(OSError, match=r"a\.npz.*no array \"c\"; it has \"arr_0\", \"b\""):
        Npz([path], "c")


def refusal(path, rows=None):
    """What is said of one file."""
    with pytest.raises(OSError, match=str(path)) as refused:
        Npz([path], "x", rows=rows)[0]
    return str(refused.value)


@pytest.mark.parametrize("write", SAVES)
def test_contents_with_another_checksum_are_refused_as_by_zipfile(tmp_path, write):
    [path] = save(tmp_path, [values("f4", (10, 10))], write)
    damaged = bytearray(path.read_bytes())
    entry = damaged.index(b"x.npy", damaged.index(b"PK\x01\x02")) - 46
    damaged[entry + 16] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(zipfile.BadZipFile):
        load(path)
    assert "checksum" in refusal(path)


def test_claimed_sizes_allocate_nothing(tmp_path):
    [path] = save(tmp_path, [np.zeros((10, 10))], np.savez_compressed)
    damaged = bytearray(path.read_bytes())
    entry = damaged.index(b"x.npy", damaged.index(b"PK\x01\x02")) - 46
    damaged[entry + 24 : entry + 28] = struct.pack("<I", 2**31)
    path.write_bytes(damaged)
    assert "more than the file can hold" in refusal(path)


def test_a_header_that_claims_more_than_its_member_has_is_refused(tmp_path):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1048576), }\n"
    path = tmp_path / "a.npz"
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", method) as file:
            header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
            file.writestr("x.npy", header)
        assert "announces" in refusal(path)


def test_an_array_behind_much_that_expands_is_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((1000, 1000), "u1"))
    assert torch.equal(Npz([path], "x")[0], load(path))
    assert torch.equal(Npz([path], "x", rows=slice(998, None))[0], load(path)[998:])


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused_by_its_number(tmp_path, method):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("x.npy", b"nothing")
    assert f"method {method}" in refusal(path)


def test_what_is_no_archive_has_no_array_or_no_numbers_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.save(tmp_path / "a.npy", np.arange(3))
    path.write_bytes((tmp_path / "a.npy").read_bytes())
    assert "first bytes" in refusal(path)
    np.savez(path, x=np.array([1, "a"], dtype=object))
    assert "O" in refusal(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x", b"text")
    assert 'array "x": it is not a .npy file' in refusal(path)
    with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr("x.npy", b"")
        file.writestr("x.npy", b"")
    assert "twice" in refusal(path)
    with zipfile.ZipFile(path, "w"):
        pass
    assert refusal(path)


def test_zip64_is_read(tmp_path):
    path = tmp_path / "a.npz"
    array = values("f4", (20, 3))
    np.savez(path, x=array)
    plain = path.read_bytes()
    # the end as archives of more than 4 GB have it: sizes in a record of 64 bits
    size, start = struct.unpack("<II", plain[-10:-2])
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1, 0)
    path.write_bytes(plain[:-22] + record + locator + end)
    assert equal(Npz([path], "x")[0], load(path))


def test_the_column_is_small_when_pickled_and_reads_its_files_again(tmp_path):
    paths = save(tmp_path, [values("f4", (1000,), n) for n in range(3)])
    column = Npz(tmp_path.glob("*.npz"), "x", rows=slice(5, 9))
    again = reread(column, 1000)
    assert repr(column) == "Npz('x' of 3 files, float32, shape (4,))"
    assert len(again) == len(paths)
    assert torch.equal(column[np.int64(-1)], column[2])
    with pytest.raises(IndexError):
        column[3]


def test_words_for_urls_keys_and_slices(tmp_path):
    [path] = save(tmp_path, [values("f4", (2,))])
    with pytest.raises(ValueError, match=r"'s3://bucket/a\.npz' is a URL"):
        Npz(["s3://bucket/a.npz"], "x")
    with pytest.raises(ValueError, match="step 1"):
        Npz([path], "x", rows=slice(0, 2, 2))
    with pytest.raises(TypeError):
        Npz([path], 3)
    with pytest.raises(OSError, match="no file"):
        Npz([], "x")
