"""`torch.distributed.checkpoint`: saved on two ranks, loaded on three."""

import json
import os

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.utils.data import DistributedSampler

from fastload import Loader
from tests.shared.state import columns, taken

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
    spawn = torch.multiprocessing.spawn
    spawn(run, (2, str(tmp_path), 3, False), nprocs=2)
    spawn(run, (3, str(tmp_path), 99, True), nprocs=3)
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(2)).tolist()
    assert seen(tmp_path, 2) + seen(tmp_path, 3) == order
