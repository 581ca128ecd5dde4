"""The files that samples are read from, and putting them out of the page cache.

Finds them without opening any where a dataset lists them; else by watching what Python opens while some
samples are made. Never writes. Files that a library opens by itself are not found.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import Subset

from fastload.columns.dataset import Dataset as Columns

__all__ = ["CAN_EVICT", "evict", "files_of", "opened"]

CAN_EVICT = hasattr(os, "posix_fadvise")
"""Whether this system puts files out of the page cache."""

_LISTS = ("_paths", "samples", "imgs", "image_files", "images", "paths", "files")
"""Attributes by which columns, torchvision's datasets and many others list a file for each sample."""


def files_of(dataset: Any, indices: Sequence[int]) -> list[Path]:
    """Returns the files that a dataset lists for some samples; empty where it lists none."""
    if isinstance(dataset, Subset):
        return files_of(dataset.dataset, [int(dataset.indices[index]) for index in indices])
    if isinstance(dataset, Columns):
        lists = (files_of(column, indices) for _, column in dataset._leaves)
        return [path for paths in lists for path in paths]
    for name in _LISTS:
        listed = getattr(dataset, "__dict__", {}).get(name)
        if isinstance(listed, list | tuple) and len(listed) == len(dataset):
            paths = [_path(listed[index]) for index in indices]
            if all(path is not None and path.is_file() for path in paths):
                return [path for path in paths if path is not None]
    return []


def _path(entry: Any) -> Path | None:
    first = entry[0] if isinstance(entry, tuple | list) and entry else entry
    return Path(first) if isinstance(first, str | os.PathLike) and first else None


class _Opened:
    """Notes what Python opens for reading. An audit hook stays for as long as the process lives."""

    def __init__(self) -> None:
        self.paths: dict[Path, None] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.paths is None or event != "open":
            return
        path, mode = arguments[0], arguments[1]
        if isinstance(path, str | bytes) and (mode is None or "r" in mode):
            self.paths[Path(os.fsdecode(path))] = None


_hook: _Opened | None = None


@contextlib.contextmanager
def opened() -> Iterator[dict[Path, None]]:
    """Gives the files that Python opens within, in order, once each."""
    global _hook
    if _hook is None:
        _hook = _Opened()
    paths: dict[Path, None] = {}
    _hook.paths = paths
    try:
        yield paths
    finally:
        _hook.paths = None


def evict(paths: Iterable[Path]) -> int:
    """Puts files out of the page cache, as far as the kernel follows; returns the bytes of them.

    What is not yet written to storage stays.
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
