"""Ray: `prepare_data_loader` keeps a loader, whose position is part of a run's checkpoint; Ray Data's batches."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from tests.shared.compare import MANY_WORKERS

pytest.importorskip("ray")
pyarrow = pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.own_sizes,
    pytest.mark.timeout(1200),
    MANY_WORKERS,
]

BEGIN = """
import json, logging, os, signal, sys, tempfile, warnings
from pathlib import Path
warnings.simplefilter("ignore")
os.environ |= {"RAY_DEDUP_LOGS": "0", "RAY_TRAIN_V2_ENABLED": "1", "RAY_USAGE_STATS_ENABLED": "0"}
import ray
import torch
from torch.utils.data import DistributedSampler, TensorDataset
from fastload import Loader, PadCollate
folder = Path(sys.argv[1])
ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
"""

TRAIN = """
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader

def train(options):
    folder = Path(options["folder"])
    rank = ray.train.get_context().get_world_rank()
    dataset = TensorDataset(torch.arange(32))
    sampler = DistributedSampler(dataset, shuffle=True, seed=3)
    made = Loader(dataset, 4, sampler=sampler, memory_budget="64MiB")
    loader = prepare_data_loader(made, move_to_device=False)
    kept = type(loader) is Loader and loader.memory_budget == "64MiB"
    start, checkpoint = 0, ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as saved:
            state = torch.load(Path(saved) / "loader.pt", weights_only=True)
        loader.load_state_dict(state["loader"])
        start = state["epoch"]
    attempt = 0 if checkpoint is None else 1
    for epoch in range(start, 2):
        loader.sampler.set_epoch(epoch)
        for (batch,) in loader:
            with (folder / f"{rank}.jsonl").open("a") as file:
                file.write(json.dumps([attempt, epoch, batch.tolist(), kept]) + "\\n")
            step = loader.state_dict()["_num_yielded"]
            if attempt == 0 and rank == 1 and (epoch, step) == (1, 2):
                os.kill(os.getpid(), signal.SIGKILL)
            with tempfile.TemporaryDirectory() as saved:
                if rank == 0:
                    torch.save({"loader": loader.state_dict(), "epoch": epoch}, Path(saved) / "loader.pt")
                ray.train.report({}, checkpoint=Checkpoint.from_directory(saved) if rank == 0 else None)

TorchTrainer(
    train,
    train_loop_config={"folder": str(folder)},
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
    run_config=RunConfig(
        name="run", storage_path=str(folder / "stored"), failure_config=FailureConfig(max_failures=1)
    ),
).fit()
"""

DATA = """
import pyarrow
from fastload.ray import ArrowCollate
lengths = [index % 7 + 1 for index in range(50)]
table = pyarrow.table({
    "tokens": [list(range(length)) for length in lengths],
    "label": list(range(50)),
    "name": [f"sample {index}" for index in range(50)],
})
state = torch.get_rng_state()
data = ray.data.from_arrow([table.slice(0, 23), table.slice(23)])
collate = ArrowCollate(PadCollate())
batches = data.iter_torch_batches(batch_size=8, collate_fn=collate, prefetch_batches=4)
found = list(batches)
assert torch.equal(torch.get_rng_state(), state)
torch.save(found, folder / "batches.pt")
"""


def run(program: str, folder: Path) -> None:
    """Runs a program on a Ray of its own."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(BEGIN + program))
    command = [sys.executable, str(path), str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_function_of_the_users_gets_samples_without_workers():
    table = pyarrow.table({"tokens": [[1], [2, 3]], "label": [4, 5], "name": ["a", "b"]})
    from fastload.ray import ArrowCollate

    collate = ArrowCollate(lambda samples: (os.getpid(), samples))
    process, samples = collate(table)
    assert process == os.getpid()
    assert [(s["tokens"].tolist(), s["label"].item(), s["name"]) for s in samples] == [
        ([1], 4, "a"),
        ([2, 3], 5, "b"),
    ]


def test_a_run_goes_on_after_a_worker_was_killed(tmp_path):
    """Each rank's batches are those of torch's loader; none that was reported comes again."""
    run(TRAIN, tmp_path)
    dataset = TensorDataset(torch.arange(32))
    for rank in range(2):
        lines = (tmp_path / f"{rank}.jsonl").read_text().splitlines()
        seen: list[Any] = [json.loads(line) for line in lines]
        assert all(kept for *_, kept in seen)
        sampler = DistributedSampler(dataset, 2, rank, shuffle=True, seed=3)
        want = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            want += [
                [epoch, batch.tolist()] for (batch,) in DataLoader(dataset, 4, sampler=sampler)
            ]
        first = [[epoch, batch] for attempt, epoch, batch, _ in seen if attempt == 0]
        second = [[epoch, batch] for attempt, epoch, batch, _ in seen if attempt == 1]
        assert first == want[:6]
        assert second in (want[4:], want[5:])  # the last report may have been under way
        if rank == 0:
            others = len(second)
        assert len(second) == others  # the same place on both ranks


def test_batches_of_ray_data_are_padded(tmp_path):
    run(DATA, tmp_path)
    batches = torch.load(tmp_path / "batches.pt", weights_only=True)
    labels = [label for batch in batches for label in batch["label"].tolist()]
    assert sorted(labels) == list(range(50))  # the order is Ray's
    for batch in batches:
        lengths = [label % 7 + 1 for label in batch["label"].tolist()]
        assert batch["tokens_lengths"].tolist() == lengths
        rows = [torch.arange(length) for length in lengths]
        assert torch.equal(batch["tokens"], torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))
        assert batch["name"] == [f"sample {label}" for label in batch["label"].tolist()]
