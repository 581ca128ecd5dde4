"""Recognised index orders: torch's own samplers, iterated beside, are the oracle."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
)

from fastload import Dataset, Loader
from fastload.columns import Rows
from fastload.draws.sampler import Start, recognise


def flat(order, start=None):
    return [int(index) for chunk in order.chunks(start or Start()) for index in chunk]


def with_state(generator, draw):
    """Runs `draw` and returns its result with the states of all generators after it."""
    torch.manual_seed(11)
    if generator is not None:
        generator.manual_seed(5)
    result = draw()
    return result, torch.get_rng_state().tolist(), generator and generator.get_state().tolist()


RANDOM = [
    {},
    {"num_samples": 3},
    {"num_samples": 10},
    {"num_samples": 25},
    {"replacement": True},
    {"replacement": True, "num_samples": 31},
    {"replacement": True, "num_samples": 32},
    {"replacement": True, "num_samples": 33},
    {"replacement": True, "num_samples": 40_000},
]


@pytest.mark.parametrize("own", [False, True], ids=["global", "generator"])
@pytest.mark.parametrize("arguments", RANDOM, ids=str)
def test_random_sampler_draws_as_torch(arguments, own):
    generator = torch.Generator() if own else None
    sampler = RandomSampler(range(10), generator=generator, **arguments)
    order = recognise(sampler, batched=False)
    assert with_state(generator, lambda: flat(order)) == with_state(
        generator, lambda: list(sampler)
    )


def test_nothing_is_drawn_before_the_first_index():
    sampler = RandomSampler(range(10))
    before = torch.get_rng_state()
    chunks = recognise(sampler, batched=False).chunks()
    assert torch.equal(torch.get_rng_state(), before)
    next(chunks)
    assert not torch.equal(torch.get_rng_state(), before)


@given(
    n=st.integers(1, 40) | st.integers(4090, 4100) | st.integers(8000, 13_000),
    replicas=st.integers(1, 7),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    seed=st.sampled_from([3, -1, 2**40]),
    epoch=st.integers(0, 3),
    data=st.data(),
)
@settings(deadline=None, max_examples=100)
def test_distributed_sampler_gives_torchs_share(n, replicas, shuffle, drop_last, seed, epoch, data):
    rank = data.draw(st.integers(0, replicas - 1))
    sampler = DistributedSampler(range(n), replicas, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    assert flat(recognise(sampler, batched=False)) == list(sampler)


@pytest.mark.parametrize("n", [30, 9001])
@pytest.mark.parametrize("skip", [1, 24, 29])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_that_resume_share_what_is_left(n, skip, drop_last):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(7))
    shares = [
        flat(
            recognise(
                DistributedSampler(range(n), 4, rank, seed=7, drop_last=drop_last), batched=False
            ),
            Start(skip),
        )
        for rank in range(4)
    ]
    steps = {len(share) for share in shares}
    assert steps == {(n - skip) // 4 if drop_last else -(-(n - skip) // 4)}
    together = [index for step in zip(*shares, strict=True) for index in step]
    assert together == [int(order[place % n]) for place in range(skip, skip + len(together))]


def test_distributed_sampler_of_a_dataset_that_shrank_raises_as_torch():
    data = list(range(10))
    sampler = DistributedSampler(data, 2, 0, drop_last=True)
    del data[5:]
    with pytest.raises(AssertionError) as torchs:
        list(sampler)
    with pytest.raises(AssertionError) as ours:
        flat(recognise(sampler, batched=False))
    assert str(ours.value) == str(torchs.value)


def test_sequential_sampler_follows_a_dataset_that_grows():
    data = list(range(5))
    order = recognise(SequentialSampler(data), batched=False)
    data.append(5)
    assert flat(order) == [0, 1, 2, 3, 4, 5]


def test_only_torchs_own_are_recognised(monkeypatch):
    class Mine(RandomSampler):
        pass

    class Batches(BatchSampler):
        pass

    known = SequentialSampler(range(3))
    assert recognise(BatchSampler(known, 2, False), batched=True) is not None
    assert recognise(Batches(known, 2, False), batched=True) is None
    assert recognise(Mine(range(3)), batched=False) is None
    assert recognise(BatchSampler(Mine(range(3)), 2, False), batched=True) is None
    assert recognise(SubsetRandomSampler([0, 1]), batched=False) is None
    assert recognise([[0, 1]], batched=True) is None
    monkeypatch.setattr(SequentialSampler, "__iter__", lambda self: iter([2, 1, 0]))
    assert recognise(known, batched=False) is None
    assert recognise(BatchSampler(known, 2, False), batched=True) is None


def batches_and_states(kind, generator, sampler, **arguments):
    """Returns each batch with the generator's state after it was taken."""
    generator.manual_seed(7)
    dataset = Dataset(Rows(torch.arange(20)))
    loader = kind(dataset, sampler=sampler, generator=generator, num_workers=2, **arguments)
    taken = [(None, generator.get_state().tolist())]
    taken += [(batch.tolist(), generator.get_state().tolist()) for batch in loader]
    return taken


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{"num_samples": 50}, {"num_samples": 40}, {"replacement": True, "num_samples": 70}],
    ids=str,
)
def test_a_shared_generator_is_drawn_from_at_torchs_moments(arguments, drop_last):
    generator = torch.Generator()
    sampler = RandomSampler(range(20), generator=generator, **arguments)
    ours, torchs = (
        batches_and_states(kind, generator, sampler, batch_size=7, drop_last=drop_last)
        for kind in (Loader, DataLoader)
    )
    for place, (one, other) in enumerate(itertools.zip_longest(ours, torchs)):
        assert one == other, f"batch {place}"


@pytest.mark.filterwarnings("ignore:This DataLoader will")
@pytest.mark.parametrize("batch_size", [None, 1, 3, 20, 64])
@pytest.mark.parametrize("shuffle", [False, True])
def test_epochs_and_generators_are_torchs(batch_size, shuffle):
    dataset = Dataset(Rows(torch.arange(20)))

    def epochs(kind, workers):
        torch.manual_seed(3)
        loader = kind(dataset, batch_size, shuffle, num_workers=workers)
        batches = [[batch.tolist() for batch in loader] for _ in range(2)]
        return batches, torch.get_rng_state().tolist()

    expected = epochs(DataLoader, 0)
    for workers in (1, 2, 5):
        assert epochs(Loader, workers) == expected


class BeginsAnew:
    """A sampler that is its own iterator, and begins anew whenever it is asked for one."""

    def __init__(self, items):
        self._items = items
        self._iterator = iter(())

    def __iter__(self):
        self._iterator = iter(self._items)
        return self

    def __next__(self):
        return next(self._iterator)

    def __len__(self):
        return len(self._items)


@pytest.mark.filterwarnings("ignore:This DataLoader will")
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_sampler": BeginsAnew([[4, 1], [0], [7, 8, 9], [2]])},
        {"sampler": BeginsAnew([5, 3, 0]), "batch_size": None},
        {"sampler": BeginsAnew([5, 3, 0, 4, 1]), "batch_size": 2, "drop_last": True},
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_sampler_is_asked_for_its_iterator_once(arguments, workers):
    dataset = Dataset(Rows(torch.arange(10)))
    expected = [batch.tolist() for batch in DataLoader(dataset, **arguments)]
    loader = Loader(dataset, **arguments, num_workers=workers)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected
