"""A data loader for PyTorch: native threads, exact pixels, one import changed."""

from fastload import columns, transforms
from fastload._lib import __version__
from fastload.bad_samples import BadSample, BadSamplesError, OnError
from fastload.batching import BucketBatchSampler, PackBatchSampler, TokenBatchSampler
from fastload.batching.gather import gather_masked
from fastload.collate import Keep, PackCollate, Pad, PadCollate, Unpadded
from fastload.columns.dataset import Dataset
from fastload.field_lengths import lengths
from fastload.loader import Loader
from fastload.machine.auto import AUTO
from fastload.monitoring.monitor import Monitor, monitor
from fastload.tune import Profile

__all__ = [
    "AUTO",
    "BadSample",
    "BadSamplesError",
    "BucketBatchSampler",
    "Dataset",
    "Keep",
    "Loader",
    "Monitor",
    "OnError",
    "PackBatchSampler",
    "PackCollate",
    "Pad",
    "PadCollate",
    "Profile",
    "TokenBatchSampler",
    "Unpadded",
    "__version__",
    "columns",
    "gather_masked",
    "lengths",
    "monitor",
    "transforms",
]
