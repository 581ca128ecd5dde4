"""What one training process may use here: processors and memory.

Owns the division among ranks. Reads the machine when it is asked and keeps nothing.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from fastload import _lib, cgroup
from fastload.cpu import cpu_budget
from fastload.ranks import ranks_on_host

__all__ = ["Host", "assume_ranks"]


@dataclass(frozen=True)
class Host:
    """A machine, as a rank of a job has it.

    Attributes:
        ranks: Training processes that share it.
        host_cores: Processors that they may fill together.
        memory_bytes: Memory that there is.
        available_bytes: What of it is free for them together.
        accelerators: Accelerators that torch sees.
        cpu: The processor's model.
        python: Version.
        torch: Version.
        fastload: Version.
    """

    ranks: int
    host_cores: int
    memory_bytes: int
    available_bytes: int
    accelerators: int
    cpu: str
    python: str
    torch: str
    fastload: str

    @classmethod
    def here(cls) -> "Host":
        """Returns this machine."""
        memory = psutil.virtual_memory()
        room = cgroup.memory_available_bytes()
        share = cgroup.memory_share()
        total = memory.total
        if room is not None and share < 1:
            total = min(total, int(room / (1 - share)))
        return cls(
            ranks=ranks_on_host(),
            host_cores=cpu_budget(lambda: 1),
            memory_bytes=total,
            available_bytes=memory.available if room is None else min(memory.available, room),
            accelerators=torch.accelerator.device_count(),
            cpu=_model(),
            python=platform.python_version(),
            torch=str(torch.__version__),
            fastload=_lib.__version__,
        )

    @property
    def cores(self) -> float:
        """Processors of one rank."""
        return self.host_cores / self.ranks

    @property
    def rank_bytes(self) -> int:
        """Memory that is free for one rank."""
        return self.available_bytes // self.ranks


def assume_ranks(ranks: int) -> None:
    """Has this process take itself for one of several ranks on this host, as torchrun says it."""
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
