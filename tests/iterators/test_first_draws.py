"""When an epoch's order is drawn: under AUTO at the first `next`, as in torch's default; with workers of the user's in `iter`.

Torch's loaders are the oracle: the indices, and the state of the global generator after each step, are equal.
"""

import functools
import os

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.datapipes.iter import IterableWrapper

from fastload import Loader
from fastload.iterators.learned import record_of

COUNT = 40


class Python(Dataset):
    """Its samples are not known to be cheap."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        os.getpid()
        return (torch.tensor(index),)


def native():
    return TensorDataset(torch.arange(COUNT))


def here():
    dataset = Python()
    record_of(dataset).why_here = "the test says so"
    return dataset


class OfUser(Sampler):
    """Draws from the global generator where it is iterated."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return COUNT

    def __iter__(self):
        yield from torch.randperm(COUNT).tolist()


class InIter(OfUser):
    """Draws before it is asked for the first index."""

    def __iter__(self):
        return iter(torch.randperm(COUNT).tolist())


class Batches(OfUser):
    def __len__(self):
        return COUNT // 4

    def __iter__(self):
        yield from torch.randperm(COUNT).view(-1, 4).tolist()


class BatchesInIter(Batches):
    def __iter__(self):
        return iter(torch.randperm(COUNT).view(-1, 4).tolist())


def own():
    return torch.Generator().manual_seed(5)


SAMPLERS = {
    "shuffle": lambda _: {"batch_size": 4, "shuffle": True},
    "shuffle, no batches": lambda _: {"batch_size": None, "shuffle": True},
    "a generator": lambda _: {"batch_size": 4, "shuffle": True, "generator": own()},
    "replacement": lambda data: {"batch_size": 3, "sampler": RandomSampler(data, replacement=True)},
    "a subset": lambda _: {"batch_size": 4, "sampler": SubsetRandomSampler(range(7, 30))},
    "weighted": lambda _: {
        "batch_size": 4,
        "sampler": WeightedRandomSampler(torch.ones(COUNT), 20),
    },
    "the user's": lambda data: {"batch_size": 4, "sampler": OfUser(data)},
    "the user's, in iter": lambda data: {"batch_size": 4, "sampler": InIter(data)},
    "the user's, no batches": lambda data: {"batch_size": None, "sampler": OfUser(data)},
    "the user's, in iter, no batches": lambda data: {"batch_size": None, "sampler": InIter(data)},
    "batches of the user's, in iter": lambda data: {"batch_sampler": BatchesInIter(data)},
    "batches of the user's": lambda data: {"batch_sampler": Batches(data)},
    "a batch sampler": lambda data: {
        "batch_sampler": BatchSampler(RandomSampler(data), 3, drop_last=True)
    },
    "sequential": lambda _: {"batch_size": 4},
}
DATASETS = {"native": native, "workers": Python, "the consumer": here}


def zipped(kind, make, sampler, **options):
    """Two loaders that are iterated in turns, twice."""
    loaders = []
    for _ in range(2):
        dataset = make()
        loaders.append(kind(dataset, **sampler(dataset), **options))
    pairs = (pair for _ in range(2) for pair in zip(*loaders, strict=True))
    return [(a[0], b[0], torch.get_rng_state()) for a, b in pairs]


def drawn_between(kind, make, sampler, **options):
    """A loader whose iterator is made before other draws."""
    dataset = make()
    loader = kind(dataset, **sampler(dataset), **options)
    taken = []
    for _ in range(2):
        iterator = iter(loader)
        drawn = torch.randint(1 << 60, ())
        taken += [(batch[0], drawn, torch.get_rng_state()) for batch in iterator]
    return taken


@functools.cache  # the samples of each dataset are the same
def torchs(sampler, use, number):
    """What torch's loaders give, from a state of the generator that is the same each time."""
    torch.manual_seed(3)
    return use(DataLoader, Python, sampler, num_workers=number)


def assert_same(ours, expected):
    assert len(ours) == len(expected)
    for one, other in zip(ours, expected, strict=True):
        assert all(a.equal(b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("use", [zipped, drawn_between])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)
def test_under_auto_the_order_is_drawn_at_the_first_next(make, sampler, use):
    expected = torchs(sampler, use, 0)
    torch.manual_seed(3)
    assert_same(use(Loader, make, sampler), expected)


@pytest.mark.parametrize("use", [zipped, drawn_between])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("make", [native, Python])
def test_with_a_number_of_workers_it_is_drawn_where_torch_draws_it(make, number, sampler, use):
    expected = torchs(sampler, use, number)
    torch.manual_seed(3)
    assert_same(use(Loader, make, sampler, num_workers=number), expected)


@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)
def test_persistent_workers_draw_each_order_at_the_first_next(make):
    options = {"persistent_workers": True}
    torch.manual_seed(3)
    expected = drawn_between(DataLoader, make, SAMPLERS["shuffle"])
    torch.manual_seed(3)
    ours = drawn_between(Loader, make, SAMPLERS["shuffle"], **options)
    assert [one[0].tolist() for one in ours[:10]] == [one[0].tolist() for one in expected[:10]]
    assert len(ours) == len(expected)


class Failing(OfUser):
    def __iter__(self):
        yield 0
        msg = "no more"
        raise ValueError(msg)


@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)
def test_an_error_of_the_sampler_comes_from_next(make):
    dataset = make()
    iterator = iter(Loader(dataset, 4, sampler=Failing(dataset)))
    with pytest.raises(ValueError, match="no more"):
        next(iterator)
    assert list(iterator) == []


def measured(number):
    os.getpid()
    return number


def epochs_of_pipe(kind, **options):
    loader = kind(IterableWrapper(range(COUNT)).map(measured).shuffle(), 4, **options)
    torch.manual_seed(3)
    batches = [[batch.tolist() for batch in loader] for _ in range(3)]
    return batches, torch.rand(1)


@pytest.mark.parametrize("options", [{}, {"num_workers": 0}, {"num_workers": 1}])
def test_a_datapipe_is_seeded_as_torch_seeds_it(options):
    assert epochs_of_pipe(Loader, **options) == epochs_of_pipe(DataLoader, **options)
