"""`PackBatchSampler`: documents in rows of a fixed length."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from fastload import PackBatchSampler, PackCollate
from tests.shared.compare import MANY_WORKERS

from .lengths import Samples, counted, of_ranks, tokens

pytestmark = MANY_WORKERS

STRATEGIES = ["best_fit", "first_fit", "concat_split"]


@given(
    lengths=st.lists(st.integers(0, 60), max_size=120),
    rows=st.integers(1, 3),
    world=st.sampled_from([1, 2, 3, 8]),
    strategy=st.sampled_from(STRATEGIES),
    overlong=st.sampled_from(["truncate", "split", "drop"]),
    window=st.sampled_from([None, 1, 20]),
    shuffle=st.booleans(),
)
def test_a_plan_is_a_partition_into_batches_of_few_rows(
    lengths, rows, world, strategy, overlong, window, shuffle
):
    def make(rank):
        return PackBatchSampler(
            lengths,
            32,
            strategy,
            overlong,
            rows=rows,
            window=window,
            shuffle=shuffle,
            num_replicas=world,
            rank=rank,
            remainder="mask",
        )

    ranks = of_ranks(make, world)
    cuts = strategy == "concat_split"
    kept = [i for i, n in enumerate(lengths) if cuts or overlong != "drop" or n <= 32]
    assert counted(ranks) == dict.fromkeys(kept, 1)
    collate, used = PackCollate(32, strategy, "split"), 0
    for batch in (batch for batches in ranks for batch in batches):
        found = [
            lengths[i] if cuts or overlong != "truncate" else min(lengths[i], 32) for i in batch
        ]
        packed = len(collate([[0] * n for n in found])["input_ids"])
        used += packed
        longest = max(found)
        assert packed <= max(rows, sum(-(-n // 32) for n in found if n > 32) + (not cuts)), longest
        if longest <= 32:
            assert packed <= rows
    stats = make(0).plan_stats()
    if used:
        fillers = [i for b in ranks for batch in b for i in batch if type(i) is not int]
        assert stats["fillers"] == len(fillers)
        own = sum(
            min(lengths[i], 32) if not cuts and overlong == "truncate" else lengths[i] for i in kept
        )
        assert stats["waste"] == pytest.approx(1 - own / (used * 32))


def test_packing_wastes_little():
    lengths = tokens(20_000)
    for strategy in ("best_fit", "concat_split"):
        stats = PackBatchSampler(lengths, 2048, strategy).plan_stats()
        assert stats["waste"] < 0.01
        assert (stats["samples"], stats["tokens_max"]) == (20_000, 2048)


@pytest.mark.parametrize("name", ["max_length", "rows"])
@pytest.mark.parametrize("size", [0, None])
def test_sizes_are_checked(name, size):
    with pytest.raises(ValueError, match=f"{name} should be a positive integer, but got {size}"):
        PackBatchSampler([3], **({"max_length": 10} | {name: size}))


def test_overlong_documents():
    with pytest.raises(ValueError, match="document 1 has length 25, a row 10"):
        PackBatchSampler([3, 25], 10, overlong="error")
    assert list(PackBatchSampler([3, 25], 10, overlong="drop")) == [[0]]
    truncated = PackBatchSampler([3, 25], 10, shuffle=False)
    assert sorted(map(sorted, truncated)) == [[0], [1]]
    assert truncated.plan_stats()["truncated"] == 1
    assert list(PackBatchSampler([3, 25], 10, overlong="split", shuffle=False)) == [[0, 1]]
    cut = PackBatchSampler([3, 25], 10, "concat_split", "error", rows=3, shuffle=False)
    assert list(cut) == [[0, 1]]


def test_a_last_step_without_all_rows_is_dropped_on_demand():
    plan = [list(PackBatchSampler([10] * 7, 10, rows=2, drop_last=drop)) for drop in (False, True)]
    assert [len(batches) for batches in plan] == [4, 3]
    assert all(len(batch) == 2 for batch in plan[1])


def test_it_can_be_pickled_and_loaded():
    lengths = tokens(300)
    sampler = PackBatchSampler(lengths, 2048, seed=2)
    copy = pickle.loads(pickle.dumps(sampler))
    assert (copy.batch_size, copy._drop_last) == (None, False)
    epochs = [list(copy) for _ in range(2)]
    assert epochs[0] != epochs[1]
    loader = DataLoader(Samples(300), batch_sampler=sampler, num_workers=2)
    assert [[batch.tolist() for batch in loader] for _ in range(2)] == epochs
