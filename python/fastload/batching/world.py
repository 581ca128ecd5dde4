"""Which part of a plan this process loads.

Owns the rules of sharing: explicit numbers, else those of `torch.distributed`. Where Accelerate
shards batches itself, it is given those of all its processes.
"""

import operator
import sys
from typing import Any, NamedTuple

import torch.distributed

__all__ = ["Part", "World"]

_MOST_RANKS = 1 << 20


class Part(NamedTuple):
    """What of a plan is iterated.

    Attributes:
        world: Ranks that the plan is for.
        ranks: Those whose batches are given out, one after the other at each step.
    """

    world: int
    ranks: range


class World:
    """The ranks that share a sampler's batches.

    Args:
        num_replicas: How many there are; None for torch.distributed's number.
        rank: This process's own; None for torch.distributed's.

    Raises:
        ValueError: Numbers that no rank can have.
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

    def part(self) -> Part:
        """Returns the part of whoever asks.

        Raises:
            RuntimeError: Accelerate would shard once more what is sharded already.
            ValueError: A rank that is not below the number of ranks, or unknown.
        """
        if (sharder := _accelerate()) is None:
            return self._own()
        if self.rank is not None or self.num_replicas not in (None, 1):
            msg = (
                f"{type(sharder).__name__} of Accelerate shards batches, and this batch sampler "
                f"was told to do so itself (num_replicas={self.num_replicas}, rank={self.rank}): "
                "leave num_replicas and rank out, or do not prepare the loader"
            )
            raise RuntimeError(msg)
        # Whoever splits batches by itself is given whole ones.
        world = 1 if _splits(sharder) else int(sharder.num_processes)
        return Part(world, range(world))

    @staticmethod
    def is_dealt_whole_batches() -> bool:
        """Returns true if it is Accelerate that asks, in order to deal batches to processes."""
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
                msg = f"which of the {world} ranks is this? pass rank, or start torch.distributed"
                raise ValueError(msg)
            rank = 0
        _check_rank(rank, world)
        return Part(world, range(rank, rank + 1))


def _check_rank(rank: int, world: int) -> None:
    if not 0 <= rank < world:
        msg = f"Invalid rank {rank}, rank should be in the interval [0, {world - 1}]"
        raise ValueError(msg)


def _splits(sharder: Any) -> bool:
    """Returns true if each batch is split over the processes; not dealt to one of them."""
    return bool(sharder.split_batches) or not hasattr(sharder, "num_processes")


def _accelerate() -> Any | None:
    """Returns the object of Accelerate that asks for batches in order to shard them, if one does.

    It tells samplers nothing of itself; but it is further up the stack.
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
