"""Permutations are torch's, drawn by torch or natively."""

import pytest
import torch
from torch.utils.data import RandomSampler

from fastload import _lib
from fastload.draws import permutation, sampler
from tests.shared.storm import in_child

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


EDGES = [0, 1, 2, 623, 624, 625, 1247, 1248]


@pytest.mark.parametrize("n", [*range(1, 8), 623, 624, 625, 1248, 4095, 4096, 4097, 65_535, 65_537])
def test_any_number_is_left_out(n: int):
    whole = drawn(n, 5)
    for skip in {*EDGES, *(n - edge for edge in EDGES)} & {*range(n + 1)}:
        assert _lib.Permutation(n, 5, skip).draw(n).equal(whole[skip:])
    assert len(_lib.Permutation(n, 5, n + 1).draw(n)) == 0


TRACED_FROM = 2**21
"""Indices that must be left out before the next ones are traced, some of them before the others."""
TRACED = 2**15
BLOCK_END = -(-TRACED_FROM // 624) * 624


@pytest.mark.parametrize(
    ("n", "seed"),
    [
        *((n, 2) for n in (2**21, 2**21 + 1, 2_500_000, 2**22 - 1, 2**22 + 625, 5_000_000)),
        (2_500_000, 2**32 - 1),
    ],
)
def test_what_is_traced_is_torchs(n: int, seed: int):
    whole = drawn(n, seed)
    ends = {n - edge for edge in (0, 1, 2, 623, 624, 625, TRACED - 1, TRACED, TRACED + 1)}
    for skip in {TRACED_FROM - 1, TRACED_FROM, BLOCK_END - 1, BLOCK_END, BLOCK_END + 1, *ends}:
        if TRACED_FROM - 1 <= skip <= n:
            left = _lib.Permutation(n, seed, skip)
            first = left.draw(TRACED - 1)  # the rest of them comes together with others
            assert torch.cat([first, left.draw(n), left.draw(1)]).equal(whole[skip:])


def test_a_permutation_that_is_dropped_leaves_nobody_waiting():
    for _ in range(20):
        _lib.Permutation(5_000_000, 1, 4_900_000)
    last = _lib.Permutation(3_000_000, 1, 2_900_000)
    assert last.draw(100_000).equal(drawn(3_000_000, 1)[2_900_000:])


def test_a_forked_child_draws_what_its_parent_had_begun():
    n, skip = 4_000_000, 3_900_000
    expected = drawn(n, 9)[skip:].tolist()
    left = _lib.Permutation(n, 9, skip)

    def check(_: int) -> None:
        assert left.draw(n).tolist() == expected

    assert in_child(check, 0) == ""
    check(0)


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
