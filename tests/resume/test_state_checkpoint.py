"""`torch.distributed.checkpoint`: saved on two ranks, loaded on three; and states of datasets and samplers."""

import io
import json
import os
from functools import partial

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.utils.data import DistributedSampler, IterableDataset, Sampler

from fastload import Loader
from tests.shared.state import carried, columns, taken

pytestmark = [pytest.mark.timeout(180), pytest.mark.filterwarnings("ignore")]

COUNT = 90


def loader(rank, world):
    sampler = DistributedSampler(range(COUNT), world, rank, seed=2)
    return Loader(columns(COUNT), 5, sampler=sampler, num_workers=0)


def run(rank, world, folder, steps, is_saved):
    store = torch.distributed.FileStore(f"{folder}/store{world}", world)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world, store=store)
    torch.manual_seed(1)
    made = loader(rank, world)
    if is_saved:
        dcp.load({"loader": made}, checkpoint_id=f"{folder}/checkpoint")
    iterator = iter(made)
    seen = [indices for _, indices in taken(iterator, steps)]
    if not is_saved:
        dcp.save({"loader": made}, checkpoint_id=f"{folder}/checkpoint")
    with open(f"{folder}/seen{world}-{rank}", "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(seen, file)
    torch.distributed.destroy_process_group()


def seen(folder, world):
    ranks = [json.loads((folder / f"seen{world}-{rank}").read_text()) for rank in range(world)]
    return [
        each for step in zip(*ranks, strict=True) for at in zip(*step, strict=True) for each in at
    ]


@pytest.mark.skipif(os.name != "posix", reason="starts processes")
def test_another_number_of_ranks_goes_on(tmp_path):
    torch.multiprocessing.set_forkserver_preload([__name__])  # imports torch once for all ranks
    start = partial(torch.multiprocessing.start_processes, run, start_method="forkserver")
    start((2, str(tmp_path), 3, False), nprocs=2)
    start((3, str(tmp_path), 99, True), nprocs=3)
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(2)).tolist()
    assert seen(tmp_path, 2) + seen(tmp_path, 3) == order


class Walk:
    """Counts from 0; its state holds a tensor, a list and a dictionary."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < COUNT:
            self.at += 1
            yield self.at - 1
        self.at = 0

    def state_dict(self):
        return {"at": torch.tensor(self.at), "list": [{"at": self.at}], "none": None}

    def load_state_dict(self, state):
        self.at = state["list"][0]["at"]
        assert int(state["at"]) == self.at


class Indices(Walk, Sampler):
    def __len__(self):
        return COUNT


class Stream(Walk, IterableDataset):
    pass


STATEFUL = {
    "sampler": lambda: Loader(columns(COUNT), 5, sampler=Indices()),
    "dataset": lambda: Loader(Stream(), 5, num_workers=0),
    "workers": lambda: Loader(Stream(), 5, num_workers=2),
}


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("kind", STATEFUL)
def test_a_state_of_a_dataset_or_sampler(kind, is_begun, tmp_path):
    """Whether or not the loader that loads it has a state of its own yet."""
    make = STATEFUL[kind]
    first, other = make(), make()
    iterator = iter(first)
    taken(iterator, 3)
    dcp.save({"loader": first}, checkpoint_id=tmp_path, no_dist=True)
    if is_begun:
        taken(iter(other), 1)
    dcp.load({"loader": other}, checkpoint_id=tmp_path, no_dist=True)
    assert str(other.state_dict()) == str(first.state_dict())
    assert taken(iter(other), 99) == taken(iterator, 99) != []


def test_other_files():
    class Plain(Indices):
        def state_dict(self):
            return {"list": [{"at": self.at}], "at": self.at}

    def make():
        return Loader(columns(COUNT), 5, sampler=Plain())

    loader = make()
    iterator = iter(loader)
    taken(iterator, 3)
    state = loader.state_dict()
    rest = taken(iterator, 99)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    for loaded in (torch.load(file, weights_only=True), carried(state)):
        other = make()
        other.load_state_dict(loaded)
        assert other.state_dict() == state
        assert taken(iter(other), 99) == rest
