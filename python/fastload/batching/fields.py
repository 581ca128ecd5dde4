"""Lengths of one field of a dataset's samples: from its storage, or from one look at each sample."""

import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.auto import AUTO
from fastload.batching.fingerprint import fingerprint
from fastload.batching.lengths import lengths_of
from fastload.batching.scan import Workers, scan, scan_leaf
from fastload.batching.sizes import Field, along, part_of, words
from fastload.batching.stored import lengths_by
from fastload.lowering import Leaf, NotNative, lower

__all__ = ["field_lengths", "lengths", "lengths_for"]

_log = logging.getLogger("fastload")


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
    workers = Workers(num_workers, multiprocessing_context, worker_init_fn)
    found = field_lengths(dataset, field, cache=cache, dim=dim, workers=workers)
    return torch.from_numpy(np.frombuffer(found.to_bytes(), "<u4").astype(np.int64))


def field_lengths(
    dataset: Any,
    field: Field = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    dim: int | None = None,
    workers: Workers | None = None,
) -> _lib.Lengths:
    """Returns the same as `lengths`, for samplers."""
    leaf = _leaf(dataset, field)
    if leaf is not None and (told := _told(leaf, field, dim)) is not None:
        return told
    workers = workers or Workers()

    def look() -> _lib.Lengths:
        found = scan(dataset, field, workers) if leaf is None else scan_leaf(leaf, field, workers)
        return lengths_of(along(found, dim, field))

    if type(dataset) in (list, tuple) or not hasattr(dataset, "__len__"):
        return look()  # as soon done as a fingerprint
    kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    name = fingerprint(dataset, field, dim)
    if name is None and cache is not None:
        _log.info("no fingerprint of %s: cache %s is taken for that of any as long", kind, cache)
    key = {"fingerprint": name, "class": kind, "field": words(field), "dim": dim}
    return lengths_by({**key, "samples": len(dataset)}, cache, look)


def lengths_for(dataset: Any, length: Any, workers: Workers) -> _lib.Lengths:
    """Returns lengths that are given, as a list, an array or a tensor; else those of a field."""
    if isinstance(length, list | np.ndarray | torch.Tensor):
        return lengths_of(length)
    return field_lengths(dataset, length, workers=workers)


def _leaf(dataset: Any, field: Field) -> Leaf | None:
    """Returns what native code makes of a field; None if Python has a hand in it.

    Raises:
        KeyError: Samples have no such field.
        TypeError: It is several fields, or no array.
    """
    if callable(field):
        return None
    try:
        part = part_of(lower(dataset).sample, field)
    except NotNative:
        return None
    if not isinstance(part, Leaf):
        msg = f"{words(field)} is a {type(part).__name__}; name one of its fields by a tuple"
        raise TypeError(msg)
    if part.tail:
        return None
    if part.form in ("text", "bytes"):
        msg = f"{words(field)}, {part.column}, has no lengths: its samples are no arrays"
        raise TypeError(msg)
    return part


def _told(leaf: Leaf, field: Field, dim: int | None) -> _lib.Lengths | None:
    """Returns the lengths that storage tells; None if it does not."""
    if (known := _lib.shapes(leaf.native)) is None:
        return None
    data, dimensions = known
    if dimensions > 0:
        shapes = np.frombuffer(data, np.int64).reshape(-1, dimensions)
        return lengths_of(along(shapes, dim, field))
    rows = leaf.native
    whole = isinstance(rows, _lib.Rows) and _layout(leaf)[1] in ("int64", "int32")
    return _lib.Lengths(rows) if whole else None


def _layout(leaf: Leaf) -> tuple[tuple[int, ...] | None, str]:
    """Returns shape and dtype of a leaf's samples."""
    [layout] = _lib.Program([leaf.native], _lib.Leaf(0, leaf.form)).layout()
    return layout
