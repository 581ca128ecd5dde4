"""The order of samples, and what is drawn for it: torch's, whatever the sampler."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

import fastload
from fastload import _lib
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same, epochs
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS
COUNT = 70


def dataset(count: int = COUNT) -> fastload.Dataset:
    return fastload.Dataset((Rows(torch.arange(count)), Rows(torch.arange(count).float())))


def seeded(seed: int = 11) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Reversed(Sampler[int]):
    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        return iter(range(COUNT - 1, -1, -1))


class Shouting(RandomSampler):
    """A subclass that changes the order: its exact base would give another one."""

    def __iter__(self) -> Iterator[int]:
        return (index for index in super().__iter__() if index % 2)


class Twice(BatchSampler):
    """A batch sampler of the user's own: each batch comes two times."""

    def __iter__(self) -> Iterator[list[int]]:
        for batch in super().__iter__():
            yield batch
            yield batch


class Eager:
    """Not a Sampler; its `__iter__` draws at once and gives NumPy integers."""

    def __iter__(self) -> Iterator[Any]:
        return iter(torch.randperm(COUNT).numpy())


SAMPLERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "sequential": lambda d: {"sampler": SequentialSampler(d)},
    "random": lambda d: {"sampler": RandomSampler(d)},
    "random, generator": lambda d: {"sampler": RandomSampler(d, generator=seeded())},
    "random, fewer": lambda d: {"sampler": RandomSampler(d, num_samples=23)},
    "random, more": lambda d: {"sampler": RandomSampler(d, num_samples=150)},
    "random, replacement": lambda d: {"sampler": RandomSampler(d, replacement=True)},
    "random, replacement, more, generator": lambda d: {
        "sampler": RandomSampler(d, replacement=True, num_samples=145, generator=seeded())
    },
    "weighted": lambda d: {"sampler": WeightedRandomSampler(torch.arange(COUNT) + 0.5, 90)},
    "weighted, generator": lambda d: {
        "sampler": WeightedRandomSampler([1.0] * COUNT, 40, replacement=False, generator=seeded())
    },
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(3, 60, 2))},
    "subset, generator": lambda d: {"sampler": SubsetRandomSampler([5, 5, 9], generator=seeded())},
    "distributed": lambda d: {"sampler": DistributedSampler(d, num_replicas=3, rank=1)},
    "distributed, drop_last": lambda d: {
        "sampler": DistributedSampler(d, num_replicas=4, rank=3, seed=5, drop_last=True)
    },
    "distributed, not shuffled": lambda d: {
        "sampler": DistributedSampler(d, num_replicas=4, rank=2, shuffle=False)
    },
    "distributed, more ranks than samples": lambda d: {
        "sampler": DistributedSampler(range(3), num_replicas=8, rank=7)
    },
    "own": lambda d: {"sampler": Reversed()},
    "own subclass of torch's": lambda d: {"sampler": Shouting(d)},
    "list": lambda d: {"sampler": [4, -1, 4, 0, -COUNT]},
    "range": lambda d: {"sampler": range(0, COUNT, 3)},
    "array": lambda d: {"sampler": np.arange(5, 50)},
    "tensor": lambda d: {"sampler": torch.arange(5, 50)},
    "shuffle, generator": lambda d: {"shuffle": True, "generator": seeded()},
    "shuffle": lambda d: {"shuffle": True},
    "generator without shuffle": lambda d: {"generator": seeded()},
}


@pytest.mark.parametrize("batching", [{"batch_size": 8}, {"batch_size": 8, "drop_last": True}, {}])
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name: str, batching: dict[str, Any]):
    data = dataset()

    def arguments() -> dict[str, Any]:
        return {**SAMPLERS[name](data), **(batching or {"batch_size": None})}

    want, want_state = epochs(DataLoader, data, arguments, count=3)
    got, got_state = epochs(fastload.Loader, data, lambda: {**arguments(), **SIZES}, count=3)
    assert_same(got, want)
    assert torch.equal(got_state, want_state)


BATCH_SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "torch's": lambda d: BatchSampler(RandomSampler(d), 8, drop_last=False),
    "torch's, drop_last": lambda d: BatchSampler(RandomSampler(d), 8, drop_last=True),
    "over distributed": lambda d: BatchSampler(DistributedSampler(d, 3, 0), 8, drop_last=False),
    "over an own sampler": lambda d: BatchSampler(Reversed(), 8, drop_last=False),
    "own": lambda d: Twice(RandomSampler(d), 8, drop_last=False),
    "lists": lambda d: [[1, 2], [3], [4, 5, 6]],
    "tensors": lambda d: torch.arange(24).reshape(4, 6),
}


@pytest.mark.parametrize("name", BATCH_SAMPLERS)
def test_batch_samplers(name: str):
    data = dataset()

    def arguments() -> dict[str, Any]:
        return {"batch_sampler": BATCH_SAMPLERS[name](data)}

    want, want_state = epochs(DataLoader, data, arguments)
    got, got_state = epochs(fastload.Loader, data, lambda: {**arguments(), **SIZES})
    assert_same(got, want)
    assert torch.equal(got_state, want_state)


def test_a_generator_as_sampler_is_used_up_by_one_epoch():
    data = dataset()

    def arguments() -> dict[str, Any]:
        return {"sampler": (index for index in range(9)), "batch_size": 4}

    want, _ = epochs(DataLoader, data, arguments)
    got, _ = epochs(fastload.Loader, data, lambda: {**arguments(), **SIZES})
    assert [len(epoch) for epoch in want] == [3, 0]
    assert_same(got, want)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_a_sampler_that_draws_before_its_first_index(batch_size: int | None):
    """torch calls `iter(sampler)` two times for the first epoch of an iterator with workers."""
    _lib.park()
    data = dataset()

    def arguments() -> dict[str, Any]:
        return {"sampler": Eager(), "batch_size": batch_size}

    want, want_state = epochs(DataLoader, data, lambda: {**arguments(), "num_workers": 2})
    got, got_state = epochs(fastload.Loader, data, lambda: {**arguments(), **SIZES})
    assert_same(got, want)
    assert torch.equal(got_state, want_state)


def test_set_epoch():
    data = dataset()
    runs = []
    for kind, sizes in ((DataLoader, {}), (fastload.Loader, SIZES)):
        sampler = DistributedSampler(data, num_replicas=2, rank=1)
        loader = kind(data, batch_size=8, sampler=sampler, **sizes)
        run = []
        for epoch in (0, 1, 1, 5):
            sampler.set_epoch(epoch)
            run.append(list(loader))
        runs.append(run)
    assert_same(runs[1], runs[0])
    assert_same(runs[1][1], runs[1][2])
    assert not torch.equal(runs[1][0][0][0], runs[1][1][0][0])


def test_a_batch_sampler_replaced_after_construction():
    """As Ultralytics does: nothing derived from the sampler may be kept from construction."""
    data = dataset()
    loader = fastload.Loader(data, batch_size=8, **SIZES)
    list(loader)
    object.__setattr__(loader, "batch_sampler", [[3, 1], [2]])
    assert [batch[0].tolist() for batch in loader] == [[3, 1], [2]]


def states_of_epochs(kind: type[DataLoader[Any]], **sizes: Any) -> list[Any]:
    """Trains and validates; returns all orders, and the global state after every step."""
    data, steps = dataset(), []
    torch.manual_seed(7)
    train = kind(data, batch_size=8, shuffle=True, **sizes)
    validation = kind(data, batch_size=8, **sizes)
    for _ in range(2):
        for loader in (train, validation):
            iterator = iter(loader)
            steps.append(torch.get_rng_state())
            for batch in iterator:
                steps.append(torch.get_rng_state())
                steps.append(batch)
    return steps


@pytest.mark.parametrize("persistent", [False, True])
def test_draws_of_the_global_generator(*, persistent: bool):
    """One `base_seed` by iterator and one seed by shuffle, drawn when torch's workers draw them."""
    _lib.park()
    want = states_of_epochs(DataLoader, num_workers=2, persistent_workers=persistent)
    got = states_of_epochs(
        fastload.Loader, num_workers=SIZES["num_workers"], persistent_workers=persistent
    )
    assert_same(got, want, "steps")


def test_draws_under_auto_are_those_of_torchs_default():
    assert_same(states_of_epochs(fastload.Loader), states_of_epochs(DataLoader), "steps")


@pytest.mark.parametrize("shuffle", [False, True])
def test_draws_of_a_given_generator(*, shuffle: bool):
    data, runs = dataset(), []
    for kind, sizes in ((DataLoader, {}), (fastload.Loader, SIZES)):
        torch.manual_seed(7)
        untouched = torch.get_rng_state()
        generator = seeded()
        loader = kind(data, batch_size=8, shuffle=shuffle, generator=generator, **sizes)
        runs.append([[list(loader), generator.get_state()] for _ in range(3)])
        assert torch.equal(torch.get_rng_state(), untouched)
    assert_same(runs[1], runs[0])


def test_other_generators_are_left_alone():
    np.random.seed(1)
    random.seed(1)
    before = np.random.get_state()[1].tolist(), random.getstate()
    list(fastload.Loader(dataset(), batch_size=8, shuffle=True, **SIZES))
    list(fastload.Loader(dataset(), batch_size=8, shuffle=True))
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before


class Counted(Sampler[int]):
    """Counts the indices pulled so far."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.pulled = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        for index in range(self.count):
            self.pulled += 1
            yield index


def schedule(kind: type[DataLoader[Any]], data: Any, **sizes: Any) -> list[int]:
    sampler = Counted()
    iterator = iter(kind(data, batch_size=4, sampler=sampler, **sizes))
    return [sampler.pulled, *(sampler.pulled for _ in iterator)]


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
@pytest.mark.parametrize("workers", [1, 2])
def test_indices_are_pulled_on_torchs_schedule(workers: int, factor: int):
    """Not on one that depends on time: what a sampler has seen after k batches is a fact."""
    _lib.park()
    sizes = {"num_workers": workers, "prefetch_factor": factor}
    want = schedule(DataLoader, dataset(), **sizes)
    assert schedule(fastload.Loader, dataset(), **sizes) == want


def replacement_states(kind: type[DataLoader[Any]], data: Any, **sizes: Any) -> list[Any]:
    generator = seeded()
    sampler = RandomSampler(data, replacement=True, num_samples=200, generator=generator)
    iterator = iter(kind(data, batch_size=10, sampler=sampler, **sizes))
    return [[generator.get_state(), batch] for batch in iterator]


def test_a_sampler_that_draws_in_chunks_draws_on_torchs_schedule():
    _lib.park()
    want = replacement_states(DataLoader, dataset(), num_workers=2)
    assert_same(replacement_states(fastload.Loader, dataset(), num_workers=2), want)


def test_persistent_workers_give_one_iterator():
    loader = fastload.Loader(
        dataset(), batch_size=8, shuffle=True, persistent_workers=True, **SIZES
    )
    first = iter(loader)
    next(first)
    assert iter(loader) is first
    assert len(list(first)) == len(loader)  # the epoch began anew
    fresh = fastload.Loader(dataset(), batch_size=8, **SIZES)
    assert iter(fresh) is not iter(fresh)


def outcomes(loader: DataLoader) -> list[Any]:
    """Returns what each `next` gives: values, or the type of the error in their place."""
    seen: list[Any] = []
    iterator = iter(loader)
    while True:
        try:
            seen.append(next(iterator).tolist())
        except StopIteration:
            return seen
        except Exception as error:
            seen.append(type(error))


@pytest.mark.parametrize("bad", ["a", 1.5, None, [0, "b"], 2**70, [[1]], [COUNT], []])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_an_index_that_cannot_be_read_takes_the_place_of_its_batch(bad, place):
    batches: list[Any] = [[number] for number in range(6)]
    batches.insert(place, bad)
    data = fastload.Dataset(Rows(torch.arange(COUNT)))
    want = outcomes(DataLoader(data, batch_sampler=batches))
    assert want[place] in (TypeError, OverflowError, IndexError)
    assert len(want) == 7
    assert outcomes(fastload.Loader(data, batch_sampler=batches, **SIZES)) == want


@pytest.mark.parametrize("bad", ["a", 1.5, None, [0, 1], 2**70, -COUNT - 1])
def test_a_single_index_that_cannot_be_read_takes_the_place_of_its_sample(bad):
    indices = [0, 1, 2, bad, 3, 4, 5]
    data = fastload.Dataset(Rows(torch.arange(COUNT)))
    want = outcomes(DataLoader(data, batch_size=None, sampler=indices))
    assert isinstance(want[3], type)
    assert outcomes(fastload.Loader(data, batch_size=None, sampler=indices, **SIZES)) == want


class Breaking(Sampler[int]):
    """Gives some indices, then raises."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        yield from range(self.count)
        msg = "the list of samples is gone"
        raise OSError(msg)


class Numbers:
    """A dataset in Python, which workers can be sent."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        return index


class Sorted(Numbers):
    """Code that is not read."""

    def __getitem__(self, index: int) -> int:
        return sorted([index])[0]


@pytest.mark.parametrize("count", [0, 3, 8, 30, 33])
@pytest.mark.parametrize(
    ("data", "lane"),
    [
        (fastload.Dataset(Rows(torch.arange(COUNT))), "native"),
        (Numbers(), "auto"),
        (Sorted(), "auto"),
        (Sorted(), "process"),
        (Sorted(), "threads"),
    ],
)
def test_a_samplers_error_comes_behind_the_batches_before_it(data, lane, count):
    want = outcomes(DataLoader(data, batch_size=4, sampler=Breaking(count)))
    assert want == [[*range(at, at + 4)] for at in range(0, count - 3, 4)] + [OSError]
    assert outcomes(fastload.Loader(data, batch_size=4, sampler=Breaking(count), lane=lane)) == want


def test_a_samplers_error_is_raised_behind_what_the_consumer_took_over():
    loader = fastload.Loader(Numbers(), batch_size=4, sampler=Breaking(30), lane="process")
    iterator = iter(loader)
    seen = [next(iterator).tolist()]
    iterator.take_over()
    seen += [next(iterator).tolist() for _ in range(6)]
    with pytest.raises(OSError, match="is gone"):
        next(iterator)
    assert seen == [[*range(at, at + 4)] for at in range(0, 28, 4)]
    assert list(iterator) == []
