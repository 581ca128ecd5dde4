"""Iterators that are started: when their first batch is there, and what a process holds after them."""

import gc
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from torch.utils.data import DataLoader

from fastload import _lib

FIRST, LEAVE = "first batch, ms", "leaving, ms"


def first_batch(loader: Callable[[], DataLoader]) -> dict[str, float]:
    """Times `iter()` up to the first batch, then the end of the iterator."""
    contestant = loader()
    began_s = time.perf_counter()
    batches = iter(contestant)
    batch = next(batches)
    first_s = time.perf_counter() - began_s
    del batches
    leave_s = time.perf_counter() - began_s - first_s
    del batch
    return {FIRST: 1e3 * first_s, LEAVE: 1e3 * leave_s}


def held() -> dict[str, float]:
    """Counts what this process has: children, threads, descriptors, mappings of shared memory, memory."""
    gc.collect()
    pool, maps = _lib.pool_threads(), Path("/proc/self/maps").read_text(encoding="utf-8")
    return {
        "children": len(psutil.Process().children(recursive=True)),
        "threads": len(list(Path("/proc/self/task").iterdir())) - pool,
        "threads of the pool": pool,
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "mappings": sum(map(maps.count, ("memfd:", "/dev/shm/"))),
        "RSS, MB": psutil.Process().memory_info().rss / 1e6,
    }
