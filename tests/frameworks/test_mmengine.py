"""MMEngine: a runner trains with a `Loader`, given as it is or made from a configuration."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

import fastload
from tests.shared.compare import MANY_WORKERS

pytest.importorskip("mmengine")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore"),
]

DATA = TensorDataset(torch.arange(30.0).unsqueeze(1), torch.arange(30))


def made(tmp_path: Path, kind: type, train_dataloader: Any) -> tuple[Any, list[list[int]]]:
    """Returns a runner after two epochs, and the labels of its batches."""
    from mmengine.model import BaseModel

    seen: list[list[int]] = []

    class Model(BaseModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, inputs: Any, labels: Any, mode: str) -> Any:
            assert mode == "loss"
            seen.append(labels.tolist())
            return {"loss": self.layer(inputs).mean()}

    runner = kind(
        Model(),
        str(tmp_path),
        train_dataloader=train_dataloader,
        train_cfg={"by_epoch": True, "max_epochs": 2},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.01}},
        default_hooks={"logger": None, "checkpoint": None},
        log_level="ERROR",
        randomness={"seed": 5},
        experiment_name=tmp_path.name,
    )
    runner.train()
    return runner, seen


def test_a_loader_is_iterated_as_it_is(tmp_path):
    from mmengine.runner import Runner

    loader = fastload.Loader(DATA, 4, shuffle=True, memory_budget="64MiB")
    runner, seen = made(tmp_path, Runner, loader)
    assert runner.train_dataloader is loader
    assert "native" in loader.explain()
    assert [sorted(label for batch in seen[at : at + 8] for label in batch) for at in (0, 8)] == [
        list(range(30))
    ] * 2
    assert seen[:8] != seen[8:]


def test_a_configured_loader_becomes_one(tmp_path):
    """Its batches are those of the runner's own, the epochs included."""
    from mmengine.runner import Runner

    class Loading(Runner):  # type: ignore[misc]
        @staticmethod
        def build_dataloader(*args: Any, **options: Any) -> Any:
            built = Runner.build_dataloader(*args, **options)
            return fastload.Loader.from_torch(built, memory_budget="64MiB")

    configuration = {
        "dataset": DATA,
        "batch_size": 4,
        "num_workers": 0,
        "sampler": {"type": "DefaultSampler", "shuffle": True},
        "collate_fn": {"type": "default_collate"},
    }
    _, want = made(tmp_path / "theirs", Runner, configuration)
    runner, seen = made(tmp_path / "ours", Loading, configuration)
    assert type(runner.train_dataloader) is fastload.Loader
    assert seen == want
    assert len(seen) == 16
