"""`PackBatchSampler`: batches of documents that fill rows of a fixed length."""

from typing import Any, Literal, cast

import torch
from torch.utils.data import DistributedSampler, SequentialSampler

from fastload import _lib
from fastload.batching.lengths import LONGEST
from fastload.batching.planned import PlannedBatchSampler, Remainder
from fastload.checks import check_choice, positive

__all__ = ["PackBatchSampler"]


class PackBatchSampler(PlannedBatchSampler):
    """Batches of documents that are packed into rows of `max_length` tokens.

    A batch lists the documents of its rows, row after row; `PackCollate` with the same `max_length` and
    `strategy` packs them into at most as many rows as were planned. All pieces of a document are in one batch.
    Rows, and so batches, are shuffled.

    Args:
        lengths: The length of each document: integers as a sequence, an array or a tensor; or a
            `columns.Ragged`.
        max_length: Tokens per row.
        strategy: `"best_fit"`: longest documents first, each into the fullest row with room; `"first_fit"`: in
            order, each into the first row with room; `"concat_split"`: one after the other, cut at the end of a
            row but not at the end of a batch.
        overlong: Treatment of a document longer than a row: `"truncate"`: it counts as `max_length` tokens, and
            the collate function must cut it; `"split"`: it is cut into pieces; `"drop"`: it is left out;
            `"error"`. With `"concat_split"` any document may be cut, and none is overlong.
        rows: Rows per batch. A document that needs more makes a larger batch.
        window: Documents that are packed together; None for all.
        shuffle: True if the order is drawn anew each epoch.
        seed: Seed of the orders, combined with the epoch; 0 by default. Must be the same on all ranks.
        generator: Draws the seed once, when the sampler is made; it must be in the same state on all ranks.
        drop_last: True if a last step whose batches are not full is dropped.
        num_replicas: Number of ranks; torch.distributed's unless given.
        rank: This process's rank; torch.distributed's unless given.
        remainder: The last step if fewer documents are left than there are ranks: `"drop"` leaves them out,
            `"repeat"` gives ranks without one a copy of another's, `"mask"` gives them the copy as a `Filler`.
        sampler: Passed by frameworks that rebuild batch samplers: a `DistributedSampler` sets the ranks, a
            `SequentialSampler` turns shuffling off.

    Raises:
        TypeError: Lengths are not integers.
        ValueError: An overlong document, with `overlong="error"`; or arguments out of range.

    Examples:
        >>> sampler = PackBatchSampler([3, 7, 4, 6], max_length=10, shuffle=False)
        >>> list(sampler)
        [[0, 1], [2, 3]]
    """

    def __init__(
        self,
        lengths: Any,
        max_length: int,
        strategy: Literal["best_fit", "first_fit", "concat_split"] = "best_fit",
        overlong: Literal["truncate", "split", "drop", "error"] = "truncate",
        *,
        rows: int = 1,
        window: int | None = 65536,
        shuffle: bool = True,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        drop_last: bool = False,
        num_replicas: int | None = None,
        rank: int | None = None,
        remainder: Remainder = "drop",
        sampler: DistributedSampler[Any] | SequentialSampler | None = None,
    ) -> None:
        check_choice("strategy", strategy, ("best_fit", "first_fit", "concat_split"))
        check_choice("overlong", overlong, ("truncate", "split", "drop", "error"))
        self.batch_size = None
        self.max_length = positive("max_length", max_length, LONGEST)
        self.strategy = strategy
        self.overlong = overlong
        self.rows = positive("rows", rows)
        self.window = window
        self._window = positive("window", window, or_none=True)
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
        if overlong != "error" or self._cuts_any():
            return
        if (sample := self._lengths.first_above(self.max_length)) is not None:
            msg = (
                f"document {sample} has length {self._lengths[sample]}, a row {self.max_length}: "
                "raise max_length, or pass overlong='truncate', 'split' or 'drop'"
            )
            raise ValueError(msg)

    def _cuts_any(self) -> bool:
        return self.strategy == "concat_split"

    def _plan(self, **common: Any) -> _lib.Epoch:
        keeps = self._cuts_any() or self.overlong in ("split", "error")
        return _lib.plan_packed_batches(
            self._lengths,
            max_length=self.max_length,
            strategy=self.strategy,
            rows=self.rows,
            window=self._window,
            overlong="keep" if keeps else cast("Literal['truncate', 'drop']", self.overlong),
            **common,
        )

    def _truncated(self) -> int:
        if self._cuts_any() or self.overlong != "truncate":
            return 0
        return self._lengths.count_above(self.max_length)
