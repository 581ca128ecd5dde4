"""The machine: what it is, what one rank of a training gets of it, and how busy it is.

Reads the kernel's own counters when it is called and keeps no thread. What cannot be read is 0.
"""

import contextlib
import dataclasses
import os
import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import torch

from fastload import _lib
from fastload.machine import cgroup, kernel_file, memory, processes
from fastload.machine.cpu import affinity, cpu_budget
from fastload.machine.processes import CpuTime, thread_time
from fastload.machine.ranks import ranks_on_host

_SAME_MEMORY = 0.05  # kernels report the same memory with up to this relative difference
_NO_TIME = CpuTime(0.0, 0.0)


@dataclass(frozen=True)
class Machine:
    """The properties of a machine that settings depend on."""

    cores: int  # CPU budget of a rank
    processors: int  # CPUs that the process may run on
    memory_bytes: int  # memory of the host, or the limit of the control group or of `ulimit -v`
    cpu: str  # model of the CPU
    python: str  # version
    torch: str  # version
    fastload: str  # version

    @classmethod
    def here(cls) -> "Machine":
        """Returns the properties of this machine."""
        return cls(
            cores=cpu_budget(),
            processors=affinity(),
            memory_bytes=memory.read().total_bytes,
            cpu=_cpu_model(),
            python=platform.python_version(),
            torch=str(torch.__version__),
            fastload=_lib.__version__,
        )

    def differences(self, here: "Machine") -> Iterator[str]:
        """Yields what differs between this machine and the one here, in words."""
        for field in dataclasses.fields(self):
            was, now = getattr(self, field.name), getattr(here, field.name)
            if field.name == "memory_bytes":
                if abs(was - now) > _SAME_MEMORY * max(was, now):
                    yield f"{was / 1e9:.1f} GB of memory, here {now / 1e9:.1f}"
            elif was != now:
                yield f"{field.name} {was}, here {now}"


@dataclass(frozen=True)
class Host:
    """A machine and its division among the ranks of a training."""

    ranks: int  # training processes that share it
    host_cores: int  # cores that the ranks may use together
    available_bytes: int  # memory that is free for the ranks together
    accelerators: int  # accelerators that torch sees
    machine: Machine  # its other properties, as a profile stores them

    @classmethod
    def here(cls) -> "Host":
        """Returns this machine."""
        return cls(
            ranks=ranks_on_host(),
            host_cores=cpu_budget(lambda: 1),
            available_bytes=memory.read().available_bytes,
            accelerators=torch.accelerator.device_count(),
            machine=Machine.here(),
        )

    @property
    def cores(self) -> float:
        """Cores of one rank."""
        return self.host_cores / self.ranks

    @property
    def memory_bytes(self) -> int:
        """Total memory."""
        return self.machine.memory_bytes

    @property
    def rank_bytes(self) -> int:
        """Memory that is free for one rank."""
        return self.available_bytes // self.ranks


class PoolClock:
    """CPU time of the native threads, from the scheduler's accounts (Linux; elsewhere 0)."""

    def __init__(self) -> None:
        self._counted: dict[int, CpuTime] = {}

    def passed(self) -> CpuTime:
        """Returns the time since the last call; a new thread counts from its start, and one that ended does not."""
        cpu_s = queued_s = 0.0
        counted: dict[int, CpuTime] = {}
        for thread in _lib.pool_thread_ids():
            now = thread_time(thread)
            if now is not None:  # else it has just ended
                before = self._counted.get(thread, _NO_TIME)
                cpu_s += now.cpu_s - before.cpu_s
                queued_s += now.queued_s - before.queued_s
                counted[thread] = now
        self._counted = counted
        return CpuTime(cpu_s, queued_s)


class LoadingClock:
    """CPU time of loading in a lane, workers included, without the training step.

    Python's worker threads cannot be told apart from the process's other threads: in their lane all CPU time
    of the process counts, except the step's.
    """

    def __init__(self, lane: str) -> None:
        self._all_threads = lane == "threads"
        self._pool = PoolClock()
        self._step_s = 0.0
        self.queued_s = 0.0  # native threads were ready and no CPU was free; set by `passed_s`
        self.taking_s = (
            0.0  # CPU time of the consuming thread for taking batches; set by `passed_s`
        )

    def start(self) -> None:
        """Starts counting."""
        self._pool.passed()
        self._step_s = 0.0
        self._children_s = _children_cpu_s()
        self._process_s = time.process_time()
        self._thread_s = time.thread_time()

    def exclude(self, seconds: float) -> None:
        """Leaves out CPU seconds that the consuming thread spent in a training step."""
        self._step_s += seconds

    def passed_s(self) -> float:
        """Returns the CPU seconds of loading since the start."""
        thread_s = time.thread_time() - self._thread_s
        pool = self._pool.passed()
        self.queued_s = pool.queued_s
        self.taking_s = max(0.0, thread_s - self._step_s)
        if self._all_threads:
            own_s = time.process_time() - self._process_s
        else:
            own_s = thread_s + pool.cpu_s
        return max(0.0, _children_cpu_s() - self._children_s + own_s - self._step_s)


def worker_bytes() -> list[int]:
    """Returns the private memory of each child process: without the pages that it shares with its parent."""
    children = map(processes.memory_of, processes.children())
    return [each.get("Private_Clean:", 0) + each.get("Private_Dirty:", 0) for each in children]


def _children_cpu_s() -> float:
    """Returns the CPU seconds of the child processes that are alive."""
    seconds = 0.0
    for pid in processes.children():
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            seconds += times.user + times.system
    return seconds


def other_programs_cpu_s() -> float:
    """Returns the CPU seconds of the host without this process and its children.

    0 where this process may not use all CPUs of the host: other programs may run on the other ones.
    """
    if affinity() != os.cpu_count() or cgroup.cpu_quota() is not None:
        return 0.0
    host = psutil.cpu_times()
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    busy_s = sum(getattr(host, name, 0.0) for name in names)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = time.process_time() + ended.ru_utime + ended.ru_stime + _children_cpu_s()
    return float(busy_s - own_s)


def _cpu_model() -> str:
    lines = kernel_file.read("/proc/cpuinfo").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
