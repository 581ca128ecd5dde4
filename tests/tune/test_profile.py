"""Profiles: what a loader starts from, and what is said of broken ones and of those from elsewhere."""

import dataclasses
import logging
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

import fastload
from fastload import AUTO, Profile
from fastload.machine.auto import Auto
from fastload.tune.machine import Machine
from fastload.tune.profile import Data
from tests.shared.compare import MANY_WORKERS, Plain

pytestmark = MANY_WORKERS

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def rows(count=400):
    return TensorDataset(torch.arange(count))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fastload.toml"


@given(measured=st.dictionaries(st.text(), VALUES, max_size=4))
def test_a_profile_is_read_as_it_was_written(tmp_path_factory, measured):
    path = tmp_path_factory.mktemp("profile") / "fastload.toml"
    data = Data.of(rows())
    written = Profile(3, 7, memory_budget=1 << 20, data=data, measured=measured)
    written.save(path)
    assert Profile.load(path) == written


@pytest.mark.parametrize(("lane", "workers"), [("native", 1), ("process", 4), ("inline", 0)])
def test_settings_that_are_not_given_are_left_out(path, lane, workers):
    Profile(workers, 2, lane).save(path)
    assert "memory_budget" not in path.read_text()
    assert Profile.load(path) == Profile(workers, 2, lane)


def broken(path, **changes):
    """Writes a profile with some lines changed, or taken out."""
    Profile(2, 4).save(path)
    lines = path.read_text().splitlines()
    for key, line in changes.items():
        lines = [line if each.startswith(f"{key} =") else each for each in lines]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"workers": ""}, "[settings] has no key 'workers'"),
        ({"workers": "workers = 'two'"}, "workers should be int, but got 'two'"),
        ({"workers": "workers = true"}, "workers should be int, but got True"),
        ({"workers": "workers = -1"}, "workers should be at least 0, but got -1"),
        ({"workers": "workers = 0"}, "workers=0 does not go with lane='native': inline has none"),
        ({"depth": "depth = 0"}, "depth should be at least 1, but got 0"),
        ({"depth": "depth = 3\ndeepth = 4"}, "[settings] has an unknown key 'deepth'"),
        ({"lane": "lane = 'fast'"}, "lane should be one of"),
        ({"cores": "cores = 'many'"}, "[machine] cores should be int, but got 'many'"),
        ({"cores": ""}, "[machine] has no key 'cores'"),
    ],
)
def test_a_broken_profile_is_one_clear_sentence(path, changes, sentence):
    with pytest.raises(ValueError, match="is broken") as caught:
        fastload.Loader(rows(), tune=str(broken(path, **changes)))
    message = str(caught.value)
    assert message.startswith(f"the profile {path} is broken: {sentence}")
    assert message.endswith(f"write it anew with 'python -m fastload.tune TARGET -o {path}'")


@pytest.mark.parametrize("text", ["", "[settings]", "workers = 2", "settings = 3"])
def test_a_file_of_something_else(path, text):
    path.write_text(text)
    with pytest.raises(ValueError, match="is broken"):
        fastload.Loader(rows(), tune=path)


@pytest.mark.parametrize("content", [b"[settings\n", b"\xff\xfe", b"\x00"])
def test_a_file_that_is_no_toml(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not TOML"):
        fastload.Loader(rows(), tune=path)


def test_a_file_that_is_not_there(path):
    with pytest.raises(
        FileNotFoundError, match=f"the profile {path}: No such file.*; write one with "
    ):
        fastload.Loader(rows(), tune=path)


@pytest.mark.parametrize("tune", [None, 3, b"fastload.toml"])
def test_tune_is_a_truth_value_or_a_profile(tune):
    with pytest.raises(TypeError, match=r"tune should be True, False, a fastload\.Profile"):
        fastload.Loader(rows(), tune=tune)


def test_a_loader_starts_from_it(path):
    Profile(3, 5, memory_budget=1 << 20).save(path)
    ours = fastload.Loader(rows(), batch_size=8, tune=path)
    assert (ours.num_workers, type(ours.num_workers)) == (3, Auto)
    assert [batch.tolist() for (batch,) in ours] == [
        list(range(first, first + 8)) for first in range(0, 400, 8)
    ]
    assert (ours.tuner.workers, ours.tuner.depth) == (3, 5)
    assert ours._budget_bytes == 1 << 20


def test_arguments_win_over_it():
    profile = Profile(3, 5, memory_budget=1 << 20)
    ours = fastload.Loader(rows(), num_workers=2, prefetch_factor=2, memory_budget=99, tune=profile)
    assert (ours.num_workers, ours._budget_bytes) == (2, 99)
    list(ours)
    assert (ours.tuner.workers, ours.tuner.depth) == (2, 4)


def test_a_pickled_loader_keeps_it():
    ours = pickle.loads(pickle.dumps(fastload.Loader(rows(), tune=Profile(3, 5))))
    assert ours.num_workers == 3
    assert ours.tune == Profile(3, 5)


def test_it_may_name_the_inline_lane():
    ours = fastload.Loader(list(range(4)), tune=Profile(0, 1, "inline"))
    assert ours.num_workers == 0
    assert [batch.item() for batch in ours] == [0, 1, 2, 3]


class Noisy(torch.utils.data.Dataset):
    """Samples that cost too much to be cheap by their code, and draw."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return index + float(torch.rand(()))


class Drawn(torch.utils.data.Sampler):
    """An order whose draws can be seen from outside."""

    def __iter__(self):
        return iter(torch.randperm(40).tolist())

    def __len__(self):
        return 40


@pytest.mark.parametrize("sampler", [None, Drawn()])
@pytest.mark.parametrize("dataset", [Noisy(), rows(40)])
def test_the_inline_lane_loads_in_the_training_thread(caplog, dataset, sampler):
    ours = fastload.Loader(
        dataset, batch_size=4, sampler=sampler, tune=Profile(0, 1, "inline", data=Data.of(dataset))
    )
    with caplog.at_level(logging.WARNING, "fastload"):
        torch.manual_seed(3)
        batches = list(ours)
    assert caplog.records == []
    assert (ours.num_workers, len(batches)) == (0, 10)
    assert ours.explain().startswith("lane: consumer")
    torch.manual_seed(3)
    theirs = list(fastload.Loader(dataset, batch_size=4, sampler=sampler))
    assert str(batches) == str(theirs)


def test_an_explanation_says_that_the_profile_has_chosen():
    inline, threads = (
        fastload.Loader(dataset, tune=Profile(workers, 1, lane)).explain().splitlines()
        for dataset, workers, lane in (
            (rows(), 0, "inline"),
            (Plain(torch.arange(4)), 1, "threads"),
        )
    )
    assert (
        "why: native code could make the batches, and the profile in tune= names the inline lane"
        in inline
    )
    assert "to make it native: leave the profile out of tune=" in inline
    (why,) = [line for line in threads if line.startswith("why: ")]
    assert why.endswith(", and the profile in tune= names this lane")


def test_a_lane_that_is_insisted_on_has_workers_whatever_the_profile_says():
    ours = fastload.Loader(rows(), batch_size=8, lane="native", tune=Profile(0, 1, "inline"))
    assert ours.num_workers > 0
    assert len(list(ours)) == 50


@pytest.mark.parametrize("lane", ["process", "threads"])
def test_it_may_name_a_lane_of_python(lane):
    ours = fastload.Loader(Plain(torch.arange(4)), tune=Profile(1, 2, lane))
    assert fastload.lanes.choose(ours).lane == lane
    assert [batch.item() for batch in ours] == [0, 1, 2, 3]


def test_a_native_dataset_stays_native():
    assert fastload.lanes.choose(fastload.Loader(rows(), tune=Profile(1, 2, "threads"))).lane == (
        "native"
    )


def test_an_iterable_dataset_has_one_worker():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    ours = fastload.Loader(Stream(), tune=Profile(4, 8, "process"))
    assert ours.num_workers == 1


def warned(caplog, profile, **options):
    with caplog.at_level(logging.WARNING, "fastload"):
        ours = fastload.Loader(rows(), batch_size=8, tune=profile, **options)
        for _ in range(2):
            list(ours)
    return [record.getMessage() for record in caplog.records]


def test_nothing_is_said_where_it_was_made(caplog):
    ours = fastload.Loader(rows())
    data = Data.of(rows(), fastload.lanes.choose(ours).program)
    assert data.sample
    assert warned(caplog, Profile(1, 2, data=data)) == []


@pytest.mark.parametrize(
    ("machine", "data", "words"),
    [
        ({"cores": 99}, {}, "cores 99, here "),
        ({"memory_bytes": 10**9}, {}, "1.0 GB of memory, here "),
        ({"cpu": "Zuse Z3"}, {}, "cpu Zuse Z3, here "),
        ({"torch": "0.4"}, {}, "torch 0.4, here "),
        ({}, {"length": 5}, "5 samples, here 400 samples"),
        ({}, {"length": -1}, "no length, here 400 samples"),
        ({}, {"kind": "list"}, "a dataset list, here torch.utils.data.dataset.TensorDataset"),
        ({}, {"sample": "uint8 (3,)"}, "samples of uint8 (3,), here int64 ()"),
    ],
)
def test_what_differs_is_said_once(caplog, machine, data, words):
    here = dataclasses.replace(Machine.here(), **machine)
    there = dataclasses.replace(Data.of(rows()), **data)
    (line,) = warned(caplog, Profile(1, 2, machine=here, data=there))
    assert words in line
    assert line.startswith("the profile does not match this run (")


def test_another_lane_is_said(caplog):
    (line,) = warned(caplog, Profile(1, 2, "process"))
    assert "the process lane, here native" in line


def test_a_profile_of_here_is_not_jumped_away_from():
    """Its settings were measured; a formula does not know better."""
    ours = fastload.Loader(rows(), tune=Profile(2, 4))
    list(ours)
    assert ours._profile_fits
    elsewhere = dataclasses.replace(Machine.here(), cores=99)
    ours = fastload.Loader(rows(), tune=Profile(2, 4, machine=elsewhere))
    list(ours)
    assert not ours._profile_fits


def test_auto_is_left_alone_without_one():
    assert fastload.Loader(rows(), tune=True).num_workers == AUTO
