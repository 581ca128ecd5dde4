"""How many processors this process may fill: the CPU budget.

What the scheduler and the control groups allow, divided among the ranks on this host. Reads
the machine each time it is asked and keeps nothing.
"""

import os
from collections.abc import Callable

from fastload.machine import cgroup
from fastload.machine.ranks import ranks_on_host


def cpu_budget(ranks: Callable[[], int] = ranks_on_host) -> int:
    """Returns how many workers can compute at once without queueing; at least 1."""
    on_host = ranks()
    # what there is besides this process's own processors matters only where ranks divide it
    present = cgroup.cpuset() or os.cpu_count() if on_host > 1 else None
    return share(affinity(), present, cgroup.cpu_quota(), on_host)


def affinity() -> int:
    """Returns on how many processors the scheduler may run this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share(allowed: int, present: int | None, quota: float | None, ranks: int) -> int:
    """Returns one rank's share, rounded down; at least 1.

    A process that is bound to fewer processors than its control group has was bound on its own
    (Slurm's `--cpus-per-task`, a launcher's NUMA binding): those are not divided again. A quota
    is always common to the ranks.

    Args:
        allowed: Processors that this process may run on.
        present: Processors that its control group, or else the host, has.
        quota: Processors' worth of time that the control groups allow.
        ranks: Training processes on this host.
    """
    bound = present is not None and allowed < present
    processors = allowed if bound else allowed / ranks
    return max(1, int(processors if quota is None else min(processors, quota / ranks)))
