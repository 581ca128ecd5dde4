"""A shuffled epoch that is resumed so far behind its start that its next indices are traced."""

import itertools

import pytest
import torch
from torch.utils.data import DistributedSampler, TensorDataset

from fastload import Loader

COUNT = 2_400_000
TAKEN = 2_200_000
"""Samples of the epoch that were taken: more than a resumed run replays before its first batch."""

DATA = TensorDataset(torch.arange(COUNT))


def shuffled(batch_size: int) -> Loader:
    torch.manual_seed(4)
    return Loader(DATA, batch_size=batch_size, shuffle=True)


def distributed(batch_size: int) -> Loader:
    sampler = DistributedSampler(DATA, num_replicas=2, rank=1, seed=4)
    return Loader(DATA, batch_size=batch_size // 2, sampler=sampler)


@pytest.mark.parametrize("batch_size", [pytest.param(1_000, marks=pytest.mark.own_sizes), 50_000])
@pytest.mark.parametrize("make", [shuffled, distributed])
def test_the_batches_are_those_of_the_uninterrupted_run(make, batch_size):
    loader = make(batch_size)
    whole = iter(loader)
    for _ in itertools.islice(whole, TAKEN // batch_size):
        pass
    resumed = make(batch_size)
    resumed.load_state_dict(loader.state_dict())
    count = 0
    for (expected,), (found,) in zip(whole, resumed, strict=True):
        assert torch.equal(found, expected)
        count += 1
    assert count == (COUNT - TAKEN) // batch_size
