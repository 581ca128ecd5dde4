"""What a profile was measured on, and how to tell whether this is it.

Owns two fingerprints: of a machine, and of a dataset. Reads no sample: fetching one may draw random
numbers, or take long.
"""

import dataclasses
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from fastload import _lib
from fastload.machine import cgroup
from fastload.machine.cpu import affinity, cpu_budget
from fastload.registry import name

__all__ = ["Data", "Machine"]

_SAME_MEMORY = 0.05
"""Kernels differ by as much, as a part, in what they say of the same memory."""


@dataclass(frozen=True)
class Machine:
    """A machine, as far as settings depend on it.

    Attributes:
        cores: The CPU budget of a rank.
        processors: Processors that the process may run on.
        memory_bytes: Memory of the host, or what the control group allows.
        cpu: The processor's model.
        python: Version.
        torch: Version.
        fastload: Version.
    """

    cores: int
    processors: int
    memory_bytes: int
    cpu: str
    python: str
    torch: str
    fastload: str

    @classmethod
    def here(cls) -> "Machine":
        """Returns the fingerprint of this machine."""
        memory, limit = psutil.virtual_memory().total, cgroup.memory_limit_bytes()
        return cls(
            cores=cpu_budget(),
            processors=affinity(),
            memory_bytes=memory if limit is None else min(memory, limit),
            cpu=_cpu_model(),
            python=platform.python_version(),
            torch=str(torch.__version__),
            fastload=_lib.__version__,
        )

    def differences(self, other: "Machine") -> Iterator[str]:
        """Yields what is different there, in words."""
        for field in dataclasses.fields(self):
            was, now = getattr(self, field.name), getattr(other, field.name)
            if field.name == "memory_bytes":
                if abs(was - now) > _SAME_MEMORY * max(was, now):
                    yield f"{was / 1e9:.1f} GB of memory, here {now / 1e9:.1f}"
            elif was != now:
                yield f"{field.name} {was}, here {now}"


@dataclass(frozen=True)
class Data:
    """A dataset, as far as it can be told without reading it.

    Attributes:
        kind: Its class.
        length: How many samples it has; -1 where it has no length.
        sample: Type and shape of the values of a sample, where native code makes it; else empty.
    """

    kind: str
    length: int = -1
    sample: str = ""

    @classmethod
    def of(cls, dataset: Any, program: _lib.Program | None = None) -> "Data":
        """Returns the fingerprint of a dataset.

        Args:
            dataset: The dataset.
            program: What makes its samples natively, if something does.
        """
        try:
            length = len(dataset)
        except (TypeError, NotImplementedError):
            length = -1
        layout = [] if program is None else program.layout()
        sample = ", ".join(f"{dtype} {_shape(shape)}" for shape, dtype in layout)
        return cls(name(type(dataset)), length, sample)

    def differences(self, other: "Data") -> Iterator[str]:
        """Yields what is different there, in words."""
        if self.kind != other.kind:
            yield f"a dataset {self.kind}, here {other.kind}"
        elif self.length != other.length:
            yield f"{self.length} samples, here {other.length}"
        if self.sample and other.sample and self.sample != other.sample:
            yield f"samples of {self.sample}, here {other.sample}"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "(...)" if shape is None else str(shape)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
