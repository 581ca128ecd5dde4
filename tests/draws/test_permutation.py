"""Permutations are torch's, drawn by torch or natively."""

import pytest
import torch
from torch.utils.data import RandomSampler

from fastload import _lib
from fastload.draws import permutation, sampler

SIZES = [1, 2, 3, 623, 624, 625, 4095, 4096, 4097, 20_000, 100_003]
SEEDS = [0, 1, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1]


def drawn(n: int, seed: int) -> torch.Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", SIZES)
def test_pieces_are_those_of_torch(n: int, seed: int):
    assert torch.cat(list(permutation.pieces(n, seed))).equal(drawn(n, seed))


@pytest.mark.parametrize("skip", [0, 1, 4096, 262_143, 262_144, 262_145, 700_000, 786_432, 900_001])
@pytest.mark.parametrize("n", [786_432, 900_001])
def test_what_is_skipped_is_left_out(n: int, skip: int):
    pieces = list(permutation.pieces(n, 11, skip))
    assert torch.cat([*pieces, torch.tensor([], dtype=torch.int64)]).equal(drawn(n, 11)[skip:])


@pytest.mark.parametrize("count", [1, 7, 624, 5000])
def test_draws_of_any_size(count: int):
    ours = _lib.Permutation(5000, 3)
    found = []
    while len(piece := ours.draw(count)):
        found.append(piece)
    assert torch.cat(found).equal(drawn(5000, 3))
    assert found[0].dtype == torch.int64
    assert len(ours.draw(1)) == 0


def test_what_torch_draws_in_another_way_is_refused():
    with pytest.raises(ValueError, match="at most of 214748363"):
        _lib.Permutation(_lib.Permutation.MOST + 1, 0)


def test_a_torch_that_draws_in_another_way_draws_itself(monkeypatch):
    monkeypatch.setattr(permutation, "_is_torchs", lambda: False)
    (only,) = permutation.pieces(10_000, 5)
    assert only.equal(drawn(10_000, 5))


def test_a_sampler_that_draws_no_more_than_there_are_comes_in_pieces():
    torch.manual_seed(0)
    theirs = list(RandomSampler(range(10_000)))
    torch.manual_seed(0)
    ours = list(sampler.recognise(RandomSampler(range(10_000)), batched=False).chunks())
    assert len(ours) == 3
    assert torch.cat(ours).tolist() == theirs
