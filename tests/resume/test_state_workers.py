"""`state_dict` with a chosen number of workers, whose samples draw from the generators of their workers."""

import logging
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from fastload import AUTO, Loader
from fastload.resume.loading import restored
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, Drawing, Still, carried, interrupted, resumes, taken, text

pytestmark = [MANY_WORKERS]

BATCHES = (COUNT + 3) // 4


class Everything(Drawing):
    """Draws normal numbers, too, of which generators keep a spare one."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return sample | {"normal": random.gauss(0, 1) + np.random.normal()}


def loader(lane, workers, **options):
    return Loader(Everything(), 4, shuffle=True, lane=lane, num_workers=workers, **options)


@pytest.mark.parametrize("stop", range(BATCHES + 1))
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("lane", ["process", "threads"])
def test_workers_go_on_with_their_generators(lane, workers, stop):
    resumes(lambda: loader(lane, workers), stop)


@pytest.mark.parametrize("every", [1, 2, 5, 17])
@pytest.mark.parametrize("lane", ["process", "threads"])
def test_a_snapshot_now_and_then(lane, every):
    """What was made since the last snapshot is made again and dropped."""

    def make():
        return Loader(
            Everything(60),
            4,
            shuffle=True,
            lane=lane,
            num_workers=2,
            snapshot_every_n_steps=every,
        )

    for stop in (1, 2, 6, 11):
        resumes_from_snapshot(make, stop)


def resumes_from_snapshot(make, stop):
    torch.manual_seed(3)
    first = make()
    state, rest = interrupted(first, stop)
    other = make()
    other.load_state_dict(state)
    iterator = iter(other)
    assert other.state_dict()["_num_yielded"] == stop
    assert taken(iterator, 1) == rest[:1]
    again = carried(other.state_dict())
    assert again["_num_yielded"] == stop + 1
    third = make()
    third.load_state_dict(again)
    assert taken(iter(third), 99) == rest[1:] == taken(iterator, 99)


@pytest.mark.parametrize("stop", [0, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_follow(persistent, stop):
    torch.manual_seed(3)
    first = loader("process", 2, persistent_workers=persistent)
    taken(iter(first), 99)
    state, rest = interrupted(first, stop)
    at = torch.get_rng_state()
    following = carried(first.state_dict())
    expected = taken(iter(first), 99)
    torch.set_rng_state(at)
    other = loader("process", 2, persistent_workers=persistent)
    other.load_state_dict(state)
    assert [taken(iter(other), 99) for _ in range(2)] == [rest, expected]
    other = loader("process", 2, persistent_workers=persistent)
    other.load_state_dict(following)
    assert taken(iter(other), 99) == expected


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("left", [1, 3, BATCHES])
@pytest.mark.parametrize("lane", ["process", "threads"])
def test_persistent_workers_say_where_an_epoch_begins(lane, left, every):
    """Also after an epoch that was left early, in which they made more than was taken."""

    def make():
        return loader(lane, 2, persistent_workers=True, snapshot_every_n_steps=every)

    torch.manual_seed(3)
    first = make()
    taken(iter(first), left)
    iterator = iter(first)
    for stop in range(3):
        state = carried(first.state_dict())
        assert state["_num_yielded"] == stop
        other = make()
        other.load_state_dict(state)
        resumed = iter(other)
        following = taken(iterator, 1)
        assert taken(resumed, 1) == following
    assert taken(resumed, 99) == taken(iterator, 99)


@pytest.mark.parametrize("lane", ["process", "threads"])
def test_persistent_workers_that_do_not_draw_tell_nothing(lane):
    still = Loader(Still(), 4, lane=lane, num_workers=2, persistent_workers=True)
    taken(iter(still), 2)
    iterator = iter(still)
    taken(iterator, 3)
    assert still.state_dict()["workers"] is None


def test_batches_are_torchs():
    """The rest of torch's own run, from where ours is left."""
    torch.manual_seed(3)
    theirs = [text(each) for each in DataLoader(Everything(), 4, shuffle=True, num_workers=2)]
    torch.manual_seed(3)
    ours = loader("process", 2)
    taken(iter(ours), 3)
    other = loader("process", 2)
    other.load_state_dict(ours.state_dict())
    assert taken(iter(other), 99) == theirs[3:]


def test_workers_that_do_not_draw_tell_nothing():
    still = Loader(Still(), 4, shuffle=True, lane="process", num_workers=2)
    iterator = iter(still)
    taken(iterator, 3)
    assert still.state_dict()["workers"] is None


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ({"num_workers": 2}, {"num_workers": 3}, "there were 2 workers, and are 3"),
        (
            {"num_workers": 2, "snapshot_every_n_steps": 0},
            {"num_workers": 2},
            "they were not kept",
        ),
        ({"num_workers": 2}, {"num_workers": AUTO}, "draw from keys of their own"),
        ({"num_workers": AUTO}, {"num_workers": 2}, "draw from the generators of their workers"),
    ],
)
def test_other_random_numbers_are_announced(first, then, words, caplog):
    """The samples themselves are still the same."""
    torch.manual_seed(3)
    ours = Loader(Drawing(), 4, shuffle=True, lane="process", **first)
    iterator = iter(ours)
    taken(iterator, 2)
    state = ours.state_dict()
    rest = [batch["index"] for batch in taken(iterator, 99)]
    other = Loader(Drawing(), 4, shuffle=True, lane="process", **then)
    other.load_state_dict(state)
    with caplog.at_level(logging.WARNING, logger="fastload"):
        assert [batch["index"] for batch in taken(iter(other), 99)] == rest
    assert words in caplog.text


def test_generators_that_were_changed_are_refused():
    ours = loader("process", 1)
    iterator = iter(ours)
    taken(iterator, 1)
    state = carried(ours.state_dict())
    other = loader("process", 1)
    with pytest.raises(ValueError, match="workers"):
        other.load_state_dict(state | {"workers": state["workers"].replace("streams", "strams")})


def test_torchs_own_queues_make_again_what_was_made():
    """Where there are no links of ours, nothing is known of the workers."""
    from fastload.iterators.adapted import stand_in
    from fastload.processes import _QueueIter

    def start(made):
        made._restored = None if made._loaded is None else restored(made, made._loaded)
        iterator = _QueueIter(stand_in(made))
        made._cursor, made._loaded = iterator._cursor, None
        return iterator

    torch.manual_seed(3)
    first = loader("process", 2)
    iterator = start(first)
    taken(iterator, 3)
    state = carried(first.state_dict())
    assert state["_num_yielded"] == 3
    rest = taken(iterator, 99)
    other = loader("process", 2)
    other.load_state_dict(state)
    iterator = start(other)
    assert other.state_dict()["_num_yielded"] == 3
    assert taken(iterator, 99) == rest
