"""What one training process may use here: processors and memory.

Owns the division among ranks. Reads the machine when it is asked and keeps nothing.
"""

import os
from dataclasses import dataclass

import torch

from fastload.machine.budget import available_bytes
from fastload.machine.cpu import cpu_budget
from fastload.machine.ranks import ranks_on_host
from fastload.tune.fingerprint import Machine

__all__ = ["Host", "assume_ranks"]


@dataclass(frozen=True)
class Host:
    """A machine, as a rank of a job has it.

    Attributes:
        ranks: Training processes that share it.
        host_cores: Processors that they may fill together.
        available_bytes: Memory that is free for them together.
        accelerators: Accelerators that torch sees.
        machine: What a profile says of it.
    """

    ranks: int
    host_cores: int
    available_bytes: int
    accelerators: int
    machine: Machine

    @classmethod
    def here(cls) -> "Host":
        """Returns this machine."""
        return cls(
            ranks=ranks_on_host(),
            host_cores=cpu_budget(lambda: 1),
            available_bytes=available_bytes(),
            accelerators=torch.accelerator.device_count(),
            machine=Machine.here(),
        )

    @property
    def cores(self) -> float:
        """Processors of one rank."""
        return self.host_cores / self.ranks

    @property
    def memory_bytes(self) -> int:
        """Memory that there is."""
        return self.machine.memory_bytes

    @property
    def rank_bytes(self) -> int:
        """Memory that is free for one rank."""
        return self.available_bytes // self.ranks


def assume_ranks(ranks: int) -> None:
    """Has this process take itself for one of several ranks on this host, as torchrun says it."""
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
