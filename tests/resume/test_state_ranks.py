"""`state_dict` where the number of ranks changes: each sample once, in the order of the one permutation."""

import pytest
import torch
import torch.testing._internal.distributed.fake_pg
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

from fastload import Loader, PadCollate
from fastload.batching import TokenBatchSampler
from fastload.columns import Ragged
from fastload.columns.dataset import Dataset
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried, columns, taken

pytestmark = [MANY_WORKERS]


def ranks(count, world, size, workers, **options):
    loaders = []
    for rank in range(world):
        sampler = DistributedSampler(range(count), world, rank, seed=5, **options)
        sampler.set_epoch(2)
        loaders.append(Loader(columns(count), size, sampler=sampler, num_workers=workers))
    return loaders


def steps(iterators, number):
    """Returns the indices that all ranks load in so many steps, in the order of the epoch."""
    indices = []
    for _ in range(number):
        batches = [batch for it in iterators for _, batch in taken(it, 1)]
        if batches:
            longest = max(map(len, batches))
            indices += [b[at] for at in range(longest) for b in batches if at < len(b)]
    return indices


def order(count):
    generator = torch.Generator().manual_seed(5 + 2)
    return torch.randperm(count, generator=generator).tolist()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("worlds", [[4, 3, 8, 1], [1, 4], [2, 2, 2], [8, 1, 8], [3, 3, 5]])
@pytest.mark.parametrize("count", [500, 503])
def test_each_sample_comes_once_whatever_the_number_of_ranks(count, worlds, workers):
    state, seen, at = None, [], 0
    for number, world in enumerate(worlds):
        loaders = ranks(count, world, 3, workers)
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        iterators = [iter(loader) for loader in loaders]
        is_last = number == len(worlds) - 1
        seen += steps(iterators, 10_000 if is_last else 5)
        if not is_last:
            states = [carried(loader.state_dict()) for loader in loaders]
            assert len({str(known(each)) for each in states}) == 1  # one rank's is that of all
            state, at = states[0], at + 5 * 3 * world
            assert len(seen) == at
    expected = order(count)
    assert seen[:count] == expected
    padded = seen[count:]
    assert len(padded) < worlds[-1]
    assert padded == expected[: len(padded)]


def known(state):
    return {name: value for name, value in state.items() if name not in ("base_seed", "checksum")}


@pytest.mark.parametrize("stop", [1, 7, 60])
def test_drop_last_drops_less_than_a_sample_for_each_rank(stop):
    loaders = ranks(101, 4, 2, 0, drop_last=True)
    iterators = [iter(loader) for loader in loaders]
    seen = steps(iterators, stop)
    if loaders[0].state_dict()["is_coming"]:
        return
    state = loaders[0].state_dict()
    loaders = ranks(101, 3, 2, 0, drop_last=True)
    for loader in loaders:
        loader.load_state_dict(state)
    seen += steps([iter(loader) for loader in loaders], 1000)
    expected = order(101)
    assert seen == expected[: len(seen)]
    assert 0 <= 101 - len(seen) < 3


def test_a_short_last_batch_does_not_move_the_others():
    loaders = ranks(10, 2, 3, 0)
    iterators = [iter(loader) for loader in loaders]
    assert len(steps(iterators, 2)) == 10
    (other,) = ranks(10, 1, 3, 0)
    other.load_state_dict(loaders[1].state_dict())
    assert taken(iter(other), 9) == []


def test_a_planned_sampler_refuses_another_number_of_ranks():
    lengths = torch.arange(1, 41)

    def make(world):
        sampler = TokenBatchSampler(lengths, 80, seed=3, num_replicas=world, rank=0)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        tokens = Dataset({"tokens": Ragged(torch.arange(int(offsets[-1])), offsets)})
        return Loader(tokens, batch_sampler=sampler, collate_fn=PadCollate(), num_workers=2)

    loader = make(2)
    taken(iter(loader), 2)
    with pytest.raises(ValueError, match=r"world_size=2.*world_size=3.*same number"):
        make(3).load_state_dict(loader.state_dict())


def test_a_state_of_another_ranks_own_order_is_refused():
    """A RandomSampler draws for each rank alone."""
    fake = torch.testing._internal.distributed.fake_pg.FakeStore()
    torch.distributed.init_process_group("fake", rank=1, world_size=4, store=fake)
    try:
        sampler = RandomSampler(range(20))
        loader = Loader(columns(20), 4, sampler=sampler, num_workers=0)
        taken(iter(loader), 2)
        state = loader.state_dict()
        assert (state["world_size"], state["rank"]) == (4, 1)
        loader.load_state_dict(state)
    finally:
        torch.distributed.destroy_process_group()
    torch.distributed.init_process_group("fake", rank=2, world_size=4, store=fake)
    try:
        other = Loader(columns(20), 4, sampler=sampler, num_workers=0)
        with pytest.raises(ValueError, match=r"rank=1.*rank=2.*DistributedSampler"):
            other.load_state_dict(state)
    finally:
        torch.distributed.destroy_process_group()
    with pytest.raises(ValueError, match=r"world_size=4.*world_size=1"):
        loader.load_state_dict(state)


class Cut(BatchSampler):
    """A batch sampler of the user's, which may cut anything."""


def test_a_batch_sampler_of_the_users_keeps_the_number_of_ranks():
    def make(world):
        sampler = DistributedSampler(range(48), world, 0)
        return Loader(columns(48), batch_sampler=Cut(sampler, 2, False))

    loader = make(4)
    iterator = iter(loader)
    taken(iterator, 2)
    state = carried(loader.state_dict())
    with pytest.raises(ValueError, match=r"world_size=4.*world_size=3 ranks; Cut deals"):
        make(3).load_state_dict(state)
    other = make(4)
    other.load_state_dict(state)
    assert taken(iter(other), 99) == taken(iterator, 99)


class Endless:
    """A dataset without a length."""

    def __getitem__(self, index):
        return index


@pytest.mark.parametrize("steps", [0, 2, 5, 6])
def test_the_length_is_that_of_the_samplers_dataset(steps):
    def make(world, rank):
        sampler = DistributedSampler(range(42), world, rank)
        return Loader(Endless(), 4, sampler=sampler, num_workers=0)

    seen = []
    loaders = [make(2, rank) for rank in range(2)]
    for loader in loaders:
        seen += [each for batch in taken(iter(loader), steps) for each in batch[1]]
    state = carried(loaders[0].state_dict())
    for rank in range(3):
        loader = make(3, rank)
        loader.load_state_dict(state)
        seen += [each for batch in taken(iter(loader), 99) for each in batch[1]]
    assert set(seen) == set(range(42))
    assert len(seen) <= 44
