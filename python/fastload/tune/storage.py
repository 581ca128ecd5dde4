"""Three runs over the same samples that separate causes: in memory, page cache, storage.

Batches in memory show what the training can take; files in the page cache, what processing can do; evicted
files, what storage delivers (J. Mohan and others, "Analyzing and Mitigating Data Stalls in DNN Training",
VLDB 2021). Files are only read; `posix_fadvise` evicts them.
"""

import contextlib
import copy
import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as tree

from fastload.bad_samples.sample_files import listed_files
from fastload.sizes import rows_of
from fastload.tune.bench import Bench
from fastload.tune.measure import NOTHING_MS, Overdue, Run, end_workers, within
from fastload.tune.target import restored_generators

_MOST_SAMPLES = 2_000
_MATTERS = 0.9  # a rate below this fraction of another is limited by what differs between them
_SYSTEM = ("/proc", "/sys", "/dev")
_CODE = (".py", ".pyc", ".so")


@dataclass(frozen=True)
class Storage:
    """Rates of the three runs, in samples per second."""

    # batches in memory: what the training, or copying alone, can take; None where unknown
    cached: float | None
    warm: float | None  # files in the page cache: what processing can do
    cold: float | None  # evicted files; None where the samples' files are unknown
    files: int  # number of evicted files
    file_bytes: float  # bytes of a sample in them
    bytes_per_s: float | None  # read by as many threads as there were workers
    verdict: str  # which of them limits loading


def compare(bench: Bench, best: Run, seconds: float) -> Storage | None:
    """Makes the three runs in the lane and with the workers of the best run so far.

    Returns None where the loader makes no batches of indices, or where batches are too slow for it.
    """
    loader = bench.target.loader
    if bench.target.is_iterable or loader.batch_size is None or best.rate <= 0:
        return None
    size = int(loader.batch_size)
    length = len(loader.dataset)
    wanted = int(min(_MOST_SAMPLES, length, max(size, best.rate * seconds / 3)))
    indices = _spread(length, wanted, size)
    bench.display.doing("looking for files")
    paths = [Path(path) for index in indices for path in listed_files(loader.dataset, index)]
    if not paths or not all(path.is_file() for path in paths):
        indices, paths = _opened_files(bench, indices, size, seconds / 4)
    batches = [indices[start : start + size] for start in range(0, len(indices), size)]
    if not batches:
        return None
    variant = bench.target.variant(best.lane, best.workers, batch_sampler=batches)
    try:
        with restored_generators(variant), within(4 * seconds + 5):
            return _runs(bench, variant, best.workers, len(indices), paths, seconds)
    except (Overdue, OSError, RuntimeError):  # too slow, or its workers cannot be started
        return None
    finally:
        end_workers(variant)


def _runs(
    bench: Bench, loader: Any, workers: int, samples: int, paths: Sequence[Path], seconds: float
) -> Storage:
    bench.display.doing("files in the page cache")
    batch, _ = _epoch(loader)  # starts workers, and fills the page cache
    warm = samples / max(_epoch(loader)[1], 1e-9)
    cold = bytes_per_s = None
    total = 0
    if paths and hasattr(os, "posix_fadvise"):
        bench.display.doing("files out of the page cache")
        total = _evict(paths)
        cold = samples / max(_epoch(loader)[1], 1e-9)
        _evict(paths)
        bytes_per_s = total / max(_reading_s(paths, workers), 1e-9)
    cached = _cached(bench, batch, seconds / 4)
    return Storage(
        cached=cached,
        warm=warm,
        cold=cold,
        files=len(paths),
        file_bytes=total / samples if paths else 0.0,
        bytes_per_s=bytes_per_s,
        verdict=_verdict(cached, warm, cold),
    )


def _verdict(cached: float | None, warm: float, cold: float | None) -> str:
    if cold is not None and cold < _MATTERS * warm:
        return "storage limits loading in the first epoch, and where the data is larger than the memory"
    if cached is not None and warm >= _MATTERS * cached:
        return "the training is the limit: samples come as fast as it takes them"
    return "processing is the limit: files come fast enough"


def _epoch(loader: Any) -> tuple[Any, float]:
    """Returns the first batch of an epoch, and its seconds. Errors take the place of batches."""
    first = None
    began = time.perf_counter()
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return first, time.perf_counter() - began
        except Exception:
            continue
        if first is None:
            first = batch


def _cached(bench: Bench, batch: Any, seconds: float) -> float | None:
    """Returns the samples per second of batches in memory: taken by the user's step, or copied."""
    if batch is None:
        return None
    bench.display.doing("batches in memory")
    samples = rows_of(batch) or 1
    if bench.step is not None and bench.has_users_step:
        is_measured = 1e3 * bench.step.alone_s >= NOTHING_MS * samples
        return samples / bench.step.alone_s if is_measured else None
    taken = 0
    until = (began := time.perf_counter()) + min(seconds, 0.5)
    while time.perf_counter() < until:
        tree.tree_map_only((torch.Tensor, np.ndarray), copy.deepcopy, batch)
        taken += samples
    return taken / (time.perf_counter() - began)


def _spread(length: int, wanted: int, size: int) -> list[int]:
    """Returns indices spread over a dataset, in whole batches if it has one."""
    wanted = max(1, wanted // size) * size if length >= size else length
    spread = np.linspace(0, length - 1, min(wanted, length)).astype(int)
    return [int(index) for index in np.unique(spread)]


def _opened_files(
    bench: Bench, indices: list[int], size: int, seconds: float
) -> tuple[list[int], list[Path]]:
    """Makes some samples in this thread; returns their indices and the files that Python opened.

    Files that a library opens by itself are not found. Without files for a tenth of the samples, returns
    all indices and no files.
    """
    dataset = bench.target.variant("inline", 0).dataset
    until = time.perf_counter() + seconds
    made: list[int] = []
    with _opened() as paths:
        for index in indices:
            try:
                dataset[index]
            except Exception:
                continue
            made.append(index)
            if time.perf_counter() > until and len(made) >= size:
                break
    files = [
        path
        for path in paths
        if path.suffix not in _CODE and path.is_file() and not str(path).startswith(_SYSTEM)
    ]
    return (made, files) if len(files) * 10 >= len(made) else (indices, [])


_noted: dict[Path, None] | None = None  # the files opened within `_opened`


@contextlib.contextmanager
def _opened() -> Iterator[dict[Path, None]]:
    """Yields the files that Python opens for reading within the block, in order, without repeats."""
    global _noted
    _hook()
    paths: dict[Path, None] = {}
    _noted = paths
    try:
        yield paths
    finally:
        _noted = None


@functools.cache
def _hook() -> None:
    """Adds an audit hook, which cannot be removed: it stays as long as the process lives."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _noted is None or event != "open":
        return
    path, mode = arguments[0], arguments[1]
    if isinstance(path, str | bytes) and (mode is None or "r" in mode):
        _noted[Path(os.fsdecode(path))] = None


def _evict(paths: Sequence[Path]) -> int:
    """Evicts files from the page cache, as far as the kernel follows; returns their bytes.

    Pages that are not yet written to storage stay.
    """
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                size = os.fstat(descriptor).st_size
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                total += size
            finally:
                os.close(descriptor)
    return total


def _reading_s(paths: Sequence[Path], readers: int) -> float:
    """Returns the seconds that it takes to read files whole."""
    began = time.perf_counter()
    with ThreadPoolExecutor(max(1, readers)) as pool:
        list(pool.map(_read, paths))
    return time.perf_counter() - began


def _read(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.read_bytes()
