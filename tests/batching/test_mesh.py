"""`Loader(mesh=)`: data-parallel ranks differ; tensor-, context- and pipeline-parallel peers take the same batches."""

import copy
import pickle
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DistributedSampler, IterableDataset, RandomSampler, SequentialSampler

import fastload
from fastload import Loader, PadCollate, TokenBatchSampler
from fastload.batching.device_mesh import replica_of
from fastload.columns import Ragged, Rows
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, Drawing

from .ranks import on_ranks

pytestmark = [MANY_WORKERS]

LENGTHS = torch.randint(1, 20, (COUNT,), generator=torch.Generator().manual_seed(1))
OFFSETS = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])


def columns() -> fastload.Dataset:
    return fastload.Dataset(
        {
            "id": Rows(torch.arange(COUNT)),
            "tokens": Ragged(torch.arange(int(OFFSETS[-1])), OFFSETS),
        }
    )


@pytest.fixture
def mesh_of():
    """Makes the mesh of one rank among those that do not exist."""

    def make(rank, shape, names):
        if dist.is_initialized():
            dist.destroy_process_group()
        world = int(torch.tensor(shape).prod())
        dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        return init_device_mesh("cpu", shape, mesh_dim_names=names)

    yield make
    if dist.is_initialized():
        dist.destroy_process_group()


HYBRID = ("dp_replicate", "dp_shard", "tp")
MESHES: list[tuple[Any, Any, list[tuple[int, int]]]] = [
    ((4,), ("dp",), [(4, rank) for rank in range(4)]),
    ((4,), None, [(4, rank) for rank in range(4)]),
    ((4,), ("workers",), [(4, rank) for rank in range(4)]),
    ((4,), ("tp",), [(1, 0)] * 4),
    ((2, 2), ("dp", "tp"), [(2, 0), (2, 0), (2, 1), (2, 1)]),
    ((2, 2), ("data_parallel", "tensor_parallel"), [(2, 0), (2, 0), (2, 1), (2, 1)]),
    ((2, 2), ("pp", "dp"), [(2, 0), (2, 1)] * 2),
    ((2, 2, 2), HYBRID, [(4, rank // 2) for rank in range(8)]),
    ((2, 2, 2, 2), ("pp", "batch", "cp", "tp"), [(2, rank // 4 % 2) for rank in range(16)]),
    ((2, 3, 2), ("dp_shard", "cp", "dp_replicate"), [(4, r // 6 * 2 + r % 2) for r in range(12)]),
]


@pytest.mark.parametrize(("shape", "names", "want"), MESHES, ids=str)
def test_the_shard_is_the_place_among_data_parallel_dimensions(mesh_of, shape, names, want):
    assert [replica_of(mesh_of(rank, shape, names)) for rank in range(len(want))] == want


def test_a_submesh_counts_for_itself(mesh_of):
    for rank in range(8):
        mesh = mesh_of(rank, (2, 2, 2), HYBRID)
        assert replica_of(mesh["dp_shard"]) == (2, rank // 2 % 2)
        assert replica_of(mesh["dp_replicate", "dp_shard"]) == (4, rank // 2)
        assert replica_of(mesh["dp_replicate", "dp_shard"]._flatten("dp")) == (4, rank // 2)
        assert replica_of(mesh["tp"]) == (1, 0)


def test_meshes_that_do_not_say_who_loads_what_are_refused(mesh_of):
    with pytest.raises(ValueError, match=r"cannot tell .* dimension 'fsdp' .*or pass mesh\['dp'\]"):
        Loader(columns(), mesh=mesh_of(0, (2, 2), ("fsdp", "tp")))
    with pytest.raises(ValueError, match="dimensions of this mesh have no names"):
        Loader(columns(), mesh=mesh_of(0, (2, 2), None))
    with pytest.raises(TypeError, match=r"should be a torch.distributed.*DeviceMesh, but got 2"):
        Loader(columns(), mesh=2)
    mesh_of(3, (4,), ("dp",))
    outside = torch.distributed.device_mesh.DeviceMesh("cpu", [0, 1])
    with pytest.raises(ValueError, match="this process is not part of"):
        Loader(columns(), mesh=outside)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(4))


def test_samplers_with_other_ranks_are_refused(mesh_of):
    mesh = mesh_of(2, (2, 2), ("dp", "tp"))

    def refused(words: str, dataset: Any = None, **options: Any) -> None:
        with pytest.raises(ValueError, match=words):
            Loader(dataset or columns(), mesh=mesh, **options)

    refused("iterable one divides", Stream())
    refused("RandomSampler has no ranks", sampler=RandomSampler(range(COUNT)))  # type: ignore[arg-type]
    of_all: Any = DistributedSampler(range(COUNT))  # type: ignore[arg-type]
    refused("num_replicas=2 and rank=1, but DistributedSampler has .*=4 and rank=2", sampler=of_all)
    planned = TokenBatchSampler(LENGTHS, 40)
    refused("TokenBatchSampler has num_replicas=4 and rank=2", batch_sampler=planned)
    refused("SequentialSampler has num_replicas=1", sampler=SequentialSampler(range(COUNT)))
    alone = mesh["tp"]
    assert len(Loader(columns(), sampler=SequentialSampler(range(3)), mesh=alone)) == 3
    with pytest.raises(ValueError, match="RandomSampler has no ranks"):
        Loader(columns(), sampler=RandomSampler(range(3)), mesh=alone)  # type: ignore[arg-type]


@pytest.mark.parametrize("drop_last", [False, True])
def test_it_makes_the_sampler_that_one_would_write(mesh_of, drop_last):
    mesh = mesh_of(3, (2, 2), ("dp", "tp"))
    options = {"drop_last": drop_last, "sample_mask": True}
    loader: Any = Loader(columns(), 4, shuffle=True, mesh=mesh, collate_fn=PadCollate(), **options)
    sampler = loader.sampler
    assert type(sampler) is DistributedSampler
    assert (sampler.num_replicas, sampler.rank, sampler.shuffle) == (2, 1, True)
    assert (sampler.seed, sampler.drop_last) == (0, drop_last)
    masks = [batch["sample_mask"].tolist() for batch in loader]
    assert masks == [[True] * 4] * 2 + ([] if drop_last else [[True, True, True, False]])
    again = Loader.from_torch(loader)
    assert (again.mesh, again.sampler) == (mesh, sampler)
    seeded = Loader(columns(), mesh=mesh, generator=torch.Generator().manual_seed(4))
    other = Loader(columns(), mesh=mesh, generator=torch.Generator().manual_seed(4))
    assert seeded.sampler.seed == other.sampler.seed != 0
    for make in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        assert make(Loader(list(range(4)), mesh=mesh)).mesh == mesh


def test_states_are_those_of_all_peers_and_go_on_as_the_run_would_have(mesh_of):
    """Whatever the generators of the processes, and whether the epoch is told before or after."""

    def run(loader, epochs, stop=None):
        found = []
        for epoch in epochs:
            loader.sampler.set_epoch(epoch)
            for batch in loader:
                found.append({name: value.tolist() for name, value in batch.items()})
                if len(found) == stop:
                    return found
        return found

    mesh = mesh_of(1, (2, 2), ("dp", "tp"))

    def loader() -> Any:
        return Loader(Drawing(), 2, shuffle=True, mesh=mesh, lane="process")

    torch.manual_seed(1)
    whole = run(loader(), (0, 1, 2))
    steps = len(whole) // 3
    for stop in (1, steps, steps + 2):
        torch.manual_seed(2)
        first = loader()
        seen = run(first, (0, 1), stop)
        state = first.state_dict()
        torch.manual_seed(3)
        second = loader()
        second.load_state_dict(state)
        begun = [{n: v.tolist() for n, v in batch.items()} for batch in second]
        epoch = (stop - 1) // steps
        assert seen + begun == whole[: (epoch + 1) * steps]
        assert run(second, range(epoch + 1, 3)) == whole[(epoch + 1) * steps :]
    first = loader()
    assert run(first, (0,)) == whole[:steps]
    second = loader()
    second.load_state_dict(first.state_dict())  # of the coming epoch, which is told afterwards
    assert run(second, (1, 2)) == whole[steps:]
    assert loader().state_dict() == loader().state_dict()


def meshes() -> dict[str, Any]:
    """Loads an epoch on each rank of a 2 x 2 mesh, each with its own global generators."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(dist.get_rank())
    pad = PadCollate()
    loaders: dict[str, Any] = {
        "native": Loader(columns(), 4, shuffle=True, mesh=mesh, collate_fn=pad, sample_mask=True),
        "submesh": Loader(columns(), 4, mesh=mesh["dp"], collate_fn=pad, sample_mask=True),
        "tokens": Loader(
            columns(), max_tokens=60, length="tokens", shuffle=True, mesh=mesh, sample_mask=True
        ),
        "draws": Loader(Drawing(), 4, shuffle=True, mesh=mesh, lane="process", sample_mask=True),
    }
    found = {}
    for name, loader in loaders.items():
        epochs = [[{k: v.tolist() for k, v in batch.items()} for batch in loader]]
        if name != "tokens":
            loader.sampler.set_epoch(1)
        epochs.append([{k: v.tolist() for k, v in batch.items()} for batch in loader])
        found[name] = epochs
    mask = torch.ones(2, dtype=torch.bool)
    rows = torch.tensor([dist.get_rank()] * 2)
    return {
        "loaders": found,
        "gathered": fastload.gather_masked(rows, mask, group=mesh["dp"].get_group()).tolist(),
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_four_processes_share_the_batches_of_two(tmp_path):
    ranks = on_ranks(tmp_path, [(meshes, 4)])["meshes", 4]
    assert [each["gathered"] for each in ranks] == [[0, 0, 2, 2], [1, 1, 3, 3]] * 2
    for name in ranks[0]["loaders"]:
        one, peer, other, others = (each["loaders"][name] for each in ranks)
        assert one == peer != other == others
        for epoch in range(2):
            assert len(one[epoch]) == len(other[epoch]) > 0
            key = "index" if name == "draws" else "id"
            batches = one[epoch] + other[epoch]
            seen = [
                index
                for batch in batches
                for index, real in zip(batch[key], batch["sample_mask"], strict=True)
                if real
            ]
            assert sorted(seen) == list(range(COUNT))
        assert (one[0] != one[1]) == (name != "submesh")
