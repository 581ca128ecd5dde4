"""`Footprint`: what this process and its children hold: memory by kind, descriptors, threads.

Cheap figures are read for each window. The kernel walks all page tables for the proportional and private sizes,
so those, and the list of the children, are read once a minute.
"""

import contextlib
import math
import os
import resource
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psutil

from fastload import _lib
from fastload.machine import kernel_file, processes

__all__ = ["Footprint"]

_SLOW_S = 60.0
_FIELDS = {"Pss:": "pss_bytes", "Private_Dirty:": "private_dirty_bytes"}
_PAGE = resource.getpagesize()


class Footprint:
    """Reads the resources of the process. Unreadable ones are absent."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._slow_at_s = -math.inf
        self._slow: dict[str, float] = {}
        self._first: dict[int, _Child] = {}

    def read(self, now_s: float) -> dict[str, float]:
        """Returns the figures, by the monotonic clock.

        `children_written_bytes` is the private memory of the children without the growth that is none of their doing:
        a page becomes private to a child, too, when this process writes to it and gets a copy.
        """
        slabs = _lib.memory_stats()
        figures: dict[str, float] = {
            "slab_bytes": slabs["leased_bytes"],
            "idle_slab_bytes": slabs["idle_bytes"],
        }
        with contextlib.suppress(psutil.Error, OSError):
            figures["fds"] = self._process.num_fds()
            figures["threads"] = self._process.num_threads()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # macOS has it, where psutil has none
        if limit != resource.RLIM_INFINITY:
            figures["fd_limit"] = limit
        if now_s - self._slow_at_s >= _SLOW_S:
            self._slow_at_s, self._slow = now_s, self._read_slowly()
        return figures | self._slow

    def _read_slowly(self) -> dict[str, float]:
        figures: dict[str, float] = dict(_sizes(os.getpid()))
        with contextlib.suppress(psutil.Error):
            children = processes.children()
            figures["children"] = len(children)
            sizes = {pid: _sizes(pid) for pid in children}
            figures |= _sums("children_", sizes.values())
            now = {pid: _Child.read(pid, sizes[pid]) for pid in children}
            self._first = {pid: self._first.get(pid, each) for pid, each in now.items()}
            figures["children_written_bytes"] = sum(
                each.written_bytes(self._first[pid]) for pid, each in now.items()
            )
        return figures


class _Child(NamedTuple):
    """Memory of a child, in bytes."""

    private: float
    resident: float
    faulted: float  # pages that it has touched first, or got a copy of by writing

    @classmethod
    def read(cls, pid: int, sizes: Mapping[str, float]) -> "_Child":
        """Reads the resources of a child, given its sizes."""
        stat = kernel_file.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        faults = int(stat[7]) if len(stat) > 7 else 0  # minflt; proc(5)
        private = sizes.get("private_dirty_bytes", 0.0)
        resident = psutil.Process(pid).memory_info().rss
        return cls(private, resident, float(faults * _PAGE))

    def written_bytes(self, first: "_Child") -> float:
        """Returns the private memory, which has grown by no more than what the child allocated or wrote."""
        # a huge page is one fault, and a page that is copied makes no more of them resident
        written = max(self.resident - first.resident, self.faulted - first.faulted)
        return min(self.private, first.private + written)


def _sizes(pid: int) -> Mapping[str, float]:
    """Returns the proportional and the private size of a process; empty if they cannot be read."""
    sizes = processes.memory_of(pid)
    return {name: sizes[field] for field, name in _FIELDS.items() if field in sizes}


def _sums(prefix: str, parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            sums[prefix + name] = sums.get(prefix + name, 0.0) + value
    return sums
