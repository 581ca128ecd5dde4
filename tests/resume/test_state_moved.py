"""`state_dict` of one lane that another lane goes on from, and where the consumer takes over from workers."""

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset, Sampler

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import Drawing, Still, carried, columns, interrupted, taken

pytestmark = [MANY_WORKERS]

COUNT = 40


class Kept(Sampler):
    """A sampler with a state."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < COUNT:
            self.at += 1
            yield (self.at - 1) * 7 % COUNT
        self.at = 0

    def __len__(self):
        return COUNT

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def loader(dataset, *, is_kept, **options):
    order = {"sampler": Kept()} if is_kept else {"shuffle": True}
    options = {"snapshot_every_n_steps": 5, **order, **options}
    return Loader(dataset, 4, **options)


def order_of(batches):
    """Returns the indices of each batch, which are all that is alike in all lanes."""
    found = []
    for batch in batches:
        if isinstance(batch, dict):
            found.append(batch["index"][1])
        else:
            found.append(list(map(int, batch)) if isinstance(batch, list) else batch[1])
    return found


OTHERS = {
    "native": lambda kept: loader(columns(COUNT), is_kept=kept, num_workers=2),
    "process": lambda kept: loader(Drawing(COUNT), is_kept=kept, num_workers=2),
    "more processes": lambda kept: loader(Drawing(COUNT), is_kept=kept, num_workers=3),
    "process, AUTO": lambda kept: loader(Drawing(COUNT), is_kept=kept, lane="process"),
    "threads": lambda kept: loader(Drawing(COUNT), is_kept=kept, num_workers=2, lane="threads"),
    "consumer": lambda kept: loader(Still(COUNT), is_kept=kept),
    "inline": lambda kept: loader(Drawing(COUNT), is_kept=kept, num_workers=0),
}


@pytest.mark.parametrize("stop", [3, 7])
@pytest.mark.parametrize("is_kept", [True, False], ids=["sampler with a state", "shuffled"])
@pytest.mark.parametrize(
    ("first", "other"),
    [*(("process", other) for other in OTHERS), ("threads", "threads"), ("threads", "native")],
)
def test_what_was_taken_behind_a_snapshot_is_left_out(first, other, is_kept, stop):
    """A third run goes on, too, where the second is left before its first batch."""
    torch.manual_seed(3)
    begun = OTHERS[first](is_kept)
    iterator = iter(begun)
    taken(iterator, stop)
    state = carried(begun.state_dict())
    rest = order_of(taken(iterator, 99))
    second, third = (OTHERS[other](is_kept) for _ in range(2))
    second.load_state_dict(state)
    iterator = iter(second)
    third.load_state_dict(carried(second.state_dict()))
    assert order_of(taken(iterator, 99)) == rest
    assert order_of(taken(iter(third), 99)) == rest


class Batches(Sampler):
    """A batch sampler that draws from the global generator."""

    def __iter__(self):
        yield from torch.randperm(COUNT).reshape(-1, 4).tolist()

    def __len__(self):
        return COUNT // 4


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_later_epochs_of_a_batch_sampler_that_draws(epoch):
    def made():
        return Loader(Drawing(COUNT), batch_sampler=Batches(), persistent_workers=True)

    torch.manual_seed(3)
    first = made()
    for _ in range(epoch):
        taken(iter(first), 99)
    state, rest = interrupted(first, 3)
    torch.manual_seed(8)
    second = made()
    second.load_state_dict(state)
    assert taken(iter(second), 99) == rest


@pytest.mark.parametrize("lane", ["process", "threads"])
@pytest.mark.parametrize("stop", [0, 1])
def test_epochs_follow_a_consumer_that_took_over(lane, stop):
    def made():
        return Loader(Drawing(COUNT), 4, shuffle=True, lane=lane, persistent_workers=True)

    torch.manual_seed(3)
    first = made()
    iterator = iter(first)
    taken(iterator, 1)
    iterator.take_over()
    taken(iterator, 99)
    iterator = iter(first)
    taken(iterator, stop)
    state, generator = carried(first.state_dict()), torch.get_rng_state()
    rest = [taken(iterator, 99), taken(iter(first), 99)]
    second = made()
    second.load_state_dict(state)
    torch.set_rng_state(generator)
    assert [taken(iter(second), 99) for _ in range(2)] == rest


class Stream(IterableDataset):
    """A stream with a state, of which one sample cannot be sent by a worker."""

    def __init__(self, unsendable):
        self.at = self.epoch = 0
        self.unsendable = unsendable

    def __iter__(self):
        while self.at < COUNT:
            self.at += 1
            made = self.at - 1, self.epoch, float(torch.rand(())), float(np.random.random())
            yield made, (lambda: 0) if made[:2] == self.unsendable else None
        self.at = 0
        self.epoch += 1

    def state_dict(self):
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.at, self.epoch = state["at"], state["epoch"]


def samples(batch):
    return list(batch)


@pytest.mark.parametrize("stop", [2, 3, 5])
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_stream_with_a_state_that_a_worker_cannot_send(epoch, stop):
    """The consumer goes on with it from the worker's state, and says its own."""

    def made(unsendable):
        dataset = Stream(unsendable)
        return Loader(dataset, 4, collate_fn=samples, persistent_workers=True)

    def epochs(loaded, count):
        return [[[each[0] for each in batch] for batch in loaded] for _ in range(count)]

    torch.manual_seed(3)
    want = epochs(made(None), 3)
    torch.manual_seed(3)
    first = made((13, epoch))
    assert epochs(first, epoch) == want[:epoch]
    iterator = iter(first)
    for _ in range(stop):
        next(iterator)
    state = carried(first.state_dict())
    rest = [[each[0] for each in batch] for batch in iterator]
    assert rest == want[epoch][stop:]
    assert epochs(first, 2 - epoch) == want[epoch + 1 :]
    second = made((13, epoch))
    second.load_state_dict(state)
    assert epochs(second, 3 - epoch) == [rest, *want[epoch + 1 :]]
