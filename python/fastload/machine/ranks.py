"""The number of training processes on this host, and the rank of this one in its job.

Read from what launchers leave in the environment, else from the process group of
`torch.distributed` if there is one. Initialises nothing.
"""

import os
import re
from collections.abc import Callable, Mapping

import torch
import torch.distributed

# "2(x3),1" reads: two tasks on each of the first three nodes, one on the fourth.
_SLURM_GROUP = re.compile(r"(\d+)(?:\(x(\d+)\))?")

# The local sizes of launchers that do not set torchrun's LOCAL_WORLD_SIZE: Open MPI, MPICH and
# Intel MPI, PMI.
_LOCAL_SIZES = (
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
)

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def rank(environ: Mapping[str, str] = os.environ) -> int:
    """Returns the number of this process among those of its job; 0 without one.

    Args:
        environ: The environment that launchers set; read if torch has no process group.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    for name in _RANKS:
        if (found := _natural(environ, name)) is not None:
            return found
    # Lightning's own launcher sets these alone
    local, node = _natural(environ, "LOCAL_RANK") or 0, _natural(environ, "NODE_RANK") or 0
    return local + (node * ranks_on_host(environ) if node else 0)


def ranks_on_host(
    environ: Mapping[str, str] = os.environ,
    accelerators: Callable[[], int] = torch.accelerator.device_count,
    group_size: Callable[[], int] | None = None,
) -> int:
    """Returns how many ranks of this job run on this host; at least 1.

    Args:
        environ: The environment that launchers set.
        accelerators: Counts this host's accelerators; called only if no launcher gave the number for this host
            and the job has more than one rank.
        group_size: Returns the number of ranks of the job, for when no launcher gave it; the size of torch's
            process group by default.
    """
    local = _number(environ, "LOCAL_WORLD_SIZE") or _slurm(environ)
    if local is not None:
        return local
    for name in _LOCAL_SIZES:
        if (local := _number(environ, name)) is not None:
            return local
    world = _number(environ, "WORLD_SIZE") or (group_size or _group_size)()
    return 1 if world == 1 else max(1, min(world, accelerators()))


def rank_of(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Returns the rank of this process and the number of ranks of its job; (0, 1) without a launcher."""
    return rank(environ), _number(environ, "WORLD_SIZE") or _group_size()


def _group_size() -> int:
    """Returns the size of torch's process group; 1 if there is none."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def _number(environ: Mapping[str, str], name: str) -> int | None:
    """Returns a positive integer, or None if the variable is missing or anything else."""
    return _natural(environ, name) or None


def _natural(environ: Mapping[str, str], name: str) -> int | None:
    """Returns an integer from 0 on, or None if the variable is missing or anything else."""
    text = environ.get(name, "").strip()
    return int(text) if text.isdecimal() else None


def _slurm(environ: Mapping[str, str]) -> int | None:
    """Returns how many tasks Slurm runs on this node.

    Only inside a step: an allocation alone (`salloc`, a batch script that starts one
    process) sets the counts of tasks that were never started.
    """
    if _number(environ, "SLURM_STEP_NUM_TASKS") in (None, 1):
        return None
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"):
        counts = [
            int(count)
            for count, times in _SLURM_GROUP.findall(environ.get(name, ""))
            for _ in range(int(times or 1))
        ]
        if counts:
            node = environ.get("SLURM_NODEID", "0")
            index = int(node) if node.isdecimal() else 0
            return max(1, counts[min(index, len(counts) - 1)])
    return None
