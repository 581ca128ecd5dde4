"""Batch samplers among ranks: torch.distributed's, and those of Accelerate."""

import pytest
import torch.distributed as dist
from accelerate.data_loader import DataLoaderDispatcher, prepare_data_loader, skip_first_batches
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader

from fastload import BucketBatchSampler, TokenBatchSampler

from .lengths import Samples, counted, tokens

LENGTHS = tokens(1003)


@pytest.fixture
def third_of_four():
    dist.init_process_group(backend="fake", rank=2, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


def token_batches(**arguments):
    return TokenBatchSampler(LENGTHS, 2048, remainder="mask", **arguments)


def buckets(**arguments):
    return BucketBatchSampler(LENGTHS, 16, window=64, remainder="mask", **arguments)


def prepared(sampler, rank, world=2, **arguments):
    loader = DataLoader(Samples(len(LENGTHS)), batch_sampler=sampler)
    return prepare_data_loader(loader, num_processes=world, process_index=rank, **arguments)


def epochs(loader, count=2):
    return [[batch.tolist() for batch in loader] for _ in range(count)]


def test_ranks_are_those_of_torch_distributed(third_of_four):
    sampler = token_batches()
    assert list(sampler) == list(token_batches(num_replicas=4, rank=2))
    assert list(token_batches(num_replicas=1, rank=0)) == list(
        token_batches(num_replicas=1, rank=0)
    )


def test_a_process_group_may_come_after_the_sampler():
    sampler = token_batches()
    alone = len(sampler)
    dist.init_process_group(backend="fake", rank=1, world_size=2, store=FakeStore())
    try:
        assert len(sampler) == len(token_batches(num_replicas=2, rank=1)) < alone
    finally:
        dist.destroy_process_group()


def test_a_rank_must_be_known():
    with pytest.raises(ValueError, match="rank of this process among 2 is unknown"):
        len(token_batches(num_replicas=2))
    with pytest.raises(ValueError, match="Invalid rank 1"):
        list(token_batches(rank=1))


@pytest.mark.parametrize("make", [token_batches, buckets])
@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("even_batches", [True, False])
def test_accelerate_finds_the_batches_of_all_processes(make, world, even_batches, third_of_four):
    """Whatever torch.distributed says of this process: it is Accelerate that shards."""
    ranks = []
    for rank in range(world):
        loader = prepared(make(), rank, world, even_batches=even_batches)
        announced = len(loader)
        first, second = epochs(loader)
        ours = make(num_replicas=world, rank=rank)
        assert [first, second] == [list(ours) for _ in range(2)]
        assert announced == len(first)
        ranks.append(first)
    times = counted(ranks)
    assert set(times) == set(range(len(LENGTHS)))
    assert sum(times.values()) - len(times) < world  # Accelerate's collation knows no fillers


def test_accelerate_splits_whole_batches():
    sizes = BucketBatchSampler([5] * 96, 16)
    halves = [
        epochs(prepared(BucketBatchSampler([5] * 96, 16), r, split_batches=True)) for r in (0, 1)
    ]
    for first, second, whole in zip(halves[0][0], halves[1][0], sizes, strict=True):
        assert first + second == whole


def test_accelerate_skips_batches():
    loader = prepared(token_batches(), 1)
    assert (
        epochs(skip_first_batches(loader, 3), 1)[0]
        == list(token_batches(num_replicas=2, rank=1))[3:]
    )


def test_accelerate_sets_the_epoch():
    loader = prepared(token_batches(), 0)
    loader.set_epoch(3)
    sampler = token_batches(num_replicas=2, rank=0)
    sampler.set_epoch(3)
    assert epochs(loader, 1)[0] == list(sampler)


def test_who_dispatches_batches_is_given_all_of_them(third_of_four):
    loader = prepared(buckets(), 0, dispatch_batches=True, put_on_device=True)
    assert isinstance(loader, DataLoaderDispatcher)
    assert epochs(loader, 1)[0] == list(buckets(num_replicas=1, rank=0))


def test_nothing_is_sharded_twice():
    loader = prepared(token_batches(num_replicas=2, rank=1), 1)
    with pytest.raises(RuntimeError, match="leave num_replicas and rank out"):
        len(loader)
    with pytest.raises(RuntimeError, match="BatchSamplerShard of Accelerate shards batches"):
        next(iter(loader))
