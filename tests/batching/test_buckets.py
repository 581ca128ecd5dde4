"""`BucketBatchSampler`: fixed numbers of samples of similar length."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from fastload import BucketBatchSampler

from .lengths import counted, of_ranks, tokens


@given(
    lengths=st.lists(st.integers(0, 60), max_size=150),
    batch_size=st.integers(1, 20),
    world=st.sampled_from([1, 2, 3, 8]),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
)
def test_all_batches_but_those_of_the_last_step_are_full(
    lengths, batch_size, world, shuffle, drop_last
):
    def make(rank):
        return BucketBatchSampler(
            lengths,
            batch_size,
            window=16,
            shuffle=shuffle,
            drop_last=drop_last,
            num_replicas=world,
            rank=rank,
            remainder="mask",
        )

    ranks = of_ranks(make, world)
    sizes = [[len(batch) for batch in batches] for batches in ranks]
    short = len(lengths) % (batch_size * world)
    for rank in sizes:
        assert set(rank[:-1] if short and not drop_last else rank) <= {batch_size}
    assert len(sizes[0]) == len(lengths) // (batch_size * world) + bool(short and not drop_last)
    if drop_last:
        assert set(counted(ranks).values()) <= {1}
    else:
        assert counted(ranks) == dict.fromkeys(range(len(lengths)), 1)
        last = [rank[-1] for rank in sizes if rank]
        assert not last or max(last) <= batch_size


@pytest.mark.parametrize("drop_last", [False, True])
def test_unsorted_and_in_order_it_is_torchs_batch_sampler(drop_last):
    sampler = BucketBatchSampler([3] * 50, 8, window=1, shuffle=False, drop_last=drop_last)
    assert list(sampler) == list(BatchSampler(SequentialSampler(range(50)), 8, drop_last))
    assert (sampler.batch_size, sampler._drop_last) == (8, drop_last)


def test_batches_hold_samples_of_similar_length():
    lengths = tokens(6400)
    random = torch.randperm(6400).view(-1, 32).numpy()
    waste = 1 - lengths.sum() / (lengths[random].max(1) * 32).sum()
    assert BucketBatchSampler(lengths, 32).plan_stats()["waste"] < waste / 4


def test_epochs_differ_and_repeat_when_chosen():
    sampler = pickle.loads(pickle.dumps(BucketBatchSampler(tokens(300), 16, seed=9)))
    epochs = [list(sampler) for _ in range(2)]
    assert epochs[0] != epochs[1]
    sampler.set_epoch(0)
    loader = DataLoader(range(300), batch_sampler=sampler)
    assert [[batch.tolist() for batch in loader] for _ in range(2)] == epochs


def test_sizes_are_checked():
    for size in (0, -1, True, None):
        with pytest.raises(ValueError, match="batch_size should be a positive integer"):
            BucketBatchSampler([1], size)
