"""Batches of samples of similar length: of a number of samples, or within a token budget."""

import math
import re
from typing import Any, Literal

import torch
from torch.utils.data import DistributedSampler, SequentialSampler

from fastload import _lib
from fastload.batching.lengths import LONGEST
from fastload.batching.planned import (
    PlannedBatchSampler,
    Remainder,
    sorted_together,
)
from fastload.checks import check_choice, positive

__all__ = ["BucketBatchSampler", "TokenBatchSampler"]

_Kind = Literal["padded", "sum", "quadratic"]
_PLAIN: dict[str, _Kind] = {"padded": "padded", "sum": "sum"}
_QUADRATIC = re.compile(r"quadratic:([0-9]+)")


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


class TokenBatchSampler(PlannedBatchSampler):
    """Batches of samples of similar length, each within a token budget.

    Samples are shuffled, sorted by length within windows of `window` samples and cut into batches; the steps
    are then shuffled. At each step all ranks have samples of about the same length.

    Args:
        lengths: The length of each sample: integers as a sequence, an array or a tensor; or a `columns.Ragged`.
        max_tokens: The budget of a batch; a sample of length 0 counts as one of length 1.
        max_batch_size: Maximum number of samples per batch.
        cost: The token count of a batch. `"padded"`: number of samples times the longest; `"sum"`:
            the sum of the lengths; `"quadratic:<q>"`: as padded, with `L + L * L / q` for a length L.
        window: Samples per rank that are sorted together; 1 keeps the order. None for 50 batches' worth, at
            least 2048; a smaller window mixes long and short samples in a batch.
        shuffle: True if the order is drawn anew each epoch.
        seed: Seed of the orders, combined with the epoch; 0 by default. Must be the same on all ranks.
        generator: Draws the seed once, when the sampler is made; it must be in the same state on all ranks.
        batch_multiple: Batch sizes are multiples of this, except where the budget allows fewer long samples,
            and in the last step.
        overlong: Treatment of a sample that exceeds the budget by itself: `"error"`; `"truncate"`: it counts as
            `max_length` tokens, and the collate function must cut it; `"alone"`: a batch of its own, over the
            budget; `"drop"`: it is left out.
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
        ValueError: A sample over the budget, with `overlong="error"`; or arguments out of range.

    Examples:
        >>> sampler = TokenBatchSampler([5, 9, 2, 4], max_tokens=10, shuffle=False)
        >>> list(sampler)
        [[2, 3], [0], [1]]
    """

    def __init__(
        self,
        lengths: Any,
        max_tokens: int,
        max_batch_size: int | None = None,
        *,
        cost: str = "padded",
        window: int | None = 2048,
        shuffle: bool = True,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        batch_multiple: int = 1,
        overlong: Literal["error", "truncate", "alone", "drop"] = "error",
        longest_first: bool = False,
        drop_last: bool = False,
        num_replicas: int | None = None,
        rank: int | None = None,
        remainder: Remainder = "drop",
        sampler: DistributedSampler[Any] | SequentialSampler | None = None,
    ) -> None:
        self.batch_size = None
        self.max_tokens = positive("max_tokens", max_tokens)
        self.max_batch_size = max_batch_size
        self.cost = cost
        self.batch_multiple = positive("batch_multiple", batch_multiple)
        self.overlong = overlong
        self.longest_first = bool(longest_first)
        self._kind, self._q = _cost(cost)
        self._most = positive("max_batch_size", max_batch_size, or_none=True)
        check_choice("overlong", overlong, ("error", "truncate", "alone", "drop"))
        if self._most < self.batch_multiple:
            msg = (
                f"max_batch_size={max_batch_size} is smaller than batch_multiple={batch_multiple}; "
                "raise max_batch_size or lower batch_multiple"
            )
            raise ValueError(msg)
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
        by_tokens = self.max_tokens * len(self._lengths) // max(1, self._lengths.total())
        self.window = sorted_together(window, min(self._most, by_tokens))
        longest = self.max_length
        if overlong == "error" and (sample := self._lengths.first_above(longest)) is not None:
            msg = (
                f"sample {sample} has length {self._lengths[sample]}, and max_tokens="
                f"{self.max_tokens} allows {longest} (cost={self.cost!r}): raise "
                "max_tokens, or pass overlong='truncate', 'alone' or 'drop'"
            )
            raise ValueError(msg)

    @property
    def max_length(self) -> int:
        """The length of the longest sample within the budget."""
        if self._kind != "quadratic":
            return min(self.max_tokens, LONGEST)
        # L + L * L / q <= max_tokens
        root = math.isqrt(self._q * self._q + 4 * self._q * self.max_tokens)
        return min((root - self._q) // 2, LONGEST)

    def _plan(self, **common: Any) -> _lib.Epoch:
        return _lib.plan_token_batches(
            self._lengths,
            max_tokens=self.max_tokens,
            max_batch_size=self._most,
            cost=self._kind,
            quadratic=self._q,
            window=self.window,
            batch_multiple=self.batch_multiple,
            limit=self.max_length,
            overlong=self.overlong if self.overlong in ("truncate", "drop") else "keep",
            longest_first=self.longest_first,
            **common,
        )

    def _truncated(self) -> int:
        return self._lengths.count_above(self.max_length) if self.overlong == "truncate" else 0


def _cost(cost: str) -> tuple[_Kind, int]:
    """Returns the kind of a cost and its q."""
    if (plain := _PLAIN.get(cost)) is not None:
        return plain, 1
    match = _QUADRATIC.fullmatch(cost)
    if match and 0 < int(match[1]) <= LONGEST:
        return "quadratic", int(match[1])
    msg = f"cost is 'padded', 'sum' or 'quadratic:<q>' with an integer q above 0, found {cost!r}"
    raise ValueError(msg)
