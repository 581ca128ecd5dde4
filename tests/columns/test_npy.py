"""`Npy` beside `numpy.load`: dtypes, orders, headers, slices, damage."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib import format as npy_format

import fastload
from fastload.columns import Npy
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

pytestmark = MANY_WORKERS

DTYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(), (1,), (7,), (0,), (3, 5), (0, 4), (4, 0), (2, 3, 4), (1, 1, 1), (5, 1, 6)]


def values(dtype, shape, seed=0):
    """Numbers of all bit patterns that a dtype has, as far as they are no NaN."""
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize))
    array = np.ascontiguousarray(bits.astype(np.uint8)).view(dtype)[..., 0]
    array = (array.view(np.uint8) & 1).astype("?").reshape(shape) if dtype == "?" else array
    return np.nan_to_num(array) if array.dtype.kind in "fc" else array


def save(folder, arrays, **named):
    """Writes one file for each array."""
    paths = []
    for number, array in enumerate(arrays):
        paths.append(Path(folder) / f"{number:04}.npy")
        with paths[-1].open("wb") as file:
            npy_format.write_array(file, array, **named)
    return paths


def equal(ours, theirs):
    """True if a tensor has exactly the dtype, shape and bits of an array."""
    theirs = torch.from_numpy(np.ascontiguousarray(theirs).reshape(theirs.shape))
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_dtype_order_and_shape_is_numpys(tmp_path, dtype, order):
    for shape in SHAPES:
        array = values(dtype, shape).astype(np.dtype(dtype).newbyteorder(order))
        for layout in (array, np.asfortranarray(array)):
            [path] = save(tmp_path, [layout])
            loaded = np.load(path)
            assert equal(Npy([path])[0], loaded.astype(loaded.dtype.newbyteorder("=")))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_header_is_read(tmp_path, version):
    array = values("f4", (3, 4))
    [path] = save(tmp_path, [array], version=version)
    assert equal(Npy([path])[0], array)


def test_a_long_header_is_read(tmp_path):
    array = values("u1", (1,) * 30)
    path = tmp_path / "a.npy"
    header = {"descr": "|u1", "fortran_order": False, "shape": array.shape}
    text = repr(header) + " " * 3000 + "\n"
    path.write_bytes(
        b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + array.tobytes()
    )
    assert equal(Npy([path])[0], np.load(path))


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(2, 5),
        slice(-3, None),
        slice(4, 2),
        slice(0, 100),
        slice(-100, 3),
        slice(7, 9),
    ],
)
@pytest.mark.parametrize("shape", [(8,), (8, 3), (8, 2, 2)])
def test_slices_of_rows_are_those_of_python(tmp_path, rows, shape):
    array = values("i4", shape)
    for layout in (array, np.asfortranarray(array)):
        [path] = save(tmp_path, [layout])
        assert equal(Npy([path], rows=rows)[0], np.load(path)[rows])


def test_a_slice_reads_no_more_than_its_rows(tmp_path):
    [path] = save(tmp_path, [values("f4", (1000, 100))])
    loader = fastload.Loader(Npy([path], rows=slice(10, 20)), batch_size=1, num_workers=1)
    next(batches := iter(loader))
    assert batches is not None
    assert loader.stats()["read_bytes"] == 10 * 100 * 4


def test_each_file_can_have_a_slice_of_its_own(tmp_path):
    arrays = [values("f4", (9, 2), seed) for seed in range(3)]
    paths = save(tmp_path, arrays)
    slices = [slice(0, 4), slice(2, 6), slice(-4, None)]
    column = Npy(paths, rows=slices)
    for sample, array, rows in zip(column, arrays, slices, strict=True):
        assert equal(sample, array[rows])
    batch = next(iter(fastload.Loader(column, batch_size=3)))
    assert torch.equal(batch, torch.stack(list(column)))


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(tmp_path, num_workers):
    arrays = [values("f4", (3, 4), seed) for seed in range(50)]
    paths = save(tmp_path, [np.asfortranarray(a) if n % 3 else a for n, a in enumerate(arrays)])
    column = Npy([str(path) for path in paths])
    dataset = [torch.from_numpy(np.load(path)) for path in paths]
    assert_as_torchs(column, dataset, 8, num_workers=num_workers)


def test_different_shapes_are_torchs_error_and_the_next_batch_comes(tmp_path):
    paths = save(tmp_path, [values("f4", (n, 2)) for n in (3, 3, 3, 4, 5, 5)])
    batches = iter(fastload.Loader(Npy(paths), batch_size=2))
    assert next(batches).shape == (2, 3, 2)
    with pytest.raises(
        RuntimeError, match=r"stack expects each tensor to be equal size, but got \[3, 2\]"
    ):
        next(batches)
    assert next(batches).shape == (2, 5, 2)


def refusal(path):
    """What is said of one file."""
    with pytest.raises(OSError, match=str(path)) as refused:
        Npy([path])
    return str(refused.value)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1, "a"], dtype=object), "'|O'|\"\\|O\""),
        (np.array(["a", "bc"]), "U2"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "M8"),
        (np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]), "records"),
        (np.zeros(3, dtype=np.longdouble), "f16"),
    ],
)
def test_what_has_no_tensor_is_refused_with_words(tmp_path, array, words):
    path = tmp_path / "a.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(OSError, match=words):
        Npy([path])


def test_a_header_that_claims_more_than_the_file_has_allocates_nothing(tmp_path):
    path = tmp_path / "a.npy"
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1048576), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    assert "announces" in refusal(path)


def test_another_dtype_than_the_first_files_is_named(tmp_path):
    paths = save(tmp_path, [values("f4", (2,)), values("f8", (2,))])
    column = Npy(paths)
    with pytest.raises(OSError, match=r"0001\.npy.*float64.*float32"):
        column[1]


def test_the_column_is_small_when_pickled_and_reads_its_files_again(tmp_path):
    paths = save(tmp_path, [values("f4", (1000,), n) for n in range(3)])
    column = Npy(tmp_path.glob("*.npy"), rows=slice(5, 9))
    again = reread(column, 1000)
    assert repr(column) == "Npy(3 files of float32, shape (4,))"
    assert len(paths) == len(again)


def test_negative_and_numpy_indices(tmp_path):
    column = Npy(save(tmp_path, [values("i8", (2,), n) for n in range(5)]))
    assert torch.equal(column[-1], column[4])
    assert torch.equal(column[np.int64(3)], column[3])
    for outside in (5, -6):
        with pytest.raises(IndexError):
            column[outside]


def test_many_headers_are_read_on_the_pool(tmp_path):
    paths = save(tmp_path, [values("i8", (2,), n) for n in range(300)])
    column = Npy(paths)
    assert len(column) == 300
    assert all(equal(column[n], np.load(paths[n])) for n in range(0, 300, 37))


def test_words_for_urls_patterns_and_slices(tmp_path):
    with pytest.raises(ValueError, match=r"'s3://bucket/a\.npy' is a URL"):
        Npy(["s3://bucket/a.npy"])
    with pytest.raises(ValueError, match="no file matches"):
        Npy(str(tmp_path / "*.npy"))
    [path] = save(tmp_path, [values("f4", (2,))])
    with pytest.raises(ValueError, match="step 1"):
        Npy([path], rows=slice(0, 2, 2))
    with pytest.raises(ValueError, match="2 slices for 1 files"):
        Npy([path], rows=[slice(0, 1)] * 2)
    np.save(tmp_path / "number.npy", np.float32(1))
    with pytest.raises(OSError, match="its array has no dimensions, so it has no `rows`"):
        Npy([tmp_path / "number.npy"], rows=slice(0, 1))
    with pytest.raises(OSError, match="no file"):
        Npy([])
