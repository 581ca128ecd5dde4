"""`sample_mask`: marks the samples of a batch that count; the others only keep ranks in step.

Owns its place in a batch. Refuses batches that cannot hold it.
"""

from collections.abc import Iterable, MutableMapping
from typing import Any

import torch
from torch.utils.data import IterableDataset

from fastload.batching.filler import Filler
from fastload.batching.layers import innermost
from fastload.batching.planned import PlannedBatchSampler
from fastload.batching.repeats import repeats_of

__all__ = ["NAME", "check", "is_wanted", "marks_of", "with_mask"]

NAME = "sample_mask"


def is_wanted(loader: Any) -> bool:
    """Returns true if batches have a `sample_mask`: on request, and with a sampler with `remainder="mask"`."""
    sampler = innermost(loader.batch_sampler)
    is_planned = isinstance(sampler, PlannedBatchSampler) and sampler.remainder == "mask"
    return bool(loader.sample_mask) or is_planned


def check(loader: Any) -> None:
    """Refuses a loader with `sample_mask=True` whose samples have no mask.

    Raises:
        ValueError: An iterable dataset, samples without batches, or a sampler whose repeats are unknown.
    """
    if isinstance(loader.dataset, IterableDataset):
        msg = "sample_mask=True is for map-style datasets: no sampler says which samples of an iterable one repeat"
        raise ValueError(msg)
    if loader.batch_sampler is None:
        msg = "sample_mask=True adds a mask to each batch, and batch_size=None makes none: pass a batch_size"
        raise ValueError(msg)
    repeats_of(loader.batch_sampler)


def marks_of(indices: Iterable[Any]) -> bytes:
    """Returns a byte for each index: 0 for a `Filler`, else 1."""
    return bytes(type(index) is not Filler for index in indices)


def with_mask(batch: Any, marks: bytes, *, pinned: bool) -> Any:
    """Returns a batch with its mask: bool `(B,)`, False for fillers.

    A mapping gets it as `sample_mask`, a tuple or a list as its last element; any other batch becomes a pair.

    Args:
        batch: The batch.
        marks: A byte for each sample: 0 for a filler, else 1.
        pinned: True if the mask lies in page-locked memory.

    Raises:
        ValueError: A mapping that has the key already or takes no new keys; or a named tuple.
    """
    mask = torch.frombuffer(bytearray(marks), dtype=torch.bool)
    if pinned:
        mask = mask.pin_memory()
    if isinstance(batch, MutableMapping):
        if NAME in batch:
            msg = f"the batch has {NAME!r} already, which the loader adds; rename that field"
            raise ValueError(msg)
        if type(batch) is dict:
            return batch | {NAME: mask}
        batch[NAME] = mask
        return batch
    if type(batch) is list:
        return [*batch, mask]
    if type(batch) is tuple:
        return (*batch, mask)
    if isinstance(batch, tuple) or hasattr(batch, "keys"):
        msg = (
            f"{type(batch).__name__} cannot hold {NAME!r}, which the loader adds; return dicts or "
            "tuples from collate_fn"
        )
        raise ValueError(msg)
    return batch, mask
