"""What the process has: memory, descriptors, threads, mappings, children; and what a round left behind."""

import contextlib
import ctypes
import gc
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from fastload import _lib
from fastload.machine import kernel_file
from fastload.machine.processes import memory_of

SETTLE_S = 10.0
"""What a round leaves may go by itself for so long: idle threads, ended workers."""

TRIMS_S = 2.2
"""A worker, or a parent, has given idle memory back after so long."""

_SHARED = re.compile(r"/memfd:fastload|/dev/shm/|\(deleted\)")
_OF_TORCH = re.compile(r"torch_(\d+)_")


class _MallocInfo(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *(
            (name, ctypes.c_size_t)
            for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
        ),
    )


_libc: Any = ctypes.CDLL(None)
_HAS_GLIBC = hasattr(_libc, "mallinfo2")
if _HAS_GLIBC:
    _libc.mallinfo2.restype = _MallocInfo


_processes = {os.getpid()}


def note_forks() -> None:
    """Remembers from now on which processes are started: files in `/dev/shm` bear their numbers."""
    fork = os.fork

    def noted() -> int:
        pid = fork()
        _processes.add(pid)
        return pid

    os.fork = noted


class Held(NamedTuple):
    """What a round must give back."""

    descriptors: int
    threads: int
    shared_mappings: int
    children: int
    leased_bytes: int
    shm_files: int


def held() -> Held:
    """Returns what this process holds now."""
    return Held(
        _entries("/proc/self/fd"),
        _entries("/proc/self/task") - _lib.pool_threads(),
        len(_SHARED.findall(Path("/proc/self/maps").read_text())),
        len(children()),
        _lib.memory_stats()["leased_bytes"],
        sum(
            int(name[1]) in _processes for name in map(_OF_TORCH.match, _names("/dev/shm")) if name
        ),
    )


def settle(before: Held) -> Held:
    """Waits until no more is held than `before`, at most `SETTLE_S`; returns what is held then."""
    _let_go()  # also of torch's iterators, which may wait five seconds for each of their workers
    deadline = time.monotonic() + SETTLE_S
    while more(now := held(), before) and time.monotonic() <= deadline:
        time.sleep(0.05)
        _let_go()
    return now


def _let_go() -> None:
    gc.collect()
    _lib.park()  # and gives memory kept for reuse back


def more(now: Held, before: Held) -> list[str]:
    """Returns in words of what there is more than before."""
    pairs = zip(Held._fields, now, before, strict=True)
    left = [f"{name.replace('_', ' ')}: {n} in place of {b}" for name, n, b in pairs if n > b]
    return [*left, f"threads are {', '.join(threads())}"] if now.threads > before.threads else left


def threads() -> list[str]:
    """Returns this process's threads: its name, where in the kernel it waits and, of Python's, in which function."""
    python = {thread.native_id: thread for thread in threading.enumerate()}
    frames = sys._current_frames()
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            name, where = (task / "comm").read_text().strip(), (task / "wchan").read_text()
            if (thread := python.get(int(task.name))) is not None:
                frame = frames.get(thread.ident or 0)
                name, where = thread.name, where if frame is None else frame.f_code.co_qualname
            found.append(f"{name} ({where})")
    return found


def children() -> list[int]:
    """Returns the processes that this one started and that are still there, zombies too."""
    found: list[int] = []
    for task in _names("/proc/self/task"):
        try:
            found += map(int, Path(f"/proc/self/task/{task}/children").read_text().split())
        except OSError:
            continue  # the thread has ended
    return found


def light() -> dict[str, float]:
    """Returns what is cheap to know: memory by kind, and counts; of this process alone."""
    status = kernel_file.sizes("/proc/self/status")
    figures: dict[str, float] = {
        "anonymous": status["RssAnon:"],
        "shared": status["RssShmem:"],
        "leased": _lib.memory_stats()["leased_bytes"],
        "descriptors": _entries("/proc/self/fd"),
        "threads": _entries("/proc/self/task"),
        "mappings": Path("/proc/self/maps").read_bytes().count(b"\n"),
    }
    if _HAS_GLIBC:
        info = _libc.mallinfo2()
        figures["heap in use"] = info.uordblks + info.hblkhd
    return figures


def full() -> dict[str, float]:
    """Returns what is dear to know; what the allocators keep is given back first."""
    gc.collect()
    _lib.park()
    if _HAS_GLIBC:
        _libc.malloc_trim(0)
    sizes = memory_of(os.getpid())
    counts = light()
    return {
        "RSS": sizes["Rss:"],
        "PSS": sizes["Pss:"],
        "USS": sizes["Private_Clean:"] + sizes["Private_Dirty:"],
        **{name: counts[name] for name in ("descriptors", "threads", "mappings")},
        "children": len(children()),
    }


def workers_bytes() -> float:
    """Returns the memory that the children have each for themselves, together."""
    return sum(memory_of(pid).get("Private_Dirty:", 0) for pid in children())


def _entries(folder: str) -> int:
    return len(_names(folder))


def _names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]
