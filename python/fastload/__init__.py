"""A data loader for PyTorch: native threads, exact pixels, one import changed."""

from fastload import columns, transforms
from fastload._lib import __version__
from fastload.batching import BucketBatchSampler, PackBatchSampler, TokenBatchSampler
from fastload.collate import Keep, PackCollate, Pad, PadCollate, Ragged
from fastload.columns.dataset import Dataset
from fastload.field_lengths import lengths
from fastload.loader import Loader
from fastload.machine.auto import AUTO
from fastload.monitoring.monitor import Monitor, monitor
from fastload.tune import Profile

__all__ = [
    "AUTO",
    "BucketBatchSampler",
    "Dataset",
    "Keep",
    "Loader",
    "Monitor",
    "PackBatchSampler",
    "PackCollate",
    "Pad",
    "PadCollate",
    "Profile",
    "Ragged",
    "TokenBatchSampler",
    "__version__",
    "columns",
    "lengths",
    "monitor",
    "transforms",
]
