"""`sample_mask`: marks the samples of a batch that count; the others only keep ranks in step.

Owns its place in a batch. Refuses batches that cannot hold it.
"""

from collections.abc import Iterable, MutableMapping
from typing import Any

import torch

from fastload.batching.filler import Filler
from fastload.batching.planned import PlannedBatchSampler

__all__ = ["NAME", "marks_of", "tells", "with_mask"]

NAME = "sample_mask"


def tells(batch_sampler: Any) -> bool:
    """Returns true if batches have a `sample_mask`: those of a sampler with `remainder="mask"`."""
    return isinstance(batch_sampler, PlannedBatchSampler) and batch_sampler.remainder == "mask"


def marks_of(indices: Iterable[Any]) -> bytes:
    """Returns a byte for each index: 0 for a `Filler`, else 1."""
    return bytes(type(index) is not Filler for index in indices)


def with_mask(batch: Any, marks: bytes, *, pinned: bool) -> Any:
    """Returns a batch with its mask: bool `(B,)`, False for fillers.

    A mapping gets it as `sample_mask`, a tuple or a list as its last element; any other batch becomes a pair.

    Args:
        batch: The batch.
        marks: A byte for each sample: 0 for a filler, else 1.
        pinned: Whether the mask lies in page-locked memory.

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
            f"{type(batch).__name__} cannot hold {NAME!r}, which the loader adds; return "
            "dicts or tuples from collate_fn"
        )
        raise ValueError(msg)
    return batch, mask
