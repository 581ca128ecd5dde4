"""Fabric, which rebuilds loaders for several ranks, sets their epoch and saves what has a state."""

import json
import subprocess
import sys
import textwrap
import warnings
from typing import Any

import pytest
import torch

import fastload
from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.repository import ROOT
from tests.shared.state import columns

from .test_rebuilt_loaders import LENGTHS, OFFSETS, TokenBatchSampler, by_tokens

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from lightning.fabric import Fabric


def fabric(**options: Any) -> Fabric:
    return Fabric(accelerator="cpu", **{"devices": 1, **options})


def shuffled() -> Loader[Any]:
    return Loader(columns(40), 4, shuffle=True, memory_budget="64MiB")


def planned() -> Loader[Any]:
    return by_tokens(shuffle=True, memory_budget="64MiB")


MAKES = {"shuffled": shuffled, "planned": planned}


def firsts(batches: Any) -> list[list[int]]:
    """Returns the samples of each batch, by their first number."""
    return [
        (batch["tokens"][:, 0] if isinstance(batch, dict) else batch).tolist() for batch in batches
    ]


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_class_arguments_and_batches_are_kept(make):
    prepared: Any = fabric().setup_dataloaders(make())
    inner = prepared._dataloader
    assert (type(inner), inner.memory_budget) == (Loader, "64MiB")
    assert not inner._depth_is_chosen
    torch.manual_seed(3)
    seen = [firsts(prepared) for _ in range(2)]
    torch.manual_seed(3)
    plain = make()
    assert seen == [firsts(plain) for _ in range(2)]
    assert seen[0] != seen[1]


def test_a_loader_that_was_set_up_is_monitored():
    prepared: Any = fabric().setup_dataloaders(shuffled())
    with fastload.monitor(prepared) as monitor:
        batches = len(list(prepared))
    assert monitor is prepared._dataloader.monitor
    assert monitor.summary().startswith(f"{batches} steps")


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_a_checkpoint_goes_on_whatever_epoch_is_set(make, tmp_path):
    torch.manual_seed(3)
    run = fabric()
    prepared = run.setup_dataloaders(make())
    list(prepared)
    iterator = iter(prepared)
    first = firsts([next(iterator), next(iterator)])
    run.save(tmp_path / "state", {"loader": prepared})
    rest = firsts(iterator)
    torch.manual_seed(4)
    run = fabric()
    again = run.setup_dataloaders(make())
    run.load(tmp_path / "state", {"loader": again})
    assert firsts(again) == rest != []
    assert first + rest != firsts(make())


PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {root!r})
from tests.frameworks.test_fabric import *

folder = sys.argv[1]
run = fabric(devices=2, strategy="ddp")
run.launch()
found = {{}}
for name, make in MAKES.items():
    run.seed_everything(3, verbose=False)
    prepared = run.setup_dataloaders(make())
    inner = prepared._dataloader
    assert (type(inner), inner.memory_budget) == (Loader, "64MiB")
    whole = [firsts(prepared) for _ in range(2)]
    prepared = run.setup_dataloaders(make())
    list(prepared)
    iterator = iter(prepared)
    next(iterator), next(iterator)
    run.save(f"{{folder}}/{{name}}", {{"loader": prepared}})
    rest = firsts(iterator)
    again = run.setup_dataloaders(make())
    run.load(f"{{folder}}/{{name}}", {{"loader": again}})
    found[name] = whole, rest, firsts(again)
marked = run.setup_dataloaders(Loader(columns(41), 4, sample_mask=True))
assert marked._dataloader.sample_mask
gathered = [run.all_gather(batch) for batch in marked]
counted = [index for rows, mask in gathered for index in rows[mask].tolist()]
assert sorted(counted) == list(range(41)), counted
with open(f"{{folder}}/{{run.global_rank}}.json", "w") as file:
    json.dump(found, file)
# a thread of gloo that lets go of the last tensors while the interpreter ends would end the process
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_ranks_share_the_batches(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(root=str(ROOT)))
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for rank, found in enumerate(ranks):
        for whole, rest, again in found.values():
            assert whole[1][2:] == rest == again != []
        sampler = TokenBatchSampler(LENGTHS, 64, num_replicas=2, rank=rank)
        for epoch in found["planned"][0]:
            assert epoch == [[int(OFFSETS[index]) for index in batch] for batch in sampler]
    for epoch in range(2):
        seen = [
            index for found in ranks for batch in found["shuffled"][0][epoch] for index in batch
        ]
        assert sorted(seen) == list(range(40))
