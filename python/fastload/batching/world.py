"""The share of a plan that this process loads.

Ranks are explicit numbers, else those of `torch.distributed`. Where Accelerate shards batches itself, it gets
those of all its processes.
"""

import operator
import sys
from typing import Any, NamedTuple

import torch.distributed

__all__ = ["Part", "World"]

_MOST_RANKS = 1 << 20


class Part(NamedTuple):
    """The ranks of a plan whose batches are iterated.

    Attributes:
        world: Number of ranks in the plan.
        ranks: The ranks whose batches are yielded, one after the other at each step.
    """

    world: int
    ranks: range


class World:
    """The ranks that share a sampler's batches.

    Args:
        num_replicas: Number of ranks; None for torch.distributed's.
        rank: Rank of this process; None for torch.distributed's.

    Raises:
        ValueError: A number out of range.
    """

    def __init__(self, num_replicas: int | None, rank: int | None) -> None:
        self.num_replicas = None if num_replicas is None else operator.index(num_replicas)
        self.rank = None if rank is None else operator.index(rank)
        if self.num_replicas is not None:
            if not 0 < self.num_replicas <= _MOST_RANKS:
                msg = f"num_replicas is a number from 1 to {_MOST_RANKS}, found {num_replicas}"
                raise ValueError(msg)
            if self.rank is not None:
                _check_rank(self.rank, self.num_replicas)

    @property
    def has_own_ranks(self) -> bool:
        """True if the user gave the sampler ranks."""
        return self.rank is not None or self.num_replicas not in (None, 1)

    def part(self) -> Part:
        """Returns the part for the caller: this rank, or Accelerate's sharding.

        Raises:
            RuntimeError: Accelerate would shard batches that are sharded already.
            ValueError: A rank that is not below the number of ranks, or unknown.
        """
        if (sharder := _accelerate()) is None:
            return self._own()
        if self.has_own_ranks:
            msg = (
                f"{type(sharder).__name__} of Accelerate shards batches, and this batch sampler "
                f"is set to do so itself (num_replicas={self.num_replicas}, rank={self.rank}): "
                "leave num_replicas and rank out, or do not prepare the loader"
            )
            raise RuntimeError(msg)
        # A sharder that splits batches itself gets whole ones.
        world = 1 if _splits(sharder) else int(sharder.num_processes)
        return Part(world, range(world))

    @staticmethod
    def is_dealt_whole_batches() -> bool:
        """Returns true if Accelerate is calling, in order to distribute batches to processes."""
        sharder = _accelerate()
        return sharder is not None and not _splits(sharder)

    def _own(self) -> Part:
        world, rank = self.num_replicas, self.rank
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            world = distributed.get_world_size() if world is None else world
            rank = distributed.get_rank() if rank is None else rank
        world = 1 if world is None else world
        if rank is None:
            if world > 1:
                msg = f"the rank of this process among {world} is unknown: pass rank, or start torch.distributed"
                raise ValueError(msg)
            rank = 0
        _check_rank(rank, world)
        return Part(world, range(rank, rank + 1))


def _check_rank(rank: int, world: int) -> None:
    if not 0 <= rank < world:
        msg = f"Invalid rank {rank}, rank should be in the interval [0, {world - 1}]"
        raise ValueError(msg)


def _splits(sharder: Any) -> bool:
    """Returns true if each batch is split over the processes, rather than sent to one of them."""
    return not hasattr(sharder, "num_processes") or bool(sharder.split_batches)


def _accelerate() -> Any | None:
    """Returns the object of Accelerate that is sharding batches, or None.

    Accelerate passes samplers nothing, so it is found in the call stack.
    """
    module = sys.modules.get("accelerate.data_loader")
    if module is None:
        return None
    kinds = module.BatchSamplerShard, module.DataLoaderDispatcher
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_globals is module.__dict__:
            caller = frame.f_locals.get("self")
            if isinstance(caller, kinds):
                return caller
        frame = frame.f_back
    return None
