"""Cached, warm and cold: three runs over the same samples that separate causes.

Batches that lie in memory show what the training can take; files in the page cache, what processing can do;
files put out of it, what storage gives (J. Mohan and others, "Analyzing and Mitigating Data Stalls in DNN
Training", VLDB 2021). Files are read only, and put out with `posix_fadvise`.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as tree

from fastload.tune.bench import Bench
from fastload.tune.deadline import Overdue, within
from fastload.tune.files import CAN_EVICT, evict, files_of, opened
from fastload.tune.findings import Storage
from fastload.tune.measure import Run, size_of
from fastload.tune.undisturbed import undisturbed

__all__ = ["compare"]

_MOST_SAMPLES = 2_000
_MATTERS = 0.9
"""A rate below this part of another is held up by what they differ in."""


def compare(bench: Bench, best: Run, seconds: float) -> Storage | None:
    """Returns what three runs say, in the lane and with the workers of the best run so far.

    None where a loader makes no batches of indices, or where batches are too slow for it.
    """
    loader = bench.target.loader
    if bench.target.is_iterable or loader.batch_size is None or best.rate <= 0:
        return None
    size = int(loader.batch_size)
    known = len(loader.dataset)
    wanted = int(min(_MOST_SAMPLES, known, max(size, best.rate * seconds / 3)))
    indices = _spread(known, wanted, size)
    bench.tell("looking for files")
    paths = files_of(loader.dataset, indices)
    if not paths:
        indices, paths = _watched(bench, indices, size, seconds / 4)
    batches = [indices[start : start + size] for start in range(0, len(indices), size)]
    if not batches:
        return None
    made = bench.target.variant(best.lane, best.workers, batch_sampler=batches)
    try:
        with undisturbed(made), within(4 * seconds + 5):
            return _runs(bench, made, best, batches, paths, seconds)
    except (Overdue, OSError, RuntimeError):  # too slow, or its workers cannot be started
        return None
    finally:
        _end(made)


def _runs(
    bench: Bench,
    loader: Any,
    best: Run,
    batches: Sequence[Sequence[int]],
    paths: list[Path],
    seconds: float,
) -> Storage:
    samples = sum(map(len, batches))
    bench.tell("files in the page cache")
    kept, _ = _epoch(loader)  # starts workers, and fills the page cache
    warm = samples / max(_epoch(loader)[1], 1e-9)
    cold = bytes_per_s = None
    total = 0
    if paths and CAN_EVICT:
        bench.tell("files out of the page cache")
        total = evict(paths)
        cold = samples / max(_epoch(loader)[1], 1e-9)
        evict(paths)
        bytes_per_s = total / max(_read(paths, best.workers), 1e-9)
    cached = _cached(bench, kept, seconds / 4)
    return Storage(
        cached=cached,
        warm=warm,
        cold=cold,
        files=len(paths),
        file_bytes=total / samples if paths else 0.0,
        bytes_per_s=bytes_per_s,
        verdict=_verdict(cached, warm, cold),
    )


def _epoch(loader: Any) -> tuple[Any, float]:
    """Returns the first batch of an epoch, and its seconds. Errors take the place of batches."""
    kept = None
    began = time.perf_counter()
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return kept, time.perf_counter() - began
        except Exception:  # counted by the runs; a warm file is warm, decoded or not
            continue
        if kept is None:
            kept = batch


def _end(loader: Any) -> None:
    iterator, loader._iterator = loader._iterator, None
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()


def _watched(
    bench: Bench, indices: list[int], size: int, seconds: float
) -> tuple[list[int], list[Path]]:
    """Makes some samples in this thread, and returns them with the files that Python opened for them."""
    dataset = bench.target.variant("inline", 0).dataset
    until = time.perf_counter() + seconds
    made: list[int] = []
    with opened() as paths:
        for index in indices:
            try:
                dataset[index]
            except Exception:  # counted by the runs
                continue
            made.append(index)
            if time.perf_counter() > until and len(made) >= size:
                break
    folder = tuple(str(each) for each in (Path("/proc"), Path("/sys"), Path("/dev")))
    files = [path for path in paths if path.is_file() and not str(path).startswith(folder)]
    data = [path for path in files if path.suffix not in (".py", ".pyc", ".so")]
    return (made, data) if len(data) * 10 >= len(made) else (indices, [])


def _cached(bench: Bench, batch: Any, seconds: float) -> float | None:
    """Returns how many samples per second can be taken of batches that lie in memory."""
    if batch is None:
        return None
    bench.tell("batches in memory")
    if bench.step is not None and bench.is_asked:
        return size_of(batch) / bench.step.alone_s
    taken = 0
    until = (began := time.perf_counter()) + min(seconds, 0.5)
    while time.perf_counter() < until:
        _copied(batch)
        taken += size_of(batch)
    return taken / (time.perf_counter() - began)


def _copied(batch: Any) -> Any:
    return tree.tree_map(_copy, batch)


def _copy(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _read(paths: Sequence[Path], readers: int) -> float:
    """Returns how many seconds it takes to read files whole."""
    began = time.perf_counter()
    with ThreadPoolExecutor(max(1, readers)) as pool:
        for _ in pool.map(_size, paths):
            pass
    return time.perf_counter() - began


def _size(path: Path) -> int:
    try:
        return len(path.read_bytes())
    except OSError:
        return 0


def _spread(known: int, wanted: int, size: int) -> list[int]:
    """Returns indices from all over a dataset, whole batches of them where there are."""
    wanted = max(1, wanted // size) * size if known >= size else known
    spread = np.linspace(0, known - 1, min(wanted, known)).astype(int)
    return [int(index) for index in np.unique(spread)]


def _verdict(cached: float | None, warm: float, cold: float | None) -> str:
    if cold is not None and cold < _MATTERS * warm:
        return "storage: the first epoch, and data larger than the memory, wait for files"
    if cached is not None and warm >= _MATTERS * cached:
        return "the training: samples come as fast as it takes them"
    return "processing: files come fast enough, and making samples of them takes the time"
