"""Batch samplers that know how long samples are.

Each plans whole epochs natively, as a function of seed, epoch and lengths: the same on every
rank, with nothing to agree on.
"""

from fastload.batching.buckets import BucketBatchSampler
from fastload.batching.filler import Filler
from fastload.batching.packing import PackBatchSampler
from fastload.batching.planned import PlannedBatchSampler
from fastload.batching.tokens import TokenBatchSampler

__all__ = [
    "BucketBatchSampler",
    "Filler",
    "PackBatchSampler",
    "PlannedBatchSampler",
    "TokenBatchSampler",
]
