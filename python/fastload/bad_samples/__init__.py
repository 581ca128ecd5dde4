"""Samples that cannot be made: the policy for them, and the account of them.

`fetching` finds them where samples are made in Python, and native threads find theirs; `ledger` counts both
where batches are handed over.
"""

from fastload.bad_samples.fetching import Bad, Fetched, described, in_workers, tolerate
from fastload.bad_samples.ledger import BadSample, BadSamplesError, Ledger
from fastload.bad_samples.policy import PAUSES_S, OnError, policy_of

__all__ = [
    "PAUSES_S",
    "Bad",
    "BadSample",
    "BadSamplesError",
    "Fetched",
    "Ledger",
    "OnError",
    "described",
    "in_workers",
    "policy_of",
    "tolerate",
]
