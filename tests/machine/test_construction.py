"""What a loader reads of the machine, and when: its number of workers is read where one is needed."""

import copy
import json
import os
import pickle
import sys

import pytest
import torch
from torch.utils.data import RandomSampler

from fastload import AUTO, Dataset, Loader
from fastload.columns import Rows
from tests.shared import interpreter

OPENS = """
import json, sys
import torch
from torch.utils.data import Dataset as TorchDataset
from fastload import Dataset, Loader
from fastload.columns import Rows

opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)


class Squares(TorchDataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index * index


def opens(act):
    opened.clear()
    act()
    return list(opened)


list(Loader(Squares(), 2))  # what is imported late is imported now
native = Loader(Dataset(Rows(torch.arange(6))), 2)
assert "lane: consumer" in Loader(Squares(), 2).explain()
print(json.dumps({
    "consumer, constructor": opens(lambda: Loader(Squares(), 2)),
    "consumer, epoch": opens(lambda: list(Loader(Squares(), 2, shuffle=True))),
    "inline, epoch": opens(lambda: list(Loader(Squares(), 2, num_workers=0))),
    "native, constructor": opens(lambda: Loader(Dataset(Rows(torch.arange(6))), 2)),
    "set, constructor": opens(lambda: Loader(Squares(), 2, num_workers=1)),
    "native, workers": opens(lambda: native.num_workers),
    "native, workers again": opens(lambda: native.num_workers),
}))
"""


class Python(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index


def native():
    return Loader(Dataset(Rows(torch.arange(6))), 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the files")
def test_files_of_the_machine_are_read_only_for_a_number_of_workers():
    done = interpreter.run("-c", OPENS)
    assert done.returncode == 0, done.stderr
    opened = json.loads(done.stdout)
    assert "/proc/self/cgroup" in opened.pop("native, workers")
    assert not any(opened.values()), opened


def test_auto_is_the_number_when_it_is_first_read(monkeypatch: pytest.MonkeyPatch):
    before, after = native(), native()
    known = before.num_workers
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(torch.multiprocessing.cpu_count()))
    assert (before.num_workers, after.num_workers) == (known, 1)
    for copied in (pickle.loads(pickle.dumps(before)), copy.deepcopy(before)):
        assert (type(copied.num_workers), copied.num_workers) == (type(AUTO), 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux's")
def test_a_loader_made_before_a_cpu_mask_obeys_it():
    loader, mask = native(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mask)})
    try:
        assert loader.num_workers == 1
    finally:
        os.sched_setaffinity(0, mask)


@pytest.mark.parametrize("read", [False, True])
def test_what_frameworks_read_of_a_loader_says_auto(read):
    """They read its dict, and make another of what they find."""
    loader = native()
    if read:
        assert loader.num_workers >= 1
    assert type(vars(loader)["num_workers"]) is type(AUTO)
    again = Loader(loader.dataset, 2, num_workers=vars(loader)["num_workers"])
    assert again.num_workers == loader.num_workers
    assert type(vars(Loader(Python(), num_workers=1))["num_workers"]) is int


def test_a_number_that_is_set_later_counts():
    loader = native()
    loader.num_workers = 2
    assert (type(loader.num_workers), loader.num_workers) == (int, 2)
    loader.num_workers = type(AUTO)(3)
    assert (type(loader.num_workers), loader.num_workers) == (type(AUTO), 3)


def test_indices_are_taken_ahead_for_all_workers_where_the_user_sees_the_draws():
    """As many as worker processes would be sent, so that the sampler's generator moves alike."""

    def state(lane):
        generator = torch.Generator().manual_seed(0)
        sampler = RandomSampler(Python(), replacement=True, num_samples=320, generator=generator)
        loader = Loader(Python(), 1, sampler=sampler, lane=lane)
        iterator = iter(loader)
        next(iterator)
        drawn = generator.get_state()
        del iterator
        return drawn

    assert torch.equal(state("auto"), state("process"))
