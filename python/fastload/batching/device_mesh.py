"""The shard of a rank in a `torch.distributed.device_mesh.DeviceMesh`.

Only ranks that differ in a data-parallel dimension take different batches; tensor-, context- and pipeline-parallel
peers take the same ones. Owns which dimensions are which, and the seed that peers share without communicating.
Creates no process group.
"""

import operator
from typing import Any, NamedTuple

import torch
from torch.utils.data import DistributedSampler, IterableDataset, SequentialSampler

from fastload.batching.layers import dealer_of, innermost
from fastload.batching.planned import PlannedBatchSampler

__all__ = ["Shard", "base_seed_of", "check", "sampler_of", "shard_of"]

_DATA = frozenset({"dp", "dp_replicate", "dp_shard", "data_parallel", "batch"})
_MODEL = frozenset(
    {"tp", "cp", "sp", "pp"}
    | {f"{kind}_parallel" for kind in ("tensor", "context", "sequence", "pipeline")}
)
_UINT64 = (1 << 64) - 1


class Shard(NamedTuple):
    """The samples of a rank.

    Attributes:
        num_replicas: Number of shards.
        rank: This rank's shard, from 0.
    """

    num_replicas: int
    rank: int


def shard_of(mesh: Any) -> Shard:
    """Returns the shard of this process: its place among the data-parallel dimensions, the first one outermost.

    Raises:
        TypeError: Not a `DeviceMesh`.
        ValueError: A dimension of which the name does not tell what it divides, or a mesh without this process.
    """
    if not hasattr(mesh, "get_coordinate"):
        msg = f"mesh should be a torch.distributed.device_mesh.DeviceMesh, but got {mesh!r}"
        raise TypeError(msg)
    place = mesh.get_coordinate()
    if place is None:
        msg = f"mesh: this process is not part of {mesh}: pass the mesh that its rank is in"
        raise ValueError(msg)
    names = mesh.mesh_dim_names or (None,) * mesh.ndim
    if mesh.ndim == 1 and names[0] not in _MODEL:
        return Shard(mesh.size(), place[0])
    shard = Shard(1, 0)
    for name, size, at in zip(names, mesh.shape, place, strict=True):
        if name in _DATA:
            shard = Shard(shard.num_replicas * size, shard.rank * size + at)
        elif name not in _MODEL:
            known = ", ".join(sorted(_DATA | _MODEL))
            msg = (
                f"mesh: whether ranks along dimension {name!r} of {mesh} load different samples is unknown (known: "
                f"{known}): pass the one-dimensional mesh of the ranks that do, such as mesh['dp']"
            )
            raise ValueError(msg)
    return shard


def sampler_of(
    shard: Shard,
    dataset: Any,
    *,
    shuffle: bool,
    generator: torch.Generator | None,
    drop_last: bool,
) -> DistributedSampler[Any]:
    """Returns the sampler of a shard; its seed is 0, or drawn from the generator.

    Raises:
        ValueError: An iterable dataset.
    """
    if isinstance(dataset, IterableDataset):
        msg = "mesh= is for map-style datasets: an iterable one divides its samples among the ranks itself"
        raise ValueError(msg)
    seed = 0 if generator is None else _drawn(generator)
    return DistributedSampler(dataset, *shard, shuffle=shuffle, seed=seed, drop_last=drop_last)


def check(loader: Any) -> None:
    """Refuses samples that are not divided as the loader's mesh says.

    Raises:
        ValueError: They are not.
    """
    shard = shard_of(loader.mesh)
    found = _shard_of_sampler(loader)
    if found == shard:
        return
    sampler = innermost(loader._index_sampler)
    ranks = "no ranks" if found is None else f"num_replicas={found[0]} and rank={found[1]}"
    msg = (
        f"mesh= gives this process num_replicas={shard.num_replicas} and rank={shard.rank}, but "
        f"{type(sampler).__qualname__} has {ranks}: leave sampler and batch_sampler out, or make them with those ranks"
    )
    raise ValueError(msg)


def base_seed_of(loader: Any) -> int | None:
    """Returns the `base_seed` that peers share: of their sampler's seed and epoch; None to draw it as torch does.

    Drawn from the user's generator, if there is one, which is then in the same state on all peers.
    """
    if loader.mesh is None or loader.generator is not None:
        return None
    sampler = innermost(loader._index_sampler)
    numbers = (getattr(sampler, name, None) for name in ("seed", "epoch"))
    seed, epoch = (number if isinstance(number, int) else 0 for number in numbers)
    return _drawn(torch.Generator().manual_seed((seed + epoch) & _UINT64))


def _drawn(generator: torch.Generator) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def _shard_of_sampler(loader: Any) -> Shard | None:
    """Returns how the samples of a loader are divided; None if nothing says so."""
    if (dealer := dealer_of(loader._index_sampler)) is not None:
        return Shard(int(dealer.num_processes), int(dealer.process_index))
    sampler = innermost(loader._index_sampler)
    if isinstance(sampler, PlannedBatchSampler):
        part = sampler._world.part()
        return Shard(part.world, part.ranks[0])
    if isinstance(sampler, DistributedSampler):
        return Shard(operator.index(sampler.num_replicas), operator.index(sampler.rank))
    return Shard(1, 0) if type(sampler) is SequentialSampler else None
