"""`Footprint`: what this process and its children hold: memory by kind, descriptors, threads.

Cheap figures are read for each window. The kernel walks all page tables for the proportional and private sizes,
so those, and the list of the children, are read once a minute.
"""

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psutil

from fastload import _lib
from fastload.machine import kernel_file

__all__ = ["Footprint", "limits_of"]

_SLOW_S = 60.0
_LISTED = Path("/proc/thread-self/children")  # absent if the kernel is built without it
_FIELDS = {"Pss:": "pss_bytes", "Private_Dirty:": "private_dirty_bytes"}


class Footprint:
    """Reads what the process holds. What cannot be read is absent."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._slow_at_s = -math.inf
        self._slow: dict[str, float] = {}

    def read(self, now_s: float) -> dict[str, float]:
        """Returns the figures.

        Args:
            now_s: The monotonic clock.

        Returns:
            `slab_bytes` (batches in native memory), `idle_slab_bytes` (kept for reuse), `fds`, `fd_limit`,
            `threads`; once a minute read anew, `pss_bytes`, `private_dirty_bytes`, the same of all children
            together with the prefix `children_`, and `children`.
        """
        slabs = _lib.memory_stats()
        figures: dict[str, float] = {
            "slab_bytes": slabs["leased_bytes"],
            "idle_slab_bytes": slabs["idle_bytes"],
        }
        with contextlib.suppress(psutil.Error, OSError):
            figures["fds"] = self._process.num_fds()
            figures["threads"] = self._process.num_threads()
            figures["fd_limit"] = self._process.rlimit(psutil.RLIMIT_NOFILE)[0]
        if now_s - self._slow_at_s >= _SLOW_S:
            self._slow_at_s, self._slow = now_s, self._read_slowly()
        return figures | self._slow

    def _read_slowly(self) -> dict[str, float]:
        figures: dict[str, float] = dict(_sizes(os.getpid()))
        with contextlib.suppress(psutil.Error):
            children = self._children()
            figures["children"] = len(children)
            figures |= _sums("children_", list(map(_sizes, children)))
        return figures

    def _children(self) -> list[int]:
        """Returns the ids of all processes below this one."""
        if _LISTED.exists():
            return list(_below(os.getpid()))
        # reads all processes of the machine, which may be thousands
        return [child.pid for child in self._process.children(recursive=True)]


def limits_of(figures: Mapping[str, float]) -> dict[str, float]:
    """Returns how far figures can grow, by their names.

    Args:
        figures: Those of a window.
    """
    limits = {
        "fds": figures.get("fd_limit"),
        "cuda_allocated_bytes": figures.get("cuda_limit_bytes"),
    }
    for name in ("rss_bytes", "children_private_dirty_bytes"):
        if name in figures and "free_bytes" in figures:
            limits[name] = figures[name] + figures["free_bytes"]
    return {name: limit for name, limit in limits.items() if limit}


def _below(pid: int) -> Iterator[int]:
    """Yields the ids of the processes below one. Format: `proc_pid_children(5)`."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in kernel_file.read(task / "children").split():
                yield int(child)
                yield from _below(int(child))


def _sizes(pid: int) -> Mapping[str, float]:
    """Returns the proportional and the private size of a process; empty if they cannot be read."""
    sizes = {}
    for line in kernel_file.read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        match line.split():
            case [name, number, "kB"] if name in _FIELDS:
                sizes[_FIELDS[name]] = 1024 * int(number)
    return sizes


def _sums(prefix: str, parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            sums[prefix + name] = sums.get(prefix + name, 0.0) + value
    return sums
