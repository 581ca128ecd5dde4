"""Loaders that Lightning and ignite build anew keep their class, extras, ranks and what nobody chose."""

import inspect
import json
import subprocess
import sys
import textwrap
import warnings
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

import fastload
from fastload.batching import BucketBatchSampler, PackBatchSampler, TokenBatchSampler
from fastload.columns import Ragged
from tests.shared.compare import MANY_WORKERS
from tests.shared.repository import ROOT

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning
    from ignite.distributed import auto_dataloader
    from ignite.engine.deterministic import DeterministicEngine

LENGTHS = torch.randint(1, 20, (60,), generator=torch.Generator().manual_seed(1))
OFFSETS = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])
STAGES = ("fit", "validate", "test", "predict")


def tokens() -> fastload.Dataset:
    return fastload.Dataset({"tokens": Ragged(torch.arange(int(OFFSETS[-1])), OFFSETS)})


def by_tokens(**changes: Any) -> fastload.Loader[Any]:
    """Returns a loader whose batches are planned from a budget of tokens."""
    return fastload.Loader(tokens(), max_tokens=64, length="tokens", **changes)


class Model(lightning.LightningModule):
    """Notes the first token of each sample, which names it."""

    def __init__(self, make: Any = None) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen: list[list[int]] = []
        self.make = make

    def _step(self, batch: Any, _: int) -> Any:
        self.seen.append(batch["tokens"][:, 0].tolist())
        return self.layer(torch.ones(1, 1)).sum()

    training_step = validation_step = test_step = predict_step = _step

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.05)


class Hooked(Model):
    """Makes its loader in hooks, where Lightning notes the arguments."""

    def _loader(self) -> Any:
        return self.make()

    train_dataloader = val_dataloader = test_dataloader = predict_dataloader = _loader


class TrainingHooked(Hooked):
    """Without the hook for validation, which fit would run as well."""

    val_dataloader = None  # type: ignore[assignment]
    validation_step = None  # type: ignore[assignment]


def trainer(**options: Any) -> lightning.Trainer:
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    return lightning.Trainer(
        accelerator="cpu", **{"devices": 1, "max_epochs": 1, **quiet, **options}
    )


def run(stage: str, where: str, make: Any) -> tuple[list[list[int]], Any]:
    """Returns the samples of each batch, and the loader that Lightning iterated."""
    run = trainer()
    if where == "hook":
        model = (TrainingHooked if stage == "fit" else Hooked)(make)
        getattr(run, stage)(model)
    else:
        model = Model()
        model.validation_step = None if stage == "fit" else model._step  # type: ignore[assignment]
        getattr(run, stage)(model, make())
    loops = {"fit": run.fit_loop, "predict": run.predict_loop}
    loop: Any = loops.get(stage) or (run.validate_loop if stage == "validate" else run.test_loop)
    return model.seen, loop._combined_loader.flattened[0]


@pytest.mark.parametrize("where", ["hook", "argument"])
@pytest.mark.parametrize("stage", STAGES)
def test_lightning_keeps_batches_of_a_token_budget(stage, where):
    seen, loader = run(stage, where, lambda: by_tokens(memory_budget="64MiB"))
    want = [[int(OFFSETS[index]) for index in batch] for batch in by_tokens().batch_sampler]
    assert seen == want
    assert type(loader) is fastload.Loader
    assert (loader.max_tokens, loader.length, loader.memory_budget) == (64, "tokens", "64MiB")
    assert not loader._depth_is_chosen


@pytest.mark.parametrize("where", ["hook", "argument"])
def test_lightning_hands_a_default_depth_back_as_one(where):
    def make() -> Any:
        return fastload.Loader(tokens(), batch_size=4, collate_fn=fastload.PadCollate())

    _, loader = run("predict", where, make)
    assert not loader._depth_is_chosen
    assert (loader.prefetch_factor, repr(loader.num_workers)) == (2, repr(make().num_workers))
    chosen = fastload.Loader(
        tokens(), batch_size=4, collate_fn=fastload.PadCollate(), prefetch_factor=2
    )
    _, loader = run("predict", where, lambda: chosen)
    assert loader._depth_is_chosen


def test_ignite_hands_a_default_depth_back_as_one():
    made = []
    engine = DeterministicEngine(lambda engine, batch: made.append(engine.state.dataloader))
    loader = fastload.Loader(
        tokens(), 4, shuffle=True, collate_fn=fastload.PadCollate(), memory_budget="64MiB"
    )
    engine.run(loader, max_epochs=1)
    rebuilt = made[0]
    assert rebuilt is not loader
    assert type(rebuilt) is fastload.Loader
    assert rebuilt.memory_budget == "64MiB"
    assert not rebuilt._depth_is_chosen


def test_ignite_keeps_batches_of_a_token_budget():
    seen: list[int] = []
    engine = DeterministicEngine(lambda _, batch: seen.extend(batch["tokens"][:, 0].tolist()))
    engine.run(by_tokens(shuffle=True), max_epochs=1)
    assert sorted(seen) == sorted(OFFSETS[:-1].tolist())


def test_a_loader_is_made_of_the_one_that_ignite_makes():
    data = torch.utils.data.TensorDataset(LENGTHS)
    torch.manual_seed(3)
    made = auto_dataloader(data, batch_size=4, shuffle=True, num_workers=1)
    loader = fastload.Loader.from_torch(made, num_workers=fastload.AUTO)
    seen = []
    for each in (made, loader):
        torch.manual_seed(3)
        seen.append([batch[0].tolist() for batch in each])
    assert seen[0] == seen[1] != [batch.tolist() for batch in LENGTHS.split(4)]


RUNS = [(where, stage) for where in ("hook", "argument") for stage in ("fit", "predict")]
PROGRAM = """
import sys, json, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {root!r})
from tests.frameworks.test_rebuilt_loaders import *

seen = []
for where, stage in RUNS:
    run = trainer(devices=2, strategy="ddp", use_distributed_sampler=True)
    model = (TrainingHooked if stage == "fit" else Hooked)(lambda: by_tokens(shuffle=True))
    if where == "hook":
        getattr(run, stage)(model)
    else:
        model = Model()
        model.validation_step = None if stage == "fit" else model._step
        getattr(run, stage)(model, by_tokens(shuffle=True))
    seen.append(model.seen)
with open(f"{{sys.argv[1]}}/{{run.global_rank}}.json", "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture(scope="module")
def lightnings_processes(tmp_path_factory):
    """Returns the samples of each batch, for each rank of two and each of the runs: to start two processes takes long."""
    folder = tmp_path_factory.mktemp("ranks")
    program = folder / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(root=str(ROOT)))
    command = [sys.executable, str(program), str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", range(len(RUNS)), ids=map("-".join, RUNS))
def test_lightnings_processes_share_the_batches(lightnings_processes, number):
    ranks = [seen[number] for seen in lightnings_processes]
    assert len(ranks[0]) == len(ranks[1])
    batches = [
        TokenBatchSampler(LENGTHS, 64, num_replicas=2, rank=rank, shuffle=True) for rank in range(2)
    ]
    want = [[[int(OFFSETS[i]) for i in batch] for batch in sampler] for sampler in batches]
    assert ranks == want


SAMPLERS = {
    "tokens": lambda **options: TokenBatchSampler(LENGTHS, 64, **options),
    "buckets": lambda **options: BucketBatchSampler(LENGTHS, 4, **options),
    "packing": lambda **options: PackBatchSampler(LENGTHS, 64, **options),
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_a_planned_sampler_takes_a_frameworks_sampler(make):
    ranks = DistributedSampler(range(60), num_replicas=3, rank=2)
    assert list(make(sampler=ranks)) == list(make(num_replicas=3, rank=2))
    assert list(make(sampler=SequentialSampler(range(60)))) == list(make(shuffle=False))
    own = make(num_replicas=3, rank=1)
    assert list(make(sampler=own.sampler)) == list(make(num_replicas=3, rank=1))
    with pytest.raises(TypeError, match="should be a DistributedSampler"):
        make(sampler=[1, 2])


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_public_attributes_of_a_planned_sampler_are_arguments(make):
    sampler = make()
    attributes = {name for name in vars(sampler) if name[0] != "_"} - {"batch_size"}
    assert attributes <= set(inspect.signature(type(sampler)).parameters)


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_a_planned_sampler_says_that_it_is_sharded(make):
    batches = make(num_replicas=3, rank=2, seed=5)
    loader = fastload.Loader(tokens(), batch_sampler=batches, collate_fn=fastload.PadCollate())
    assert isinstance(loader.sampler, DistributedSampler)
    sampler: Any = loader.sampler
    assert (sampler.num_replicas, sampler.rank, sampler.seed) == (3, 2, 5)
    assert (sampler.shuffle, sampler.drop_last, sampler.total_size) == (True, False, 60)
    assert sampler.num_samples == len(sampler) == len(list(sampler))
    sampler.set_epoch(4)
    assert (batches.epoch, sampler.epoch) == (4, 4)
    assert isinstance(DataLoader(tokens(), batch_sampler=batches).sampler, SequentialSampler)
