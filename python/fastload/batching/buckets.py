"""`BucketBatchSampler`: batches of a fixed number of samples of similar length."""

from typing import Any

import torch
from torch.utils.data import DistributedSampler, SequentialSampler

from fastload import _lib
from fastload.batching.lengths import LONGEST
from fastload.batching.planned import PlannedBatchSampler, Remainder, positive, sorted_together

__all__ = ["BucketBatchSampler"]


class BucketBatchSampler(PlannedBatchSampler):
    """Batches of a fixed number of samples of similar length.

    Samples are shuffled, sorted by length within windows of `window` samples and cut into batches; the steps
    are then shuffled. At each step all ranks have samples of about the same length. Only batches of the last
    step may be short.

    Args:
        lengths: The length of each sample: integers as a sequence, an array or a tensor; or a `columns.Ragged`.
        batch_size: Samples per batch.
        window: Samples per rank that are sorted together; 1 keeps the order. None for 50 batches' worth, at
            least 2048.
        shuffle: True if the order is drawn anew each epoch.
        seed: Seed of the orders, combined with the epoch; 0 by default. Must be the same on all ranks.
        generator: Draws the seed once, when the sampler is made; it must be in the same state on all ranks.
        longest_first: True if an epoch begins with the longest sample, so that a lack of memory shows at once.
        drop_last: True if a last step whose batches are not full is dropped.
        num_replicas: Number of ranks; torch.distributed's unless given.
        rank: This process's rank; torch.distributed's unless given.
        remainder: The last step if fewer samples are left than there are ranks: `"drop"` leaves them out,
            `"repeat"` gives ranks without one a copy of another's, `"mask"` gives them the copy as a `Filler`.
        sampler: Passed by frameworks that rebuild batch samplers: a `DistributedSampler` sets the ranks, a
            `SequentialSampler` turns shuffling off.

    Raises:
        TypeError: Lengths are not integers.
        ValueError: Arguments out of range.

    Examples:
        >>> sampler = BucketBatchSampler([5, 9, 2, 4], batch_size=2, shuffle=False)
        >>> list(sampler)
        [[2, 3], [0, 1]]
    """

    def __init__(
        self,
        lengths: Any,
        batch_size: int,
        window: int | None = 2048,
        *,
        shuffle: bool = True,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        longest_first: bool = False,
        drop_last: bool = False,
        num_replicas: int | None = None,
        rank: int | None = None,
        remainder: Remainder = "drop",
        sampler: DistributedSampler[Any] | SequentialSampler | None = None,
    ) -> None:
        self._size = positive("batch_size", batch_size)
        self.window = sorted_together(window, self._size)
        self.longest_first = bool(longest_first)
        super().__init__(
            lengths,
            shuffle=shuffle,
            seed=seed,
            generator=generator,
            drop_last=drop_last,
            num_replicas=num_replicas,
            rank=rank,
            remainder=remainder,
            sampler=sampler,
        )

    @property
    def batch_size(self) -> int | None:  # type: ignore[override]
        """Samples of a batch.

        None for Accelerate when it distributes batches: it would drop short ones.
        """
        return None if self._world.is_dealt_whole_batches() else self._size

    def _plan(self, **common: Any) -> _lib.Epoch:
        return _lib.plan_token_batches(
            self._lengths,
            max_tokens=None,
            max_batch_size=self._size,
            cost="padded",
            quadratic=1,
            window=self.window,
            batch_multiple=1,
            limit=LONGEST,
            overlong="keep",
            longest_first=self.longest_first,
            **common,
        )
