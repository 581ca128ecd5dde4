"""The facts in which a state and a loader must agree, and the state's checksum."""

import itertools
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import _DatasetKind

from fastload.batching import BucketBatchSampler, PlannedBatchSampler
from fastload.batching.layers import attribute, dealer_of, innermost, layers, ranks_of
from fastload.machine.auto import is_auto
from fastload.sizes import length_of

__all__ = ["VERSION", "checksum", "facts_of", "number_of", "world_of"]

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
    "loader_generator",
    "sampler_state",
    "dataset_state",
    "checksum",
)
"""The keys that the checksum does not cover."""


def number_of(loader: Any) -> int | None:
    """Returns the number of workers, as far as samples depend on it."""
    is_any = is_auto(loader) and loader._dataset_kind == _DatasetKind.Map
    return None if is_any else int(loader.num_workers)


def facts_of(loader: Any, *, is_coming: bool) -> dict[str, Any]:
    """Returns the facts that must be the same where a state is loaded.

    Args:
        loader: The loader.
        is_coming: True for a state from before an epoch: a list of indices may change until then.
    """
    index_sampler = loader._index_sampler
    batch_size, drop_last = _batching(loader)
    sampler = innermost(index_sampler)
    dealer = dealer_of(index_sampler)
    world, rank = world_of(loader)
    own = RandomSampler | SubsetRandomSampler | WeightedRandomSampler  # each rank has its own order
    is_own = dealer is None and isinstance(sampler, own)
    is_map = loader._dataset_kind == _DatasetKind.Map
    length = length_of(loader.dataset) if is_map else None  # a stream's may be what remains
    described = _described(sampler, length, is_coming=is_coming)
    return {
        "batch_size": batch_size,
        "drop_last": drop_last,
        "length": length,
        "sampler": described if dealer is None else _dealt(dealer, described),
        "world_size": world,
        # out of order, each rank has other batches to come
        "rank": rank if world > 1 and (is_own or not loader.in_order) else None,
    }


def _batching(loader: Any) -> tuple[int | None, bool]:
    """Returns the batch size and `drop_last` of the innermost batch sampler, if it says them, or of the loader."""
    within = list(layers(loader._index_sampler)) if loader._auto_collation else []
    # with Accelerate's that leaves out the first batches, states are its own
    if not any(attribute(each, "skip_batches") for each in within):
        for each in reversed(within):
            size = attribute(each, "batch_size")
            is_planned = isinstance(each, PlannedBatchSampler)
            if isinstance(each, BatchSampler) and isinstance(size, int) and not is_planned:
                return size, bool(attribute(each, "drop_last"))
    return loader.batch_size, bool(loader.drop_last)


def _dealt(dealer: Any, described: str) -> str:
    """Returns the class of Accelerate's batch sampler, with what decides which batches a process gets."""
    names = ("split_batches", "even_batches")
    words = ", ".join(f"{name}={attribute(dealer, name)!r}" for name in names)
    return f"{type(dealer).__qualname__}({described}, {words})"


def world_of(loader: Any) -> tuple[int, int]:
    """Returns how many ranks share the order, and which of them this process is."""
    if (known := ranks_of(loader._index_sampler)) is not None:
        return known
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1, 0
    return distributed.get_world_size(), distributed.get_rank()


def _described(sampler: Any, length: int | None, *, is_coming: bool) -> str:
    """Returns the class of a sampler, with the settings that decide its order.

    Args:
        sampler: The sampler.
        length: The length of the loader's dataset.
        is_coming: As for `facts_of`.
    """
    if isinstance(sampler, range):
        return repr(sampler)
    options: dict[str, Any] = {}
    if isinstance(sampler, RandomSampler):
        options = {
            "replacement": attribute(sampler, "replacement"),
            "num_samples": attribute(sampler, "_num_samples"),
        }
    elif isinstance(sampler, DistributedSampler):
        names = ("shuffle", "seed", "drop_last")
        options = {name: attribute(sampler, name) for name in names}
    elif isinstance(sampler, WeightedRandomSampler):
        weights = attribute(sampler, "weights")
        if isinstance(weights, torch.Tensor):
            weights = zlib.crc32(weights.detach().cpu().contiguous().numpy().data)
            options["weights"] = f"{weights:08x}"
        options["num_samples"] = attribute(sampler, "num_samples")
        options["replacement"] = attribute(sampler, "replacement")
    elif isinstance(sampler, SubsetRandomSampler):
        indices = attribute(sampler, "indices")
        options = {"count": length_of(indices)}
        numbers = _integers(indices)
        if numbers is not None:
            options["indices"] = f"{zlib.crc32(numbers.astype(np.int64).data):08x}"
    elif isinstance(sampler, PlannedBatchSampler):
        plain = {name: value for name, value in vars(sampler).items() if name[0] != "_"}
        lengths = f"{sampler._lengths_crc:08x}"
        options = {**plain, "drop_last": sampler._drop_last, "lengths": lengths}
        if isinstance(sampler, BucketBatchSampler):
            options["batch_size"] = sampler._size
    elif isinstance(sampler, list | tuple | np.ndarray | torch.Tensor):
        options = {"count": len(sampler)}
        found = None if is_coming else _crc_of_indices(sampler)
        if found is not None:
            options["indices"] = f"{found:08x}"
    own = RandomSampler, SubsetRandomSampler, WeightedRandomSampler
    if type(sampler) in own and sampler.generator is not None:
        options["generator"] = "given"  # draws where others seed one
    source = _source_length(sampler)
    if source not in (None, length):  # of a part of the dataset
        options["source"] = source
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{type(sampler).__qualname__}({words})"


def _source_length(sampler: Any) -> int | None:
    """Returns the number of samples that one of torch's samplers chooses from; None for any other."""
    try:
        if isinstance(sampler, DistributedSampler):
            return length_of(sampler.dataset)
        if isinstance(sampler, RandomSampler | SequentialSampler):
            return length_of(sampler.data_source)
    except AttributeError:  # a subclass that keeps none
        return None
    return None


def _crc_of_indices(items: Any) -> int | None:
    """Returns the checksum of a list of indices, or of one of batches; None where they are not integers."""
    sizes: list[int] = []
    try:
        if len(items) and isinstance(items[0], list | tuple):
            sizes = [len(batch) for batch in items]
            items = list(itertools.chain.from_iterable(items))
    except (TypeError, ValueError):  # of a class of the user's
        return None
    indices = _integers(items)
    if indices is None:
        return None
    held = zlib.crc32(np.ascontiguousarray(indices, dtype="<i8").data)
    return zlib.crc32(np.asarray(sizes, dtype="<i8").data, held)


def _integers(items: Any) -> np.ndarray[Any, Any] | None:
    """Returns indices as an array; None where they are not integers."""
    try:
        numbers = np.asarray(items.cpu() if isinstance(items, torch.Tensor) else items)
    except (TypeError, ValueError):  # of other shapes
        return None
    return numbers if numbers.dtype.kind in "iu" else None


def checksum(state: Mapping[str, Any]) -> int:
    """Returns the checksum of a state, without the keys that move or that Accelerate changes."""
    covered = sorted(item for item in state.items() if item[0] not in _LATER)
    return zlib.crc32(repr(covered).encode())
