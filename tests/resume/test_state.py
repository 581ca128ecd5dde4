"""What a state is: plain values that every file carries, checked when it is loaded."""

import copy
import gc
import io
import json
import os
import pickle
import threading
import timeit

import psutil
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.utils.data import RandomSampler, WeightedRandomSampler

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, Drawing, Still, carried, columns, resumes, taken

pytestmark = [MANY_WORKERS]


def loader(**options):
    options = {"shuffle": True, "num_workers": 2, **options}
    return Loader(columns(), 4, **options)


def left(count, **options):
    """Returns a loader that was left after some batches, and what would have come."""
    torch.manual_seed(3)
    made = loader(**options)
    iterator = iter(made)
    taken(iterator, count)
    return made, iterator


def through_torch(state):
    file = io.BytesIO()
    torch.save(state, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


@pytest.mark.parametrize("options", [{}, {"generator": torch.Generator()}, {"shuffle": False}])
def test_a_default_device_does_not_change_it(options):
    torch.manual_seed(3)
    made = loader(**options)
    expected = made.state_dict()
    with torch.device("meta"):
        assert made.state_dict() == expected


@pytest.mark.parametrize(
    "carry",
    [carried, lambda state: pickle.loads(pickle.dumps(state)), through_torch, copy.deepcopy],
    ids=["json", "pickle", "weights_only", "deepcopy"],
)
@pytest.mark.parametrize("generator", [False, True])
def test_files_carry_it(carry, generator):
    def options():
        return {"generator": torch.Generator().manual_seed(4)} if generator else {}

    made, iterator = left(2, **options())
    state = carry(made.state_dict())
    rest = taken(iterator, 99)
    other = loader(**options())
    other.load_state_dict(state)
    assert taken(iter(other), 99) == rest


@pytest.mark.filterwarnings("ignore")
def test_distributed_checkpoint_carries_it(tmp_path):
    made, iterator = left(2)
    dcp.save({"loader": made}, checkpoint_id=tmp_path, no_dist=True)
    rest = taken(iterator, 99)
    other = loader()
    dcp.load({"loader": other}, checkpoint_id=tmp_path, no_dist=True)
    assert taken(iter(other), 99) == rest


def test_keys_are_the_same_at_all_times():
    made = loader()
    keys = [list(made.state_dict())]
    iterator = iter(made)
    keys.append(list(made.state_dict()))
    taken(iterator, 3)
    keys.append(list(made.state_dict()))
    taken(iterator, 99)
    keys.append(list(made.state_dict()))
    weighted = Loader(columns(), sampler=WeightedRandomSampler([1.0] * COUNT, 5), num_workers=0)
    keys.append(list(weighted.state_dict()))
    assert all(each == keys[0] for each in keys)


def test_it_is_small_and_takes_no_time():
    """At most 20 µs; the least of several, for machines are busy."""
    made, _ = left(2)
    assert len(json.dumps(made.state_dict())) < 1024
    assert len(pickle.dumps(made.state_dict())) < 1024
    assert min(timeit.repeat(made.state_dict, number=100, repeat=20)) / 100 < 20e-6


@pytest.mark.parametrize("begun", [False, True])
def test_it_draws_and_starts_nothing(begun):
    made = loader(lane="process") if begun else loader()
    iterator = iter(made) if begun else None
    torch_state, threads = torch.get_rng_state(), threading.active_count()
    children = psutil.Process().children()
    for _ in range(1000):
        made.state_dict()
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert threading.active_count() == threads
    assert psutil.Process().children() == children
    del iterator


def test_an_old_state_does_not_change():
    made, iterator = left(1)
    state = made.state_dict()
    kept = copy.deepcopy(state)
    state["_index_sampler_state"]["samples_yielded"] = 77
    assert made.state_dict() == kept
    taken(iterator, 2)
    assert carried(made.state_dict()) != kept
    state = copy.deepcopy(kept)
    other = loader()
    other.load_state_dict(state)
    state["_num_yielded"] = 5
    assert other.state_dict() == kept
    other.state_dict()["_num_yielded"] = 5
    assert other.state_dict() == kept


def test_saved_and_loaded_and_saved_it_is_equal():
    made, _ = left(2)
    state, threads = made.state_dict(), threading.active_count()
    for _ in range(50):
        other = loader()
        other.load_state_dict(state)
        assert other.state_dict() == state
        iterator = iter(other)
        assert other.state_dict() == state
        del iterator
        state = other.state_dict()
    gc.collect()
    assert threading.active_count() <= threads  # an idle thread of earlier may have ended


def test_fifty_resumes_are_one_run():
    torch.manual_seed(3)
    made = Loader(columns(200), 4, shuffle=True, num_workers=2)
    expected = taken(iter(made), 99)
    torch.manual_seed(3)
    made, got = Loader(columns(200), 4, shuffle=True, num_workers=2), []
    for _ in range(50):
        got += taken(iter(made), 1)
        state = carried(made.state_dict())
        made = Loader(columns(200), 4, shuffle=True, num_workers=2)
        made.load_state_dict(state)
    assert got == expected


def test_the_iterator_that_was_started_last_counts():
    made = loader()
    first, second = iter(made), iter(made)
    taken(first, 3)
    assert made.state_dict()["_num_yielded"] == 0
    taken(second, 2)
    assert made.state_dict()["_num_yielded"] == 2
    del second
    gc.collect()
    assert made.state_dict()["_num_yielded"] == 2


def test_break_leaves_the_place():
    torch.manual_seed(3)
    made, seen = loader(), []
    for batch in made:
        seen += batch.tolist()
        if len(seen) == 12:
            break
    other = loader()
    other.load_state_dict(made.state_dict())
    for batch in other:
        seen += batch.tolist()
    assert sorted(seen) == list(range(COUNT))


@pytest.mark.parametrize("persistent", [False, True])
def test_loading_while_iterating_acts_at_the_next_iterator(persistent):
    made, iterator = left(2, persistent_workers=persistent)
    state = made.state_dict()
    rest = taken(iterator, 2)
    made.load_state_dict(state)
    assert made.state_dict() == state
    further = taken(iterator, 1)
    assert taken(iter(made), 3) == rest + further


def test_an_empty_state_begins_anew():
    made, _ = left(2)
    state = made.state_dict()
    made.load_state_dict(state)
    made.load_state_dict({})
    assert made.state_dict()["is_coming"]
    assert len(taken(iter(made), 99)) == 6


def test_a_forked_child_has_the_place_of_its_parent():
    made, _ = left(2)
    state = made.state_dict()
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(write, json.dumps(made.state_dict()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert json.loads(os.read(read, 65536)) == state


def test_a_copied_loader_has_no_iterator():
    made, _ = left(2)
    assert pickle.loads(pickle.dumps(made)).state_dict()["is_coming"]


def test_len_is_the_whole_epochs():
    made, _ = left(2)
    other = loader()
    other.load_state_dict(made.state_dict())
    iterator = iter(other)
    assert len(other) == len(iterator) == 6


CHANGES = {
    "version": (99, "version 99"),
    "is_coming": (True, "changed"),
    "is_drawn": (False, "changed"),
    "base_seed": (5, "changed"),
    "epoch": (3, "changed"),
    "sampler_epoch": (3, "changed"),
    "sampler_seed": (3, "changed"),
    "sampler_generator": ("x", "changed"),
    "origin_batches": (3, "changed"),
    "origin_samples": (3, "changed"),
    "batch_size": (8, "batch_size=8.*batch_size=4"),
    "drop_last": (True, "drop_last=True.*drop_last=False"),
    "length": (29, "length=29.*length=23"),
    "sampler": ("SequentialSampler()", r"SequentialSampler\(\).*RandomSampler"),
    "world_size": (2, "world_size=2.*world_size=1"),
    "rank": (1, "rank=1.*rank=0"),
    "num_workers": (7, "changed"),
    "snapshot_every_n_steps": (7, "changed"),
    "draws_from": ("caller", "changed"),
    "workers": ("x", "workers"),
    "bad_samples": ([1], "bad_samples"),
    "to_come": (["x"], "to_come"),
    "from_workers": ([1, "x"], "from_workers"),
    "checksum": (3, "changed"),
    "loader_generator": ("x", "'x' is no generator"),
    "sampler_state": ([1], r"sampler_state=\[1\]"),
    "dataset_state": ([{}, {}], "dataset_state="),
    "_num_yielded": (-1, "_num_yielded=-1"),
    "_sampler_iter_yielded": (None, "_sampler_iter_yielded=None"),
    "_index_sampler_state": (None, "_index_sampler_state=None"),
    "_iterator_finished": (None, "_iterator_finished=None"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_was_changed_is_refused(name):
    made, _ = left(2)
    value, words = CHANGES[name]
    with pytest.raises(ValueError, match=words):
        loader().load_state_dict(made.state_dict() | {name: value})


def test_every_key_is_needed():
    made, _ = left(2)
    state = made.state_dict()
    assert set(CHANGES) | {"next_worker"} == set(state)
    for name in state:
        part = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=name):
            loader().load_state_dict(part)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Loader(columns(29), 4, shuffle=True), "length=23.*length=29"),
        (lambda: Loader(columns(), 8, shuffle=True), "batch_size=4.*batch_size=8"),
        (lambda: Loader(columns(), 4, shuffle=True, drop_last=True), "drop_last"),
        (lambda: Loader(columns(), 4), "RandomSampler.*SequentialSampler"),
        (
            lambda: Loader(columns(), 4, sampler=RandomSampler(range(COUNT), True)),
            "replacement=False.*replacement=True",
        ),
    ],
)
def test_another_loader_is_refused(make, words):
    made, _ = left(2)
    other = make()
    expected = other.state_dict()
    with pytest.raises(ValueError, match=words):
        other.load_state_dict(made.state_dict())
    assert other.state_dict() == expected


def test_a_state_of_torchdatas_is_refused():
    for state in ({"_snapshot": {}, "_steps_since_snapshot": 0}, {"fetcher_state": None}):
        with pytest.raises(ValueError, match="torchdata"):
            loader().load_state_dict(state)
    with pytest.raises(TypeError, match="state_dict returned"):
        loader().load_state_dict([1])


def test_a_negative_number_of_steps_is_refused():
    with pytest.raises(ValueError, match="snapshot_every_n_steps"):
        loader(snapshot_every_n_steps=-1)


def test_batches_one_by_one_and_an_empty_dataset():
    resumes(lambda: Loader(Still(), None, shuffle=True, num_workers=0), 3)
    resumes(lambda: Loader(Drawing(), None, lane="process"), 3)
    empty = Loader(columns(0), 4, num_workers=0)
    state = empty.state_dict()
    assert taken(iter(empty), 9) == []
    empty.load_state_dict(state)
    assert taken(iter(empty), 9) == []


def test_what_accelerate_changes_is_honoured():
    """It takes back the batches that a dispatcher has fetched for other processes, and marks the end."""
    made, iterator = left(4)
    state = made.state_dict()
    for name in ("_num_yielded", "_sampler_iter_yielded"):
        state[name] -= 2
    state["_index_sampler_state"]["samples_yielded"] -= 8
    other = loader()
    other.load_state_dict(state)
    assert taken(iter(other), 99)[2:] == taken(iterator, 99)
    state["_iterator_finished"] = True
    other.load_state_dict(state)
    assert len(taken(iter(other), 99)) == 6
