"""The facts in which a state and a loader must agree, and the state's checksum."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import _DatasetKind

from fastload.batching import BucketBatchSampler, PlannedBatchSampler
from fastload.batching.layers import dealer_of, innermost
from fastload.machine.auto import is_auto

__all__ = ["VERSION", "checksum", "facts_of", "number_of", "rank_of"]

VERSION = 1
_CHANGED = ("_num_yielded", "_sampler_iter_yielded", "_index_sampler_state", "_iterator_finished")
"""The keys that Accelerate changes."""
_LATER = (
    *_CHANGED,
    "to_come",
    "from_workers",
    "bad_samples",
    "workers",
    "next_worker",
    "sampler_state",
    "dataset_state",
    "checksum",
)
"""The keys that the checksum does not cover."""


def number_of(loader: Any) -> int | None:
    """Returns the number of workers, as far as samples depend on it."""
    is_any = is_auto(loader) and loader._dataset_kind == _DatasetKind.Map
    return None if is_any else int(loader.num_workers)


def facts_of(loader: Any) -> dict[str, Any]:
    """Returns the facts that must be the same where a state is loaded."""
    index_sampler = loader._index_sampler
    is_batches = loader._auto_collation and type(index_sampler) is BatchSampler
    sampler = innermost(index_sampler)
    dealer = dealer_of(index_sampler)
    world, rank = _ranks(sampler, dealer)
    described = _described(sampler)
    is_own = dealer is None and _is_own(sampler)
    try:
        length = len(loader.dataset)
    except TypeError:  # an iterable dataset has none
        length = None
    return {
        "batch_size": index_sampler.batch_size if is_batches else loader.batch_size,
        "drop_last": bool(index_sampler.drop_last if is_batches else loader.drop_last),
        "length": length,
        "sampler": described if dealer is None else f"{type(dealer).__qualname__}({described})",
        "world_size": world,
        # out of order, each rank has other batches to come
        "rank": rank if world > 1 and (is_own or not loader.in_order) else None,
    }


def rank_of(loader: Any) -> int:
    """Returns which of the ranks that share the order this process is."""
    index_sampler = loader._index_sampler
    return _ranks(innermost(index_sampler), dealer_of(index_sampler))[1]


def _ranks(sampler: Any, dealer: Any) -> tuple[int, int]:
    """Returns for how many ranks a sampler is, and which of them this process is."""
    if dealer is not None:
        return int(dealer.num_processes), int(dealer.process_index)
    if isinstance(sampler, DistributedSampler):
        return int(sampler.num_replicas), int(sampler.rank)
    if isinstance(sampler, PlannedBatchSampler):
        part = sampler._world.part()
        return part.world, part.ranks.start
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1, 0
    return distributed.get_world_size(), distributed.get_rank()


def _is_own(sampler: Any) -> bool:
    """Returns true if each rank draws an order of its own."""
    return isinstance(sampler, RandomSampler | SubsetRandomSampler | WeightedRandomSampler)


def _described(sampler: Any) -> str:
    """Returns the class of a sampler, with the settings that decide its order."""
    options: dict[str, Any] = {}
    if isinstance(sampler, RandomSampler):
        options = {"replacement": sampler.replacement, "num_samples": sampler._num_samples}
    elif isinstance(sampler, DistributedSampler):
        names = ("shuffle", "seed", "drop_last")
        options = {name: getattr(sampler, name, None) for name in names}
    elif isinstance(sampler, WeightedRandomSampler):
        weights = zlib.crc32(sampler.weights.contiguous().numpy().data)
        options = {
            "weights": f"{weights:08x}",
            "num_samples": sampler.num_samples,
            "replacement": sampler.replacement,
        }
    elif isinstance(sampler, SubsetRandomSampler):
        options = {"count": len(sampler.indices)}
        indices = np.asarray(sampler.indices)
        if indices.dtype.kind in "iu":
            options["indices"] = f"{zlib.crc32(indices.astype(np.int64).data):08x}"
    elif isinstance(sampler, PlannedBatchSampler):
        plain = {name: value for name, value in vars(sampler).items() if name[0] != "_"}
        options = {**plain, "drop_last": sampler._drop_last}
        if isinstance(sampler, BucketBatchSampler):
            options["batch_size"] = sampler._size
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{type(sampler).__qualname__}({words})"


def checksum(state: Mapping[str, Any]) -> int:
    """Returns the checksum of a state, without the keys that move or that Accelerate changes."""
    covered = sorted(item for item in state.items() if item[0] not in _LATER)
    return zlib.crc32(repr(covered).encode())
