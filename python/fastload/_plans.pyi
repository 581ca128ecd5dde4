"""The part of `_lib` that plans epochs from lengths. There is no such module."""

from typing import Literal, final

import torch

from fastload._lib import Column

_Overlong = Literal["truncate", "keep", "drop"]
"""Longer samples count as the limit; stay, alone in their batch or cut into pieces; or are left out."""

_Remainder = Literal["drop", "repeat", "mask"]
"""The treatment of a last step with fewer samples than ranks."""

@final
class Permutation:
    """The permutation that `torch.randperm` draws first from a CPU generator, piece by piece.

    Args:
        length: Number of indices, from 0 on.
        seed: The seed of the generator.
        skip: Indices that are left out, the first ones.
        ranks: Of so many indices one is used, which says how many are needed for the first batches.

    Attributes:
        MOST: The longest there is.

    Raises:
        ValueError: `length` is above `MOST`.
    """

    MOST: int
    def __new__(cls, length: int, seed: int, skip: int = 0, ranks: int = 1) -> Permutation: ...
    def draw(self, count: int) -> torch.Tensor:
        """Returns the next `count` indices, or as many as are left, as int64 `(count,)`."""

@final
class Lengths:
    """The length of each sample of a dataset.

    Args:
        source: Rows of one int64 or int32 number each; or ragged rows, selected and concatenated ones
            too, which are as long as their offsets say.

    Raises:
        TypeError: Another column.
        ValueError: A length that is negative or above 4294967295, or 2^32 samples or more.
    """

    def __new__(cls, source: Column) -> Lengths: ...
    @staticmethod
    def from_bytes(data: bytes) -> Lengths:
        """Returns the lengths that `to_bytes` was called on.

        Raises:
            ValueError: Not four bytes per length.
        """

    def to_bytes(self) -> bytes:
        """Returns four bytes per length, little-endian."""

    def __len__(self) -> int: ...
    def __getitem__(self, sample: int, /) -> int: ...
    def total(self) -> int:
        """Returns the sum of all lengths."""

    def first_above(self, limit: int) -> int | None:
        """Returns the first sample that is longer than `limit`, or None."""

    def count_above(self, limit: int) -> int:
        """Returns how many samples are longer than `limit`."""

@final
class Epoch:
    """The batches of one epoch, of all ranks; its length is the number of steps."""

    def __len__(self) -> int: ...
    def batch(self, step: int, rank: int) -> tuple[list[int], bool]:
        """Returns a rank's batch, and whether its samples are fillers.

        Raises:
            IndexError: No such step or rank.
        """

    def stats(self) -> dict[str, float]:
        """Returns the numbers of `PlannedBatchSampler.plan_stats` that are not about truncation."""

def plan_token_batches(
    lengths: Lengths,
    *,
    max_tokens: int | None,
    max_batch_size: int | None,
    cost: Literal["padded", "sum", "quadratic"],
    quadratic: int,
    window: int,
    batch_multiple: int,
    limit: int,
    overlong: _Overlong,
    longest_first: bool,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    world: int,
    remainder: _Remainder,
) -> Epoch:
    """Plans batches of samples of similar length, for all ranks; arguments are those of `TokenBatchSampler`.

    But `max_tokens=None` is any budget, and `limit` the longest sample within it; `quadratic` is the q of the cost,
    `shuffle` the seed and the epoch, None for the dataset's own order, and `world` the number of ranks.
    """

def plan_packed_batches(
    lengths: Lengths,
    *,
    max_length: int,
    strategy: Literal["best_fit", "first_fit", "concat_split"],
    rows: int,
    window: int,
    overlong: _Overlong,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    world: int,
    remainder: _Remainder,
) -> Epoch:
    """Plans batches of `rows` rows of `max_length` tokens, into which documents are packed; otherwise as above."""

def shapes(column: Column) -> tuple[bytes, int] | None:
    """Returns the shape of each sample, as far as offsets and headers tell.

    Args:
        column: Any.

    Returns:
        The bytes of int64 `(samples, dimensions)`, with -1 for dimensions that a sample does not have, and
        the number of dimensions. None if a shape shows only when its sample is made; of text and bytes,
        always.
    """
