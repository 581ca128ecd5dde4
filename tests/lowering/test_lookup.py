"""Rows of bytes whose elements are looked up in a table while they are copied; NumPy's `take` is the oracle."""

import numpy as np
import pytest
import torch

from fastload import Loader, _lib
from fastload.lowering import lower
from fastload.memory import layout
from tests.lowering.reading.classes import Held
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

BYTES = np.random.default_rng(0).integers(0, 256, (9, 5, 4), np.uint8)


def rows(array, dtype, table):
    return _lib.Rows(*layout.of_array(array), dtype, table.tobytes())


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


class Scaled(Held):
    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]).permute(1, 0).float() / 255.0


def test_arithmetic_on_bytes_is_not_computed_ahead():
    images = np.broadcast_to(BYTES[:1, :1, :1], (23, 4000, 2000))  # far more than is computed
    lowered = lower(Scaled(images=images))
    assert "float32" in lowered.leaves[0][1].column
    small = Scaled(images=np.resize(BYTES, (23, 5, 4)))
    batches = list(Loader(small, batch_size=8, **SIZES))
    assert_same(batches[0], torch.stack([small[place] for place in range(8)]))
