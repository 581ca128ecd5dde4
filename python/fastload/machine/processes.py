"""What the kernel says of the children and the threads of this process: ids, memory, time on a CPU."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from fastload.machine import kernel_file

_LISTED = Path("/proc/thread-self/children")  # absent if the kernel is built without it


class CpuTime(NamedTuple):
    """Time of threads, in seconds."""

    cpu_s: float  # running on a CPU
    queued_s: float  # ready to run while no CPU was free


def thread_time(thread: int) -> CpuTime | None:
    """Returns the time of a thread so far, by its number in the system; None if it is unknown, or has ended.

    Format: `scheduler/sched-stats` of the kernel's documentation.
    """
    match kernel_file.read(f"/proc/self/task/{thread}/schedstat").split():
        case [running, queued, *_]:
            return CpuTime(int(running) / 1e9, int(queued) / 1e9)
    return None


def memory_of(pid: int) -> dict[str, int]:
    """Returns the sizes of a process's memory, such as `Pss:`; empty if they cannot be read.

    The kernel walks all page tables for them. Format: `proc_pid_smaps(5)`.
    """
    return kernel_file.sizes(f"/proc/{pid}/smaps_rollup")


def children() -> list[int]:
    """Returns the ids of all processes below this one."""
    if _LISTED.exists():
        return list(_below(os.getpid()))
    # reads all processes of the machine, which may be thousands
    return [child.pid for child in psutil.Process().children(recursive=True)]


def _below(pid: int) -> Iterator[int]:
    """Yields the ids of the processes below one. Format: `proc_pid_children(5)`."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in kernel_file.read(task / "children").split():
                yield int(child)
                yield from _below(int(child))
