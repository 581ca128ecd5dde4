"""Datasets and samplers whose `state_dict` fails: they are iterated as by torch, and their state is not kept."""

import logging
import threading

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler

from fastload import AUTO, Loader
from fastload.resume.worker_state import WorkerState
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, carried, columns, taken, text

pytestmark = [MANY_WORKERS]


class Indices(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index

    def load_state_dict(self, state):
        pass


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        return iter(range(COUNT) if info is None else range(info.id, COUNT, info.num_workers))

    def load_state_dict(self, state):
        pass


def takes_step(self, step):
    return {"step": step}


def unpicklable(self):
    return {"lock": threading.Lock()}


def raises_later(self):
    self.asked = getattr(self, "asked", 0) + 1
    if self.asked > 2:
        raise KeyError(self.asked)
    return {"asked": self.asked}


@pytest.mark.parametrize("lane", ["process", "threads"])
@pytest.mark.parametrize("state_dict", [takes_step, unpicklable, raises_later])
@pytest.mark.parametrize("base", [Indices, Stream])
def test_a_dataset_whose_state_fails(base, state_dict, lane, caplog):
    kind = type("Failing", (base,), {"state_dict": state_dict})

    def make():
        return Loader(kind(), 3, num_workers=2, lane=lane)

    expected = [text(batch) for batch in DataLoader(kind(), 3, num_workers=2)]
    loader = make()
    iterator = iter(loader)
    with caplog.at_level(logging.WARNING, logger="fastload"):
        assert taken(iterator, 5) == expected[:5]
        state = carried(loader.state_dict())
        assert taken(iterator, 99) == expected[5:]
        taken(iter(loader), 99)
    assert state["dataset_state"] is None
    assert caplog.text.count("the state of Failing is not kept") == 1
    other = make()
    other.load_state_dict(state)
    assert taken(iter(other), 99) == expected[5:]


class Checkpointed(Sampler):
    """A sampler with a checkpoint protocol of its own; it draws from the global generator."""

    def __len__(self):
        return COUNT

    def __iter__(self):
        yield from torch.randperm(COUNT).tolist()

    def state_dict(self, num_steps):
        return {"last": num_steps}

    def load_state_dict(self, state):
        raise AssertionError


class Asked(Checkpointed):
    """A sampler whose state fails in the middle of an epoch."""

    state_dict = raises_later


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("base", [Checkpointed, Asked])
def test_a_sampler_whose_state_fails(base, workers, stop, caplog):
    kind = type("Failing", (base,), {})

    def make():
        return Loader(columns(), 4, sampler=kind(), num_workers=workers)

    torch.manual_seed(5)
    expected = [text(batch) for batch in DataLoader(columns(), 4, sampler=kind(), num_workers=0)]
    torch.manual_seed(5)
    loader = make()
    iterator = iter(loader)
    with caplog.at_level(logging.WARNING, logger="fastload"):
        assert taken(iterator, stop) == expected[:stop]
        state = carried(loader.state_dict())
        assert taken(iterator, 99) == expected[stop:]
        taken(iter(loader), 99)
    assert caplog.text.count("the state of Failing is not kept") == 1
    if state["sampler_state"] is not None:  # from before it failed
        return
    torch.manual_seed(6)
    other = make()
    other.load_state_dict(state)
    iterator = iter(other)
    assert taken(iterator, 1) == expected[stop : stop + 1]
    third = make()
    third.load_state_dict(carried(other.state_dict()))
    if other.state_dict()["sampler_state"] is None:
        assert taken(iter(third), 99) == expected[stop + 1 :]
    assert taken(iterator, 99) == expected[stop + 1 :]


def test_the_state_of_a_sampler_is_that_of_its_position_after_it_was_iterated_there():
    class Kept(Checkpointed):
        def __iter__(self):
            for self.at in range(COUNT):
                yield self.at

        def state_dict(self):
            return {"at": self.at}

        at = -1

    loader = Loader(columns(), 4, sampler=Kept(), num_workers=0)
    taken(iter(loader), 2)
    state = carried(loader.state_dict())
    other = Loader(columns(), 4, sampler=Kept(), num_workers=0)
    other.load_state_dict({**state, "sampler_state": None})
    iterator = iter(other)
    taken(iterator, 1)
    assert "11" in str(other.state_dict()["sampler_state"])


@pytest.mark.parametrize("method", ["begin", "moved"])
def test_an_error_around_a_batch_does_not_leave_next_waiting(method, monkeypatch):
    def fails(*_):
        raise KeyError(method)

    monkeypatch.setattr(WorkerState, method, fails)
    loader = Loader(Indices(), 4, num_workers=1, lane="threads", timeout=10)
    with pytest.raises(KeyError, match=method):
        next(iter(loader))
