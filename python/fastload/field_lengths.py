"""`lengths`: how long a field of each sample is, for batch samplers."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.batching.fields import field_lengths
from fastload.batching.scan import Workers
from fastload.batching.sizes import Field
from fastload.loader import Loader
from fastload.machine.auto import AUTO

__all__ = ["lengths"]


def lengths(
    dataset: Any,
    field: Field = None,
    cache: str | os.PathLike[str] | None = None,
    *,
    dim: int | None = None,
    num_workers: int = AUTO,
    multiprocessing_context: Any = None,
    worker_init_fn: Callable[[int], None] | None = None,
) -> torch.Tensor:
    """Returns how long a field of each sample is: int64 `(len(dataset),)`, for batch samplers.

    Of columns, and of datasets that are recognised, offsets and headers tell. Otherwise each sample is
    made once: by threads where native code makes it, else by worker processes. Such lengths are kept as
    long as the process lives, and in a file on demand, under a fingerprint of the dataset: its class and
    methods, its state as far as it pickles into 64 MiB, the fingerprint of a Hugging Face dataset, size
    and time of the files of columns. Files that Python code reads are not part of it.

    Args:
        dataset: A map-style dataset.
        field: Its name, its position, or the path to it as a tuple; a function of a sample, which returns
            an array or the length itself; None for samples that are one field themselves. A field of
            single whole numbers says the lengths.
        cache: A file that keeps lengths that had to be looked up. One of another dataset is made anew,
            with a warning.
        dim: The dimension that counts, from the end if negative. None: the one that varies; the first if
            none does, as `PadCollate` has it.
        num_workers: Threads or processes; `AUTO` for the CPU budget; 0 for this thread alone.
        multiprocessing_context: How processes are started.
        worker_init_fn: Called in each worker process with its number.

    Raises:
        KeyError: Samples have no such field.
        TypeError: The field is no array, or the dataset has no numbered samples.
        ValueError: Several dimensions vary, or there is no dimension `dim`; `cache` is another file.

    Examples:
        >>> lengths(TensorDataset(torch.zeros(3, 7)), 0)
        tensor([7, 7, 7])
    """
    workers = Workers(Loader, num_workers, multiprocessing_context, worker_init_fn)
    found = field_lengths(dataset, field, workers, cache=cache, dim=dim)
    return torch.from_numpy(np.frombuffer(found.to_bytes(), "<u4").astype(np.int64))
