"""Columns as datasets of their own; torch and NumPy, given the same array, are the oracle."""

import copy
import os
import pathlib
import pickle
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fastload
from fastload import transforms
from fastload.columns import Image, Rows
from fastload.transforms import ToTensor
from tests.shared.compare import MANY_WORKERS
from tests.shared.photographs import write_photographs
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
TORCH_ONLY = [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


def rows(column):
    return [column[index] for index in range(len(column))]


def same(column, expected):
    assert len(column) == len(expected)
    for row, other in zip(rows(column), expected, strict=True):
        assert row.dtype == other.dtype
        assert row.shape == other.shape
        assert row.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("name", [*NAMES, "uint16", "uint32", "uint64"])
def test_rows_of_each_numpy_dtype(name):
    array = np.arange(24).reshape(4, 3, 2).astype(name)
    same(Rows(array), torch.from_numpy(array))


@pytest.mark.parametrize("dtype", [*(getattr(torch, name) for name in NAMES), *TORCH_ONLY], ids=str)
def test_rows_of_each_torch_dtype(dtype):
    tensor = torch.arange(24).reshape(4, 3, 2).to(dtype)
    column = Rows(tensor)
    for row, other in zip(rows(column), tensor, strict=True):
        assert row.dtype == dtype
        assert torch.equal(row.view(torch.uint8), other.contiguous().view(torch.uint8))


@given(data=st.data())
@settings(deadline=None, max_examples=50)
def test_rows_of_any_layout(data):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=4, max_side=5))
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    array = array[:: data.draw(st.integers(1, 3))]
    same(Rows(array), torch.from_numpy(array))


@pytest.mark.parametrize("part", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-2, ::-1]], ids=str)
def test_rows_may_run_backwards(part):
    array = np.arange(12).reshape(4, 3)[part]
    same(Rows(array), torch.from_numpy(array.copy()))


def test_rows_share_memory_and_keep_its_owner():
    array = np.zeros((3, 2))
    column = Rows(array)
    array[1] = 7
    assert column[1].tolist() == [7, 7]
    del array
    assert column[1].tolist() == [7, 7]
    first = column[0]
    first += 1
    assert column[0].tolist() == [0, 0]


def test_rows_of_numbers_in_lists_are_collated_as_torch_collates_them():
    for numbers in ([1, 2], [1.5, 2.0], [True, False], [[1, 2], [3, 4]]):
        batch = torch.utils.data.default_collate(rows(Rows(numbers)))
        assert batch.dtype == torch.as_tensor(np.asarray(numbers)).dtype
        assert batch.tolist() == numbers


def test_rows_of_read_only_arrays_do_not_warn(tmp_path):
    array = np.arange(6.0).reshape(3, 2)
    array.flags.writeable = False
    same(Rows(array), torch.tensor(array))
    np.save(tmp_path / "x.npy", array)
    same(Rows(np.load(tmp_path / "x.npy", mmap_mode="r")), torch.tensor(array))


def test_rows_detach():
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    row = Rows(parameter)[0]
    assert type(row) is torch.Tensor
    assert not row.requires_grad


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.array(["a"]), TypeError, "but dtype is <U1"),
        (np.array([None]), TypeError, "but dtype is object"),
        (["a", "b"], TypeError, "but dtype is <U1"),
        (np.array(["2020-01-01"], "datetime64[D]"), TypeError, "datetime64"),
        (np.zeros(2, [("a", "i4")]), TypeError, "but dtype is"),
        (np.zeros(2, np.longdouble), TypeError, "but dtype is"),
        (np.zeros(2, ">f4"), ValueError, "byte order"),
        (np.float32(1), ValueError, "first dimension"),
        (torch.tensor(1), ValueError, "first dimension"),
        (np.ma.masked_array([1, 2], [True, False]), TypeError, "mask"),
        (torch.zeros(2, 2).to_sparse(), TypeError, "sparse"),
        (torch.zeros(2, dtype=torch.complex64).conj(), TypeError, "conjugated"),
        (torch.zeros(2, device="meta"), TypeError, "on meta"),
        (object(), TypeError, "but dtype is object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_refuse_what_no_tensor_can_be(data, error, message):
    with pytest.raises(error, match=message):
        Rows(data)


@pytest.mark.parametrize("index", [0, 2, -1, -3, np.int64(1), np.uint8(1), torch.tensor(1), True])
def test_integers_of_any_kind_are_indices(index):
    assert Rows([10, 11, 12])[index].item() == [10, 11, 12][index]


@pytest.mark.parametrize(("index", "error"), [(3, IndexError), (-4, IndexError), (1.0, TypeError)])
def test_other_indices_are_refused(index, error):
    with pytest.raises(error):
        Rows([10, 11, 12])[index]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=str
)
def test_rows_are_copied_and_pickled(again):
    for data in (torch.arange(6).reshape(3, 2), np.arange(6).reshape(3, 2)):
        same(again(Rows(data)), torch.arange(6).reshape(3, 2))


@pytest.mark.parametrize(
    "part",
    [
        np.s_[:],
        np.s_[100:200],
        np.s_[::-3],
        np.s_[7:2:-1, ::-1, 1:3],
        np.s_[5:50:2, 1:, ::2],
    ],
    ids=str,
)
def test_a_mapped_array_pickles_as_the_name_of_its_file(tmp_path, part):
    whole = np.arange(3000.0 * 4 * 5).reshape(3000, 4, 5)
    np.save(tmp_path / "x.npy", whole)
    column = Rows(np.load(tmp_path / "x.npy", mmap_mode="r")[part])
    written = pickle.dumps(column)
    assert len(written) < 1000
    again = pickle.loads(written)
    same(again, torch.from_numpy(whole[part].copy()))
    assert pickle.dumps(again) == written


def test_a_copy_on_write_mapping_pickles_its_own_values(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    array = np.load(tmp_path / "x.npy", mmap_mode="c")
    array[1] = 5
    assert [row.item() for row in pickle.loads(pickle.dumps(Rows(array)))] == [0, 5, 0]


def test_rows_describe_themselves():
    assert repr(Rows(np.zeros((3, 2, 1), np.uint8))) == "Rows(3 of uint8, shape (2, 1))"


def files(folder):
    for name in ("b.jpg", "a.jpg", "c.png"):
        (folder / name).touch()
    return folder


def test_images_are_found_by_pattern_and_sorted(tmp_path):
    column = Image(f"{files(tmp_path)}/*.jpg")
    assert len(column) == 2
    assert repr(column) == "Image(2 files)"
    _, (paths, steps) = column.__reduce__()
    assert [os.path.basename(path) for path in paths] == ["a.jpg", "b.jpg"]  # noqa: PTH119
    assert steps == []
    with pytest.raises(ValueError, match=r"no file matches .*\.gif"):
        Image(f"{tmp_path}/*.gif")


def test_images_take_text_and_path_objects():
    assert len(Image(["a.jpg", pathlib.Path("b.jpg"), np.str_("c.jpg")])) == 3
    assert len(Image(pathlib.Path(name) for name in "ab")) == 2


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (pathlib.Path("a.jpg"), "a list of paths or a pattern"),
        (b"a.jpg", "a list of paths or a pattern"),
        (["a.jpg", 3], "path 1 is a int"),
        ([b"a.jpg"], "path 0 is a bytes"),
    ],
)
def test_images_refuse_what_is_no_path(paths, message):
    with pytest.raises(TypeError, match=message):
        Image(paths)


def test_images_refuse_a_transform_that_is_not_made():
    with pytest.raises(TypeError, match=r"found the class ToTensor; write ToTensor\(\)"):
        Image(["a.jpg"], [ToTensor])


@pytest.mark.parametrize("transform", [len, [str.upper], torch.nn.ReLU(), "resize"])
def test_images_refuse_foreign_transforms(transform):
    with pytest.raises(TypeError, match=r"transform cannot be native: .* is Python code"):
        Image(["a.jpg"], transform)


def move(tensor: torch.Tensor, how: str) -> None:
    """Has torch move a tensor's memory under it."""
    if how == "shared":
        tensor.share_memory_()
    else:
        ForkingPickler.dumps(tensor)


@pytest.mark.parametrize("how", ["shared", "pickled for a process"])
def test_a_tensor_that_torch_moves_is_followed(how):
    tensor = torch.randn(20, 1 << 16)
    want = tensor.clone()
    column = Rows(tensor)
    dataset = fastload.Dataset((column, Rows(torch.arange(20))))
    loader = fastload.Loader(dataset, batch_size=4, num_workers=1, prefetch_factor=1)
    iterator = iter(loader)
    first, _ = next(iterator)
    place = tensor.data_ptr()
    move(tensor, how)
    assert tensor.data_ptr() != place
    assert torch.equal(torch.cat([first, *(rows for rows, _ in iterator)]), want)
    assert torch.equal(column[3], want[3])
    assert torch.equal(dataset[-1][0], want[-1])
    assert torch.equal(torch.cat([rows for rows, _ in loader]), want)
    assert torch.equal(torch.cat(list(fastload.Loader(column, batch_size=4))), want)


def test_pickling_for_a_process_leaves_the_memory_where_it_is():
    tensor = torch.arange(40.0).reshape(8, 5)[1:, ::2]
    dataset = fastload.Dataset(Rows(tensor))
    place = tensor.data_ptr()
    copy_made = pickle.loads(ForkingPickler.dumps(dataset))
    assert tensor.data_ptr() == place
    assert not tensor.is_shared()
    same(copy_made, tensor)
    tensor += 1
    assert torch.equal(copy_made[0], tensor[0] - 1)


@pytest.mark.parametrize("batch_size", [3, None])
@pytest.mark.parametrize(
    "steps", [[], [transforms.ToTensor(), transforms.Normalize((0.4,), (0.2,))]]
)
def test_layouts_hold_the_same_pixels(tmp_path, steps, batch_size):
    paths = write_photographs(tmp_path, 6)
    steps = [transforms.Resize((20, 30)), *steps]
    arguments = {"batch_size": batch_size, **SIZES}
    plain, rows, last = (
        list(fastload.Loader(Image(paths, steps, layout=layout), **arguments))
        for layout in ("CHW", "HWC", "channels_last")
    )
    for one, other, permuted in zip(plain, rows, last, strict=True):
        assert one.shape == permuted.shape
        assert torch.equal(other.movedim(-1, -3), one)
        assert torch.equal(permuted, one)
        assert permuted.movedim(-3, -1).is_contiguous()
    column = copy.copy(Image(paths, steps, layout="channels_last"))
    assert torch.equal(column[1], Image(paths, steps, layout="CHW")[1])
    sample = pickle.loads(pickle.dumps(fastload.Dataset({"image": column})))[1]["image"]
    assert sample.shape[0] == 3
    assert sample.stride(0) == 1


def test_images_refuse_an_unknown_layout():
    with pytest.raises(ValueError, match="layout should be one of"):
        Image(["a.jpg"], layout="NHWC")
