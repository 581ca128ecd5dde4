"""Rows whose elements are converted while they are copied; NumPy and the datasets themselves are the oracle."""

import contextlib
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from fastload import Loader, _lib
from fastload.lowering import lower
from fastload.memory import layout
from fastload.registry import NotNative
from tests.lowering.reading.classes import Held, made
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

BYTES = np.random.default_rng(0).integers(0, 256, (9, 5, 4), np.uint8)


def rows(array, dtype, table):
    return _lib.Rows(*layout.of_array(array), ("table", dtype, table.tobytes()))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("array", [BYTES, BYTES[:, :, ::2], BYTES[::-1], BYTES[:, 0, 0]], ids=len)
def test_each_byte_becomes_its_element(array, dtype):
    table = (np.arange(256) * 3 % 251).astype(dtype)
    program = _lib.Program([rows(array, dtype, table)], _lib.Leaf(0, "array"))
    for place in (0, 4, 8):
        found = np.asarray(program.sample(place))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, table[array[place]])


@pytest.mark.parametrize(
    ("array", "size"), [(BYTES, 255), (BYTES, 0), (BYTES.astype(np.int16), 256)]
)
def test_other_tables_and_elements_are_refused(array, size):
    with pytest.raises(ValueError, match="cannot read elements of"):
        rows(array, "float32", np.zeros(size, np.float32))


NUMBERS = np.random.default_rng(1).standard_normal((23, 3, 5, 4))
CONSTANTS = {
    "number": 0.3081,
    "channels": NUMBERS[0, :, :1, :1],
    "row": NUMBERS[1, 0],
    "all": NUMBERS[2],
}
OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("symbol", list(OPERATORS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("constant", list(CONSTANTS))
def test_arithmetic_is_that_of_numpy(symbol, is_left, dtype, constant):
    by = np.asarray(CONSTANTS[constant], dtype)
    inner = {"number": 60, "channels": 20, "row": 1, "all": 1}[constant]
    step = symbol, is_left, by.astype(float).tobytes(), inner
    for array in (NUMBERS, NUMBERS[::-2], np.asfortranarray(NUMBERS)):
        column = _lib.Rows(*layout.of_array(array), *cast_to(dtype), step, ("cast", other(dtype)))
        program = _lib.Program([column], _lib.Leaf(0, "array"))
        for place in range(len(array)):
            sides = array[place].astype(dtype), by
            want = OPERATORS[symbol](*sides[:: 1 if is_left else -1]).astype(other(dtype))
            found = np.asarray(program.sample(place))
            assert found.dtype == want.dtype
            assert found.tobytes() == want.tobytes()


def cast_to(dtype):
    return [("cast", dtype)] if dtype != "float64" else []


def other(dtype):
    return "float64" if dtype == "float32" else "float32"


CAST, BY_TWO = ("cast", "float32"), ("*", True, np.float64(2).tobytes(), 4)


@pytest.mark.parametrize(
    "steps",
    [
        [("*", True, np.float64(2).tobytes(), 4)],  # of integers
        [CAST, ("*", True, b"", 4)],
        [CAST, ("*", True, np.float64(2).tobytes(), 0)],
        [CAST, ("*", True, np.float64(2).tobytes(), 3)],
        [CAST, BY_TWO, ("cast", "float64"), BY_TWO],
        [CAST, ("cast", "float64"), ("cast", "float32")],
    ],
    ids=str,
)
def test_steps_that_are_not_native_are_refused(steps):
    with pytest.raises(ValueError, match="cannot read elements of int64 as"):
        _lib.Rows(*layout.of_array(np.zeros((3, 4), np.int64)), *steps)


class Scaled(Held):
    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]).permute(1, 0).float() / 255.0


class Normalized(Held):
    def __getitem__(self, index):
        return (self.images[index] - self.mean) / self.std


class NormalizedTensor(Held):
    def __getitem__(self, index):
        image = torch.tensor(self.images[index], dtype=torch.float32)
        return image.sub(self.mean).div(self.std)


class ByChannel(Held):
    def __getitem__(self, index):
        return torch.from_numpy((self.images[index].astype(np.float32) - self.row) * 3 + 1).double()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("kind", [Scaled, Normalized, NormalizedTensor, ByChannel])
def test_arithmetic_is_not_computed_ahead(kind, dtype):
    row = np.arange(0, 1, 1 / 2000)[::2]
    own = {"mean": np.float32(0.1307), "std": np.float32(0.3081), "row": row.astype(np.float32)}
    source = (BYTES[:1, :1, :1] * 1.3).astype(dtype)
    large = kind(images=np.broadcast_to(source, (4600, 5, 1000)), **own)
    assert lower(large) is not None  # of far more than is computed
    images = np.resize(BYTES * 1.3, (23, 5, 1000)).astype(dtype)
    small = kind(images=images, **own)
    batches = list(Loader(small, batch_size=8, **SIZES))
    for first, batch in zip((0, 8, 16), batches, strict=True):
        samples = [torch.as_tensor(small[place]) for place in range(first, min(first + 8, 23))]
        assert_same(batch, torch.stack(samples))


ZEROS = np.zeros((64, 5, 4), np.uint8)
ZEROS[16:30] = np.resize(BYTES, (14, 5, 4))  # not among the samples that are compared
OWN = {"x": ZEROS, "single": ZEROS.astype(np.float32), "ones": torch.ones(64)}
OWN["ones"][16:26] = torch.tensor([3, 6, 12, 23, 24, 25, 27, 37, 41, 43.0])
IN_PLACE = [
    "x = self.x[i].astype(np.float32)\nx /= 255.0\nx -= 0.5\nreturn x",
    "x = self.single[i].astype(np.float32)\nx /= 255.0\nreturn x, self.single[i]",
    "x = torch.from_numpy(self.x[i]).float() / 255\nx *= 2\nreturn x, i",
    "x = self.single[i] * 3\nx += 1\nreturn x[0], x",
]
ALIASED = [
    "x = self.single[i]\nx /= 1.0\nreturn x",
    "x = y = self.x[i].astype(np.float32)\nx /= 255.0\nreturn x, y",
    "x = self.x[i].astype(np.float32)\ny = x[0]\nx /= 255.0\nreturn x, y",
    "x = self.x[i].astype(np.float32)\ny = x\ny /= 255.0\nreturn x, y",
    "x = torch.from_numpy(self.single[i]).float()\nx *= 1\nreturn x",
    "y = torch.from_numpy(self.x[i]) * 3.0\nx = y.float()\nx *= 2\nreturn x, y",
    "y = torch.from_numpy(self.x[i]) / 255\nx = y[0].float()\nx *= 2\nreturn x, y",
    "y = self.x[i] * 2.0\nx = y.astype(np.float64, copy=False)\nx *= 2\nreturn x, y",
    "y = self.x[i] * 2.0\nx = self.helped(y)\nx *= 3\nreturn x, y",
    "x = self.x[i] * 2.0\nx *= (z := x).ndim\nreturn x, z",
    "x = self.x[i] * 2.0\nx *= [z := x, 3.0][1]\nreturn x, z",
    "x = self.single[i] + 1\nx += np.zeros(4)\nreturn x",
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("body", IN_PLACE)
def test_new_arrays_may_be_changed_in_place(body):
    dataset = made(body, OWN, 64)
    assert lower(dataset) is not None
    assert_same(list(Loader(dataset, 8, **SIZES)), list(DataLoader(dataset, 8)))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("body", ALIASED)
def test_arrays_that_others_see_are_not_changed(body):
    dataset = made(body, OWN, 64)
    with pytest.raises(NotNative, match="in place"):
        lower(dataset)
    assert_same(list(Loader(dataset, 8, **SIZES)), list(DataLoader(dataset, 8)))


@pytest.mark.parametrize("kind", ["float", "double", "long"])
@pytest.mark.parametrize("symbol", list(OPERATORS))
def test_a_number_and_a_tensor_are_calculated_as_torch_does(symbol, kind):
    dataset = made(f"return 10 {symbol} self.ones[i].{kind}(), 0.3 {symbol} self.ones[i]", OWN, 64)
    assert lower(dataset) is not None
    assert_same(list(Loader(dataset, 8, **SIZES)), list(DataLoader(dataset, 8)))


def test_numpy_raises_where_it_is_told_to():
    images = np.ones((64, 4))
    images[20] = 2  # which no zero is taken from
    dataset = Normalized(images=images, mean=np.float32(1), std=np.float64(0))
    with np.errstate(all="raise"), pytest.raises(NotNative, match="FloatingPointError"):
        lower(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotNative, match="RuntimeWarning"):
            lower(dataset)
        with pytest.raises(RuntimeWarning):
            list(Loader(dataset, batch_size=4))


def test_what_was_computed_is_computed_again_where_numpy_is_told_to_raise():
    dataset = made("return self.x[i] / self.zero > 1", {"x": np.arange(1, 65), "zero": 0}, 64)
    loader = Loader(dataset, 8, num_workers=2)
    with np.errstate(all="ignore"):
        assert_same(list(loader), list(DataLoader(dataset, 8)))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        list(loader)
    with warnings.catch_warnings():
        for action, outcome in (
            ("ignore", contextlib.nullcontext()),
            ("error", pytest.raises(RuntimeWarning)),
        ):
            warnings.simplefilter(action)
            with outcome:
                list(loader)
