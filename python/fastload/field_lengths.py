"""`lengths`: the lengths of a field, for batch samplers."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.batching.fields import field_lengths
from fastload.batching.lengths import Field
from fastload.batching.scan import Workers
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
    """Returns the length of a field in each sample, for batch samplers: int64 `(len(dataset),)`.

    Columns and recognised datasets give lengths from offsets and headers. Otherwise each sample is made once:
    by threads if it is native, else by worker processes. Such lengths are cached as long as the process lives,
    and optionally in a file, under a fingerprint of the dataset: its class with methods and attributes, the globals
    that they name, its state if it pickles into 64 MiB, the fingerprint of a Hugging Face dataset, size and time of
    the files of columns. Files that Python code reads are not part of the fingerprint.

    Args:
        dataset: A map-style dataset.
        field: Its name, its position, or the path to it as a tuple; a function of a sample, which returns
            an array or the length itself; None for samples that are one field themselves. A field of integers
            gives the lengths themselves.
        cache: A file that caches lengths found by making samples. If it belongs to another dataset, it is
            rewritten with a warning.
        dim: The dimension that counts, from the end if negative. None: the one that varies, or the first if
            none does, as in `PadCollate`.
        num_workers: Threads or processes; `AUTO` for the CPU budget; 0 for this thread alone.
        multiprocessing_context: Start method of processes.
        worker_init_fn: Called in each worker process with its number.

    Raises:
        KeyError: Samples have no such field.
        TypeError: The field is not an array, or the dataset is not map-style.
        ValueError: Several dimensions vary, or there is no dimension `dim`; or `cache` is not a file of
            lengths.

    Examples:
        >>> lengths(TensorDataset(torch.zeros(3, 7)), 0)
        tensor([7, 7, 7])
    """
    workers = Workers(Loader, num_workers, multiprocessing_context, worker_init_fn)
    found = field_lengths(dataset, field, workers, cache=cache, dim=dim)
    return torch.from_numpy(np.frombuffer(found.to_bytes(), "<u4").astype(np.int64))
