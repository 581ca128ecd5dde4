"""`Unpadded` fields of batches; torch's nested tensors are the oracle."""

import numpy as np
import pytest
import torch

from fastload import PadCollate, Unpadded
from tests.shared.compare import assert_same


@pytest.fixture
def samples():
    return [torch.randn(n, 3) for n in (2, 0, 5, 5)]


def collated(layout, samples):
    return PadCollate({"x": Unpadded(layout)})([{"x": each} for each in samples])["x"]


def test_a_list_holds_the_tensors_themselves(samples):
    got = collated("list", [*samples, torch.randn(1, 2, 3)])
    assert type(got) is list
    assert all(one is other for one, other in zip(got, samples, strict=False))


def test_a_list_of_what_is_no_tensor():
    arrays = [np.ones((2, 3), "f2"), np.zeros(4, ">i2").astype("i2"), [1, 2], [0.5]]
    got = collated("list", arrays)
    assert [each.dtype for each in got] == [torch.float16, torch.int16, torch.int64, torch.float64]
    for one, other in zip(got, arrays, strict=True):
        assert np.array_equal(one.numpy(), np.asarray(other))
    got[0].zero_()
    assert arrays[0].all()


def test_jagged_is_torchs_nested_tensor(samples):
    got = collated("jagged", samples)
    want = torch.nested.nested_tensor(samples, layout=torch.jagged)
    assert got.layout is torch.jagged
    assert got.is_nested
    assert_same(got.values(), want.values())
    assert_same(got.offsets(), want.offsets())
    for one, other in zip(got.unbind(), samples, strict=True):
        assert_same(one, other)
    assert_same(torch.nested.to_padded_tensor(got, 0.0), torch.nested.to_padded_tensor(want, 0.0))


def test_jagged_knows_its_lengths(samples):
    got = collated("jagged", samples)
    assert (got._min_seqlen, got._max_seqlen) == (0, 5)
    assert got._maybe_max_seqlen == 5
    assert got._maybe_min_seqlen == 0


def test_flat_has_names_and_unpacks(samples):
    flat = collated("flat", samples)
    values, offsets = flat
    assert_same(flat.values, torch.cat(samples))
    assert_same(flat.offsets, torch.tensor([0, 2, 2, 7, 12]))
    assert values is flat.values
    assert offsets is flat.offsets


def test_flat_of_lists():
    values, offsets = collated("flat", [[[1, 2]], [], [[3, 4], [5, 6]]])
    assert_same(values, torch.tensor([[1, 2], [3, 4], [5, 6]]))
    assert_same(offsets, torch.tensor([0, 1, 1, 3]))


def test_a_single_number_is_not_ragged():
    with pytest.raises(ValueError, match=r"'x'.*no dimension 0"):
        collated("flat", [torch.tensor(1)])


def test_one_rule_for_all_fields_leaves_single_numbers():
    batch = PadCollate(Unpadded())([{"x": torch.zeros(n), "y": n, "z": "a"} for n in (1, 2)])
    assert [each.shape for each in batch["x"]] == [(1,), (2,)]
    assert_same(batch["y"], torch.tensor([1, 2]))
    assert batch["z"] == ["a", "a"]
