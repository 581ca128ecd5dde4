"""Runs that torchrun starts: on another number of ranks within an epoch, and Hugging Face's Trainer on two."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from fastload import Loader
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS
from tests.shared.repository import ROOT
from tests.shared.state import COUNT, Drawing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), MANY_WORKERS]


def torchrun(ranks: int, program: Path, *arguments: Any) -> None:
    """Runs a program on ranks of this machine, and waits for its end."""
    launch = ["-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    ranked = [f"--nproc-per-node={ranks}", program, *map(str, arguments)]
    with patch.dict(os.environ, {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}):
        done = interpreter.run(*launch, *ranked, folder=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]


ELASTIC = """
import json, sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from fastload import Loader
from tests.shared.state import Drawing

folder, stop = Path(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo")
torch.manual_seed(0)
sampler = DistributedSampler(Drawing(), seed=5)
loader = Loader(Drawing(), 2, sampler=sampler, sample_mask=True)
checkpoint, first = folder / "checkpoint.pt", 0
if checkpoint.exists():
    saved = torch.load(checkpoint, weights_only=True)
    loader.load_state_dict(saved["loader"])
    torch.set_rng_state(saved["generator"])  # from which later epochs draw
    first = saved["epoch"]
log = (folder / f"{dist.get_world_size()}-{dist.get_rank()}").open("w")
steps = 0
for epoch in range(first, 3):
    sampler.set_epoch(epoch)
    for batch in loader:
        for index, drawn, own in zip(*(value.tolist() for value in batch.values()), strict=True):
            if own:
                print(json.dumps([epoch, index, drawn]), file=log)
        steps += 1
        if steps == stop:
            if dist.get_rank() == 0:
                state = {"loader": loader.state_dict(), "generator": torch.get_rng_state()}
                torch.save(state | {"epoch": epoch}, checkpoint)
            dist.barrier()
            dist.destroy_process_group()
            raise SystemExit
dist.barrier()
dist.destroy_process_group()
"""


def test_four_ranks_go_on_as_two_within_an_epoch(tmp_path):
    """Each sample counts once in each epoch, with the random numbers of one process that is not interrupted."""
    program = tmp_path / "program.py"
    program.write_text(ELASTIC)
    of_epoch = -(-COUNT // 4 // 2)
    torchrun(4, program, tmp_path, of_epoch + 2)  # in the second of three epochs
    torchrun(2, program, tmp_path, -1)
    lines = [
        json.loads(line) for log in tmp_path.glob("[42]-*") for line in log.read_text().splitlines()
    ]
    torch.manual_seed(0)
    alone = Loader(Drawing(), 2)
    want = []
    for epoch in range(3):
        for batch in alone:
            want += [
                [epoch, *each]
                for each in zip(batch["index"].tolist(), batch["drawn"].tolist(), strict=True)
            ]
    assert sorted(lines) == want


TRAINER = """
import json, sys
from pathlib import Path

import torch

from fastload import Loader
from tests.frameworks.test_transformers_trainer import Training, dataset, trainer


class Masked(Training):
    loader_options = {"memory_budget": "64MiB", "sample_mask": True}

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.counted = []

    def compute_loss(self, model, inputs, **options):
        mask = inputs.pop("sample_mask", None)
        if mask is not None:  # otherwise prediction_step has taken it out
            self.counted.append(inputs["labels"][mask].tolist())
        return super().compute_loss(model, inputs, **options)

    def prediction_step(self, model, inputs, *args, **options):
        inputs.pop("sample_mask")
        return super().prediction_step(model, inputs, *args, **options)


folder = Path(sys.argv[1])
options = {"save_steps": 4, "save_strategy": "steps", "eval_strategy": "no", "ddp_backend": "gloo"}
found = {}
for kind in ("columns", "python"):
    data = dataset(kind)
    unbroken = trainer(Masked, folder / kind, data, **options)
    base = unbroken.get_train_dataloader().base_dataloader
    unbroken.train()
    predicted = unbroken.predict(data)
    again = trainer(Masked, folder / kind, data, **options)
    again.train(resume_from_checkpoint=str(folder / kind / "checkpoint-4"))
    found[kind] = {
        "class": [type(base).__name__, base.memory_budget, base.sample_mask],
        "seen": [labels for is_training, labels in unbroken.model.seen if is_training],
        "counted": unbroken.counted[:14],
        "predicted": predicted.label_ids.tolist(),
        "predictions": len(predicted.predictions),
        "again": [labels for is_training, labels in again.model.seen if is_training],
        "weights": [each.model.layer.weight.tolist() for each in (unbroken, again)],
    }
(folder / f"found-{unbroken.args.process_index}").write_text(json.dumps(found))
torch.distributed.destroy_process_group()  # Gloo's threads may abort an interpreter that ends before them
"""


def test_a_trainer_on_two_ranks_sees_all_samples_and_counts_each_once(tmp_path):
    """Accelerate repeats three samples in the last step of an epoch; these do not count."""
    program = tmp_path / "program.py"
    program.write_text(TRAINER)
    torchrun(2, program, tmp_path)
    of_ranks = [json.loads((tmp_path / f"found-{rank}").read_text()) for rank in range(2)]
    for kind in ("columns", "python"):
        ranks = [found[kind] for found in of_ranks]
        for found in ranks:
            assert found["class"] == ["Loader", "64MiB", True]
            assert found["predicted"] == list(range(53))
            assert found["predictions"] == 53
            assert found["again"] == found["seen"][4:] != []
            assert found["weights"][0] == found["weights"][1] == ranks[0]["weights"][0]
        for epoch in range(2):
            steps = slice(7 * epoch, 7 * epoch + 7)
            assert {len(found["seen"][steps]) for found in ranks} == {7}
            seen, counted = (
                [label for found in ranks for labels in found[name][steps] for label in labels]
                for name in ("seen", "counted")
            )
            assert len(seen) == 56
            assert sorted(counted) == list(range(53))
