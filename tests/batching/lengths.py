"""What the tests of batch samplers share: lengths, and the batches of all ranks."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from fastload.batching import Filler, PlannedBatchSampler

Batches = list[list[int]]


def tokens(count: int, seed: int = 0, longest: int = 2048) -> np.ndarray[Any, Any]:
    """Returns lengths as texts have them: most are short, few are long."""
    drawn = np.random.default_rng(seed).lognormal(3.4, 1.0, count)
    return np.clip(drawn.round(), 1, longest).astype(np.int64)


def of_ranks(make: Callable[[int], PlannedBatchSampler], world: int) -> list[Batches]:
    """Returns the batches of each rank, and checks that their number was announced."""
    ranks = []
    for rank in range(world):
        sampler = make(rank)
        announced = len(sampler)
        ranks.append(list(sampler))
        assert len(ranks[-1]) == announced
    assert len({len(batches) for batches in ranks}) == 1
    return ranks


def counted(ranks: list[Batches]) -> Counter[int]:
    """Returns how often each sample is in a batch other than as a filler."""
    batches = (batch for batches in ranks for batch in batches)
    return Counter(index for batch in batches for index in batch if not isinstance(index, Filler))


class Samples(Dataset[int]):
    """A dataset whose samples are their own indices."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return index
