"""The CPU budget: how many CPUs this process may fill.

What the scheduler and the control groups allow, divided among the ranks on this host. Reads the machine at each
call and caches nothing.
"""

import contextlib
import os
from collections.abc import Callable

import psutil

from fastload.machine import cgroup
from fastload.machine.ranks import ranks_on_host


def cpu_budget(ranks: Callable[[], int] = ranks_on_host) -> int:
    """Returns how many workers can compute at once without queueing; at least 1."""
    on_host, allowed = ranks(), affinity()
    # the CPUs beyond this process's own matter only where ranks divide them
    present = cgroup.cpuset() or os.cpu_count() if on_host > 1 else None
    if present is not None and allowed < present and launcher_cpus() == os.sched_getaffinity(0):
        present = allowed
    return share(allowed, present, cgroup.cpu_quota(), on_host)


def launcher_cpus() -> set[int] | None:
    """Returns the CPUs of torchrun or a launcher like it; None under others, which give each rank its CPUs.

    That is the nearest parent process without the variable that it sets for its ranks.
    """
    if "LOCAL_WORLD_SIZE" not in os.environ:
        return None
    with contextlib.suppress(psutil.Error, OSError):
        for process in psutil.Process().parents():
            if "LOCAL_WORLD_SIZE" not in process.environ():
                return set(process.cpu_affinity() or ())
    return None


def affinity() -> int:
    """Returns the number of CPUs that the scheduler may run this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share(allowed: int, present: int | None, quota: float | None, ranks: int) -> int:
    """Returns one rank's share, rounded down; at least 1.

    A process bound to fewer CPUs than its control group has was bound individually (Slurm's `--cpus-per-task`,
    a launcher's NUMA binding): its CPUs are not divided again. The ranks share a quota, and the CPUs to which
    their launcher is bound (`taskset torchrun`), which are `present` then.

    Args:
        allowed: CPUs that this process may run on.
        present: CPUs of its control group, or else of the host.
        quota: CPU quota of the control groups, in CPUs.
        ranks: Training processes on this host.
    """
    bound = present is not None and allowed < present
    processors = allowed if bound else allowed / ranks
    return max(1, int(processors if quota is None else min(processors, quota / ranks)))
