"""Which samples a rank loads in a `torch.distributed.device_mesh.DeviceMesh`.

Only ranks that differ in a data-parallel dimension take different batches; tensor-, context- and pipeline-parallel
peers take the same ones. Owns which dimensions are which, and the seed that peers share without communicating.
Creates no process group.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils.data import DistributedSampler, IterableDataset, SequentialSampler

from fastload.batching.layers import innermost, ranks_of
from fastload.batching.planned import draw_seed

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

__all__ = ["Replica", "base_seed_of", "check", "replica_of", "sampler_of"]

_DATA = frozenset({"dp", "dp_replicate", "dp_shard", "data_parallel", "batch"})
_MODEL = frozenset(
    {"tp", "cp", "sp", "pp"}
    | {f"{kind}_parallel" for kind in ("tensor", "context", "sequence", "pipeline")}
)
_UINT64 = (1 << 64) - 1


class Replica(NamedTuple):
    """The data-parallel coordinate of a process, in the words of `DistributedSampler`.

    Attributes:
        num_replicas: Number of replicas of the model, each of which loads different samples.
        rank: The one that this process is part of, from 0.
    """

    num_replicas: int
    rank: int


def replica_of(mesh: "DeviceMesh") -> Replica:
    """Returns the replica that this process is part of: its coordinate in the data-parallel dimensions, row-major.

    Raises:
        TypeError: Not a `DeviceMesh`.
        ValueError: A dimension of another name in a mesh of several, or a mesh without this process.
    """
    if not hasattr(mesh, "get_coordinate"):
        msg = f"mesh should be a torch.distributed.device_mesh.DeviceMesh, but got {mesh!r}"
        raise TypeError(msg)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        msg = f"mesh: this process is not part of {mesh}: pass the mesh that its rank is in"
        raise ValueError(msg)
    names = mesh.mesh_dim_names or (None,) * mesh.ndim
    if mesh.ndim == 1 and names[0] not in _MODEL:
        return Replica(mesh.size(), coordinate[0])
    replica = Replica(1, 0)
    for name, size, place in zip(names, mesh.shape, coordinate, strict=True):
        if name in _DATA:
            replica = Replica(replica.num_replicas * size, replica.rank * size + place)
        elif name not in _MODEL:
            known = ", ".join(sorted(_DATA | _MODEL))
            if name is None:
                msg = f"mesh: the dimensions of this mesh have no names. Name them dp or tp (known: {known})"
                raise ValueError(msg)
            msg = (
                f"mesh: cannot tell whether ranks along dimension {name!r} load different samples. Name it dp or tp "
                f"(known: {known}), or pass mesh['dp']"
            )
            raise ValueError(msg)
    return replica


def sampler_of(
    replica: Replica,
    dataset: Any,
    *,
    shuffle: bool,
    generator: torch.Generator | None,
    drop_last: bool,
) -> DistributedSampler[Any]:
    """Returns a sampler of the samples of a replica; its seed is 0, or drawn from the generator.

    Raises:
        ValueError: An iterable dataset.
    """
    if isinstance(dataset, IterableDataset):
        msg = "mesh= is for map-style datasets: an iterable one divides its samples among the ranks itself"
        raise ValueError(msg)
    seed = 0 if generator is None else draw_seed(generator)
    return DistributedSampler(dataset, *replica, shuffle=shuffle, seed=seed, drop_last=drop_last)


def check(loader: Any) -> None:
    """Refuses samples that are not divided as the loader's mesh says.

    Raises:
        ValueError: They are not.
    """
    replica = replica_of(loader.mesh)
    found = ranks_of(loader._index_sampler)
    sampler = innermost(loader._index_sampler)
    if found is None and type(sampler) is SequentialSampler:
        found = 1, 0
    if found == replica:
        return
    ranks = "no ranks" if found is None else f"num_replicas={found[0]} and rank={found[1]}"
    msg = (
        f"mesh= gives this process num_replicas={replica.num_replicas} and rank={replica.rank}, but "
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
    return draw_seed(torch.Generator().manual_seed((seed + epoch) & _UINT64))
