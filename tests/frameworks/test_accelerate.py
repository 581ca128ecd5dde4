"""`fastload.accelerate.install`: prepared loaders keep class, arguments, lane, state and epochs."""

import json
import os
import pickle
import socket
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator, accelerator, data_loader, skip_first_batches
from accelerate.data_loader import DataLoaderDispatcher, prepare_data_loader
from accelerate.state import GradientState
from accelerate.utils import megatron_lm
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import fastload
import fastload.accelerate
from fastload import Loader, PadCollate, TokenBatchSampler, lanes
from fastload.columns import Ragged
from tests.shared.compare import MANY_WORKERS
from tests.shared.repository import ROOT
from tests.shared.state import columns

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore:.*pin_memory")]

LENGTHS = torch.randint(1, 20, (64,), generator=torch.Generator().manual_seed(1))
OFFSETS = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])


@pytest.fixture(autouse=True)
def installed():
    fastload.accelerate.install()
    yield
    fastload.accelerate.uninstall()
    GradientState._reset_state()  # which notes loaders that were left early


def tokens() -> fastload.Dataset:
    return fastload.Dataset({"tokens": Ragged(torch.arange(int(OFFSETS[-1])), OFFSETS)})


def by_tokens(**changes: Any) -> Loader[Any]:
    return Loader(tokens(), max_tokens=64, length="tokens", shuffle=True, **changes)


def firsts(batches: Any) -> list[list[int]]:
    """Returns the first token of each sample, which names it, batch by batch."""
    return [batch["tokens"][:, 0].tolist() for batch in batches]


def planned(epoch: int, **ranks: int) -> list[list[int]]:
    sampler = TokenBatchSampler(LENGTHS, 64, **ranks)
    sampler.set_epoch(epoch)
    return [[int(OFFSETS[index]) for index in batch] for batch in sampler]


def on_rank(loader: Any, rank: int, world: int = 2, **options: Any) -> Any:
    return prepare_data_loader(loader, num_processes=world, process_index=rank, **options)


class Named(Loader[Any]):
    """A class of the user's, with an argument of its own."""

    def __init__(self, dataset: Any, *args: Any, name: str = "", **options: Any) -> None:
        super().__init__(dataset, *args, **options)
        self.name = name


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("skip", [False, True])
def test_class_arguments_and_lane_are_kept(world, skip):
    options = {"memory_budget": "64MiB", "lazy_images": False, "lane": "native"}
    loader = Named(columns(64), 4, shuffle=True, name="mine", **options)
    prepared = on_rank(loader, 0, world)
    if skip:
        prepared = skip_first_batches(prepared, 2)
    base = prepared.base_dataloader
    assert type(base) is Named
    assert isinstance(prepared, Loader)
    assert prepared.name == "mine"
    assert {name: getattr(base, name) for name in options} == options
    assert lanes.choose(base).lane == "native"
    assert not base._depth_is_chosen
    assert repr(base.num_workers) == repr(loader.num_workers)
    assert prepared.stats() == {}
    assert len(list(prepared)) == len(prepared) == 16 // world - 2 * skip
    assert prepared.stats()["batches"] >= len(prepared)


def test_a_loader_that_is_not_prepared_keeps_its_class_when_batches_are_skipped():
    skipped = skip_first_batches(Loader(columns(20), 4, memory_budget="64MiB"), 2)
    assert (type(skipped), skipped.memory_budget) == (Loader, "64MiB")
    assert [batch.tolist() for batch in skipped] == [[*range(n, n + 4)] for n in (8, 12, 16)]


def test_a_subclass_that_makes_its_dataset_becomes_a_loader():
    class OfCount(Loader[int]):
        def __init__(self, count):
            super().__init__(columns(count), 4, memory_budget="64MiB")

    class WithLength(Loader[int]):
        def length(self):
            return 20

    for loader, kind in ((OfCount(20), Loader), (WithLength(columns(20), 4), WithLength)):
        prepared = on_rank(loader, 0, 1)
        assert type(prepared.base_dataloader) is kind
        assert prepared.base_dataloader.memory_budget == loader.memory_budget
        assert [batch.tolist() for batch in prepared] == [batch.tolist() for batch in loader]


@pytest.mark.parametrize("make", [{"sample_mask": True}, {"batch_sampler": "masked"}])
def test_a_mask_of_dispatched_batches_is_refused(monkeypatch, make):
    if "batch_sampler" in make:
        make = {"batch_sampler": TokenBatchSampler(LENGTHS, 64, remainder="mask")}
    loader = Loader(tokens(), collate_fn=PadCollate(), **make)
    monkeypatch.setattr(data_loader, "PartialState", lambda: SimpleNamespace(num_processes=2))
    with pytest.raises(ValueError, match="does not mark what dispatch_batches=True repeats"):
        fastload.accelerate._refuse_dispatched_mask(DataLoaderDispatcher, loader)


def test_iterable_datasets_keep_the_class():
    class Stream(torch.utils.data.IterableDataset[int]):
        def __iter__(self):
            return iter(range(16))

    ranks = [on_rank(Loader(Stream(), 2, lane="threads"), rank) for rank in range(2)]
    assert all(type(each.base_dataloader) is Loader for each in ranks)
    seen = [index for loader in ranks for batch in loader for index in batch.tolist()]
    assert sorted(seen) == list(range(16))


def test_torchs_loaders_stay_torchs():
    loader = DataLoader(range(20), 4)
    for prepared in (on_rank(loader, 0, 1), skip_first_batches(on_rank(loader, 0), 1)):
        assert type(prepared.base_dataloader) is DataLoader
    assert type(skip_first_batches(loader, 1)) is DataLoader


@pytest.mark.parametrize("kind", [DataLoader, Loader])
def test_megatron_has_torchs_loader(monkeypatch, kind):
    args = SimpleNamespace(megatron_dataset_flag=False, micro_batch_size=2, num_micro_batches=2)
    ranks = SimpleNamespace(
        get_data_parallel_world_size=lambda: 1, get_data_parallel_rank=lambda: 0
    )
    monkeypatch.setattr(megatron_lm, "get_args", lambda: args, raising=False)
    monkeypatch.setattr(megatron_lm, "mpu", ranks, raising=False)
    name = "megatron_lm_prepare_data_loader"
    monkeypatch.setattr(accelerator, name, megatron_lm.prepare_data_loader, raising=False)
    fastload.accelerate.uninstall()
    fastload.accelerate.install()
    prepared = accelerator.megatron_lm_prepare_data_loader(
        Accelerator(), kind(range(8), num_workers=0)
    )
    assert type(prepared.base_dataloader) is DataLoader
    assert [batch.tolist() for batch in prepared] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert type(on_rank(Loader(columns(8)), 0, 1).base_dataloader) is Loader


def test_uninstall_leaves_accelerate_as_it_was():
    def parts():
        adapter = data_loader.DataLoaderAdapter
        kinds = data_loader.DataLoaderShard, data_loader.DataLoaderDispatcher
        return (
            dict(data_loader._PYTORCH_DATALOADER_KWARGS),
            data_loader.DataLoader,
            adapter.__init__,
            adapter.load_state_dict,
            *(kind.set_epoch for kind in kinds),
        )

    fastload.accelerate.uninstall()
    before = parts()
    fastload.accelerate.install()
    fastload.accelerate.install()
    assert all(ours != theirs for ours, theirs in zip(parts(), before, strict=True))
    fastload.accelerate.uninstall()
    assert parts() == before
    assert type(on_rank(Loader(columns(8)), 0, 1).base_dataloader) is DataLoader


@pytest.mark.parametrize("dispatch", [False, True])
def test_a_generator_draws_what_it_draws_for_torchs_loader(dispatch):
    """Accelerate leaves it to the sampler alone where it dispatches batches."""

    def epochs(kind: Any) -> list[list[int]]:
        torch.manual_seed(1)
        loader = kind(columns(), 4, shuffle=True, generator=torch.Generator().manual_seed(3))
        prepared = prepare_data_loader(
            loader, num_processes=1, dispatch_batches=dispatch, put_on_device=True
        )
        return [prepared_batch[0].tolist() for _ in range(3) for prepared_batch in prepared]

    assert epochs(Loader) == epochs(DataLoader)


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("skip", [0, 3])
def test_the_epoch_reaches_planned_samplers(dispatch, skip):
    prepared = prepare_data_loader(
        by_tokens(), num_processes=1, dispatch_batches=dispatch, put_on_device=dispatch
    )
    assert isinstance(prepared, DataLoaderDispatcher) == dispatch
    if skip:
        prepared = skip_first_batches(prepared, skip)
    prepared.set_epoch(3)
    assert firsts(prepared) == planned(3)[skip:]
    assert firsts(prepared) == planned(4)[skip:]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_epoch_reaches_planned_samplers_of_shards(rank):
    prepared = on_rank(by_tokens(), rank)
    prepared.set_epoch(2)
    assert firsts(prepared) == planned(2, num_replicas=2, rank=rank)
    skipped = skip_first_batches(prepared, 2)
    assert firsts(skipped) == planned(3, num_replicas=2, rank=rank)[2:]
    skipped.set_epoch(5)
    assert firsts(skipped) == planned(5, num_replicas=2, rank=rank)[2:]


SHARDED = {
    "torch": lambda: Loader(columns(20), 4, sampler=DistributedSampler(range(20), 2, 1)),
    "planned": lambda: Loader(
        tokens(),
        batch_sampler=TokenBatchSampler(LENGTHS, 64, num_replicas=2, rank=1),
        collate_fn=PadCollate(),
    ),
}


@pytest.mark.parametrize("make", SHARDED.values(), ids=SHARDED)
def test_nothing_is_sharded_twice(make):
    with pytest.raises(ValueError, match="deals samples to ranks already"):
        on_rank(make(), 1)
    assert len(list(on_rank(make(), 0, 1))) == len(make())


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("stop", [1, 3, 8])
def test_a_state_goes_on_with_its_epoch(world, stop):
    def run(batches, count=1000):
        return [batch.tolist() for _, batch in zip(range(count), batches, strict=False)]

    def prepared(rank):
        torch.manual_seed(3)
        loader = Loader(columns(64), 8 // world, shuffle=True)
        return on_rank(loader, rank, world, use_seedable_sampler=True, data_seed=5)

    for rank in range(world):
        first = prepared(rank)
        list(first)
        seen = run(first, stop) if stop < 8 else run(first)
        state = pickle.loads(pickle.dumps(first.state_dict()))
        unbroken = prepared(rank)
        list(unbroken)
        whole = run(unbroken)
        assert whole[:stop] == seen
        second = prepared(rank)
        second.load_state_dict(state)
        assert second.state_dict() == state or stop == 8
        if stop < 8:
            assert run(second) == whole[stop:]
        assert run(second) == run(unbroken)


@pytest.mark.parametrize("stop", [3, None])
@pytest.mark.parametrize("world", [1, 2])
def test_a_state_of_planned_batches_goes_on_with_its_epoch(world, stop):
    for rank in range(world):
        ranks = {"num_replicas": world, "rank": rank}
        first = on_rank(by_tokens(), rank, world)
        list(first)
        seen = firsts(batch for _, batch in zip(range(stop or 1000), first, strict=False))
        state = first.state_dict()
        second = on_rank(by_tokens(), rank, world)
        second.load_state_dict(state)
        assert second.iteration == (1 if stop else 2)
        if stop:
            assert seen + firsts(second) == planned(1, **ranks)
        assert firsts(second) == planned(2, **ranks)


def test_a_state_of_another_number_of_processes_is_refused():
    prepared = on_rank(Loader(columns(64), 4), 0)
    next(iter(prepared))
    with pytest.raises(ValueError, match="world_size=2"):
        on_rank(Loader(columns(64), 4), 0, 4).load_state_dict(prepared.state_dict())


def test_prepared_loaders_can_be_pickled():
    prepared = pickle.loads(pickle.dumps(on_rank(Loader(columns(20), 4, memory_budget=1 << 20), 0)))
    assert type(prepared.base_dataloader) is Loader
    assert prepared.memory_budget == 1 << 20


class Doubled(Dataset[torch.Tensor]):
    """Samples that are made in Python."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, 2 * index])


def test_an_accelerator_saves_and_loads_positions(tmp_path):
    def prepared():
        torch.manual_seed(9)
        accelerator = Accelerator(cpu=True)
        loader = accelerator.prepare(by_tokens())
        loader.use_stateful_dataloader = True
        return accelerator, loader

    accelerator, loader = prepared()
    list(loader)
    iterator = iter(loader)
    seen = firsts([next(iterator), next(iterator)])
    accelerator.save_state(tmp_path)
    rest = firsts(iterator)
    assert (tmp_path / "dl_state_dict.bin").exists()
    accelerator, loader = prepared()
    accelerator.load_state(tmp_path)
    assert firsts(loader) == rest
    assert seen + rest == planned(1)
    assert firsts(loader) == planned(2)


PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.frameworks.test_accelerate import *

fastload.accelerate.install()
folder = sys.argv[1]
accelerator = Accelerator(cpu=True)
rank, world = accelerator.process_index, accelerator.num_processes
torch.manual_seed(3)
loader = accelerator.prepare(by_tokens())
shuffled = accelerator.prepare(Loader(Doubled(), 4, shuffle=True, lane="threads"))
loader.use_stateful_dataloader = shuffled.use_stateful_dataloader = True
found = {{"classes": [type(each.base_dataloader).__name__ for each in (loader, shuffled)]}}
list(loader), list(shuffled)
iterators = iter(loader), iter(shuffled)
for _ in range(3):
    for each in iterators:
        next(each)
accelerator.save_state(folder)
accelerator.wait_for_everyone()
found["tokens"] = firsts(iterators[0])
found["shuffled"] = [batch[:, 0].tolist() for batch in iterators[1]]
skipped = skip_first_batches(loader, 2)
skipped.set_epoch(7)
found["skipped"] = firsts(skipped)

torch.manual_seed(5 + rank)
accelerator = Accelerator(cpu=True)
loader = accelerator.prepare(by_tokens())
shuffled = accelerator.prepare(Loader(Doubled(), 4, shuffle=True, lane="threads"))
loader.use_stateful_dataloader = shuffled.use_stateful_dataloader = True
accelerator.load_state(folder)
found["tokens again"] = firsts(loader)
found["shuffled again"] = [batch[:, 0].tolist() for batch in shuffled]
found["next"] = firsts(loader)
dispatched = prepare_data_loader(
    Loader(Doubled(), 4, lane="threads"), dispatch_batches=True, put_on_device=True
)
found["dispatched"] = [batch[:, 0].tolist() for batch in dispatched]
for make in SHARDED.values():
    try:
        accelerator.prepare(make())
    except ValueError:
        continue
    raise SystemExit("sharded twice")
with open(f"{{folder}}/{{rank}}.json", "w") as file:
    json.dump(found, file)
accelerator.end_training()
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_processes_share_the_batches(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(root=str(ROOT)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), str(tmp_path)],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            _, err = process.communicate(timeout=110)
            assert process.returncode == 0, err[-3000:]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for rank, found in enumerate(ranks):
        part = {"num_replicas": 2, "rank": rank}
        assert found["classes"] == ["Loader", "Loader"]
        assert found["tokens"] == found["tokens again"] == planned(1, **part)[3:]
        assert found["shuffled"] == found["shuffled again"] != []
        assert found["skipped"] == planned(7, **part)[2:]
        assert found["next"] == planned(2, **part)
    rest = [index for found in ranks for batch in found["shuffled"] for index in batch]
    assert len(set(rest)) == len(rest) == 64 - 2 * 3 * 4
    dispatched = [index for found in ranks for batch in found["dispatched"] for index in batch]
    assert sorted(dispatched) == list(range(64))
