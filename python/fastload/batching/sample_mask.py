"""Samples that a rank loads only so that all ranks take the same number of steps, and the mask that marks them.

Owns how torch's `DistributedSampler` and Accelerate's `BatchSamplerShard` fill the last step: they continue with
the start of the order. Planned batch samplers mark such samples themselves, with a `Filler`. Owns the place of
`sample_mask` in a batch, and refuses batches that cannot hold it.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.utils.data import BatchSampler, DistributedSampler, IterableDataset

from fastload.batching.filler import Filler
from fastload.batching.layers import dealer_of, innermost, layers
from fastload.batching.planned import PlannedBatchSampler
from fastload.collate.fields import with_entry

__all__ = ["NAME", "Repeats", "check", "is_wanted", "marks_of", "repeats_of", "with_mask"]

NAME = "sample_mask"

_STRIDED = ("lightning.", "lightning_fabric.", "pytorch_lightning.", "ignite.")
"""Modules whose subclasses of `DistributedSampler` assign and repeat indices as torch's class does."""


class Repeats(NamedTuple):
    """Places of a rank's samples in the order that all ranks share.

    Attributes:
        total: Samples of the order; a sample at a place from there on is a repeat.
        start: Place of the first sample of the first batch.
        step: Places from one batch to the next.
        stride: Places from one sample of a batch to the next.
    """

    total: int
    start: int
    step: int
    stride: int

    def after(self, batches: int, samples: int) -> "Repeats":
        """Returns the places of an epoch in which `batches` batches took the first `samples` places of the order."""
        return self._replace(start=self.start + samples - batches * self.step)

    def marked(self, batch: list[Any], number: int) -> list[Any]:
        """Returns a batch of indices with a `Filler` for each repeat.

        Args:
            batch: The indices.
            number: The number of the batch in the epoch.
        """
        left = self.total - self.start - number * self.step
        own = max(0, math.ceil(left / self.stride))
        return batch if own >= len(batch) else [*batch[:own], *map(Filler, batch[own:])]


def repeats_of(batch_sampler: Any) -> Repeats | None:
    """Returns where the batches of a sampler lie in the order; None if it repeats nothing, or marks repeats itself.

    Raises:
        ValueError: It may repeat samples, and which ones is unknown.
    """
    skipped = 0
    while hasattr(batch_sampler, "skip_batches"):  # a SkipBatchSampler of Accelerate
        skipped += batch_sampler.skip_batches
        batch_sampler = batch_sampler.batch_sampler
    if isinstance(batch_sampler, PlannedBatchSampler):
        if batch_sampler.remainder == "repeat":
            msg = (
                "sample_mask=True marks samples that another rank loads, and remainder='repeat' of "
                f"{type(batch_sampler).__name__} lets them count: pass remainder='mask'"
            )
            raise ValueError(msg)
        return None
    known = _of_accelerate if dealer_of(batch_sampler) is not None else _of_torch
    repeats = known(batch_sampler)
    return None if repeats is None else repeats.after(-skipped, 0)


def _of_torch(batch_sampler: Any) -> Repeats | None:
    within: list[Any] = []
    for layer in layers(batch_sampler):
        within.append(layer)
        if isinstance(layer, DistributedSampler):
            break
    else:
        return None
    sampler = within[-1]
    count = len(sampler.dataset)
    if sampler.drop_last:
        return None
    known: tuple[Any, Any] = BatchSampler, DistributedSampler
    for layer, torchs in zip(within, known, strict=False):
        own = type(layer)
        is_torchs = getattr(own, "__iter__", None) is torchs.__iter__
        if not (is_torchs or own.__module__.startswith(_STRIDED)):
            if sampler.total_size <= count:
                return None  # a run does not go on with another number of ranks
            msg = (
                f"sample_mask=True: which samples {own.__qualname__} repeats is unknown, for it has an __iter__ of "
                f"its own: use torch's {torchs.__name__}, or drop_last=True in the sampler"
            )
            raise ValueError(msg)
    ranks = sampler.num_replicas
    return Repeats(count, sampler.rank, batch_sampler.batch_size * ranks, ranks)


def _of_accelerate(shard: Any) -> Repeats | None:
    batches = shard.batch_sampler
    if not shard.even_batches or shard.drop_last:
        return None
    if isinstance(batches, PlannedBatchSampler) and not shard.split_batches:
        repeats_of(batches)
        return None  # there are as many batches for each process
    if type(batches) is not BatchSampler:
        msg = (
            f"sample_mask=True: which samples of {type(batches).__qualname__} Accelerate repeats is unknown: leave "
            "split_batches out and set even_batches=False, or use torch's BatchSampler"
        )
        raise ValueError(msg)
    size, processes, process = batches.batch_size, shard.num_processes, shard.process_index
    count = len(batches.sampler)  # type: ignore[arg-type]
    if shard.split_batches:
        return Repeats(count, process * (size // processes), size, 1)
    return Repeats(count, process * size, processes * size, 1)


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
    if marks:
        mask = torch.frombuffer(bytearray(marks), dtype=torch.bool)
    else:  # of which torch makes no tensor
        mask = torch.zeros(0, dtype=torch.bool, device="cpu")
    if pinned:
        mask = mask.pin_memory()
    return with_entry(batch, NAME, mask, by="the loader")
