"""Unpadded fields over columns, made by native threads; torch's nested tensors are the oracle."""

import numpy as np
import pytest
import torch

from fastload import Dataset, PadCollate, Unpadded, columns
from tests.shared.compare import MANY_WORKERS, assert_same

from .test_pad_native import LENGTHS, files, native, ragged

pytestmark = MANY_WORKERS


def jagged(samples):
    return torch.nested.nested_tensor(samples, layout=torch.jagged)


def made(kind, folder):
    """Returns a column of samples (n, 3) of float32."""
    if kind == "offsets":
        return ragged(3)
    if kind == "headers":
        return files(folder, [(length, 3) for length in LENGTHS])
    for number, length in enumerate(LENGTHS):
        rows = np.random.default_rng(number).random((length, 3), np.float32)
        np.savez_compressed(folder / f"{number:02}.npz", x=rows)
    return columns.Npz(str(folder / "*.npz"), "x")


@pytest.mark.parametrize("kind", ["offsets", "headers", "unknown"])
@pytest.mark.parametrize("batch_size", [1, 5, 12])
def test_jagged_is_torchs_nested_tensor(kind, batch_size, tmp_path):
    column = made(kind, tmp_path)
    loader = native(
        Dataset({"x": column}), PadCollate({"x": Unpadded("jagged")}), batch_size=batch_size
    )
    for number, batch in enumerate(loader):
        samples = [column[at] for at in range(len(column))][number * batch_size :][:batch_size]
        got, want = batch["x"], jagged(samples)
        assert got.layout is torch.jagged
        assert got.dim() == want.dim()
        assert got.size(0) == want.size(0)
        assert_same(got.values(), want.values())
        assert_same(got.offsets(), want.offsets())
        assert_same(list(got.unbind()), list(want.unbind()))
        lengths = [len(sample) for sample in samples]
        assert (got._maybe_min_seqlen, got._maybe_max_seqlen) == (min(lengths), max(lengths))
        padded = [torch.nested.to_padded_tensor(each, 0.5) for each in (got, want)]
        assert_same(*padded)
        assert_same((got * 2).sum(dim=1), (want * 2).sum(dim=1))


@pytest.mark.parametrize("kind", ["offsets", "headers", "unknown"])
def test_flat_is_what_torch_concatenates(kind, tmp_path):
    column = made(kind, tmp_path)
    loader = native(Dataset({"x": column}), PadCollate({"x": Unpadded("flat")}), batch_size=5)
    for number, batch in enumerate(loader):
        samples = [column[at] for at in range(len(column))][number * 5 :][:5]
        assert_same(batch["x"].values, torch.cat(samples))
        ends = np.cumsum([0, *map(len, samples)])
        assert_same(batch["x"].offsets, torch.from_numpy(ends))


@pytest.mark.parametrize("kind", ["offsets", "headers", "unknown"])
def test_a_list_holds_each_sample(kind, tmp_path):
    column = made(kind, tmp_path)
    loader = native(Dataset({"x": column}), PadCollate({"x": Unpadded()}), batch_size=12)
    assert_same(next(iter(loader))["x"], [column[at] for at in range(12)])
