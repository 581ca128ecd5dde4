"""`state_dict` in every lane: a run that is interrupted anywhere goes on as if it had not been."""

import pytest
import torch

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, Drawing, Still, carried, columns, resumes, taken

pytestmark = [MANY_WORKERS]

BATCHES = (COUNT + 3) // 4
STOPS = range(BATCHES + 1)


def native(**options):
    options = {"num_workers": 2, "shuffle": True, **options}
    return Loader(columns(), 4, lane="native", **options)


def process(**options):
    return Loader(Drawing(), 4, shuffle=True, lane="process", **options)


def inline():
    return Loader(Still(), 4, shuffle=True, num_workers=0)


def threads():
    return Loader(Drawing(), 4, shuffle=True, lane="threads")


def consumer():
    return Loader(Still(), 4, shuffle=True)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("make", [native, process, inline, threads, consumer])
def test_the_rest_is_the_same(make, stop):
    resumes(make, stop)


@pytest.mark.parametrize("stop", [0, 1, 3, BATCHES])
@pytest.mark.parametrize(
    ("options", "others"),
    [
        ({"num_workers": 1}, {"num_workers": 8}),
        ({"num_workers": 8}, {"num_workers": 1}),
        ({"prefetch_factor": 1}, {"prefetch_factor": 16}),
        ({"prefetch_factor": 16}, {"prefetch_factor": 1}),
        ({"memory_budget": 1}, {}),
    ],
)
def test_threads_depth_and_budget_may_differ(options, others, stop):
    resumes(lambda: native(**options), stop, again=lambda: native(**others))


def test_keyed_samples_may_go_on_in_another_lane():
    resumes(process, 2, again=threads)
    resumes(threads, 3, again=process)


def test_batches_that_were_made_ahead_are_made_again():
    torch.manual_seed(0)
    loader = native(prefetch_factor=16)
    iterator = iter(loader)
    first = taken(iterator, 1)
    state = carried(loader.state_dict())
    assert state["_num_yielded"] == 1
    other = native()
    other.load_state_dict(state)
    everything = first + taken(iter(other), 100)
    indices = sorted(index for _, batch in everything for index in batch)
    assert indices == list(range(COUNT))


def test_nothing_that_was_skipped_is_read():
    torch.manual_seed(0)
    loader = Loader(Drawing(), 4, shuffle=True, num_workers=0)
    iterator = iter(loader)
    taken(iterator, 4)
    state = loader.state_dict()
    before = list(loader.dataset.asked)
    other = Loader(Drawing(), 4, shuffle=True, num_workers=0)
    other.load_state_dict(state)
    taken(iter(other), 100)
    assert len(other.dataset.asked) == COUNT - 16
    assert set(other.dataset.asked).isdisjoint(before)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("make", [native, process])
def test_epochs_follow_as_in_one_run(make, persistent):
    """Two epochs, and two in another loader, are four epochs of one."""
    torch.manual_seed(5)
    loader = make(persistent_workers=persistent)
    for _ in range(2):
        taken(iter(loader), 100)
    state = carried(loader.state_dict())
    generator = torch.get_rng_state()
    expected = [taken(iter(loader), 100) for _ in range(2)]
    torch.set_rng_state(generator)
    other = make(persistent_workers=persistent)
    other.load_state_dict(state)
    assert [taken(iter(other), 100) for _ in range(2)] == expected


@pytest.mark.parametrize("make", [native, process, inline])
def test_the_next_epoch_is_the_same_though_generators_have_moved(make):
    torch.manual_seed(5)
    loader = make()
    taken(iter(loader), 100)
    state = loader.state_dict()
    expected = taken(iter(loader), 100)
    torch.manual_seed(8)
    other = make()
    other.load_state_dict(state)
    assert taken(iter(other), 100) == expected


def test_the_state_of_the_last_batch_is_followed_by_an_empty_epoch():
    torch.manual_seed(5)
    loader = native()
    iterator = iter(loader)
    assert len(taken(iterator, BATCHES)) == BATCHES
    other = native()
    other.load_state_dict(loader.state_dict())
    assert taken(iter(other), 100) == []
    assert len(taken(iter(other), 100)) == BATCHES


def test_a_batch_that_raises_is_taken():
    class Broken(Still):
        def __getitem__(self, index):
            if index == 9:
                msg = "nine"
                raise ValueError(msg)
            return index

    for workers in (0, 2):
        loader = Loader(Broken(), 4, num_workers=workers)
        iterator = iter(loader)
        taken(iterator, 2)
        with pytest.raises(ValueError, match="nine"):
            next(iterator)
        state = loader.state_dict()
        assert state["_num_yielded"] == 3
        other = Loader(Broken(), 4, num_workers=workers)
        other.load_state_dict(state)
        assert taken(iter(other), 100) == taken(iterator, 100) != []


def test_a_native_batch_that_raises_is_taken():
    indices = [[0, 1], [2, 99], [3, 4], [5, 6]]
    loader = Loader(columns(), batch_sampler=indices, num_workers=2, lane="native")
    iterator = iter(loader)
    taken(iterator, 1)
    with pytest.raises(IndexError):
        next(iterator)
    other = Loader(columns(), batch_sampler=indices, num_workers=2, lane="native")
    other.load_state_dict(loader.state_dict())
    assert (
        taken(iter(other), 9)
        == taken(iterator, 9)
        == [("torch.int64", pair) for pair in ([3, 4], [5, 6])]
    )
