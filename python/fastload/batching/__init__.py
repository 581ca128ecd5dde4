"""Batch samplers that plan by the lengths of samples.

Each plans whole epochs natively, as a function of seed, epoch and lengths, so all ranks make the same plan
without communicating.
"""

from fastload.batching.by_length import BucketBatchSampler, TokenBatchSampler
from fastload.batching.filler import Filler
from fastload.batching.packing import PackBatchSampler
from fastload.batching.planned import PlannedBatchSampler

__all__ = [
    "BucketBatchSampler",
    "Filler",
    "PackBatchSampler",
    "PlannedBatchSampler",
    "TokenBatchSampler",
]
