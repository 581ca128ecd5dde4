"""Troubles of the machine: other programs, a quota, swapping, a page cache that is lost."""

import contextlib
import ctypes
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastload.columns import Npy

from .planted import finds, planted, program
from .planted_levels import Later
from .real_runs import STEP_S, Trained, Training, kernel_files, rest

_BYTES = bytes(1 << 17)


def compute(*_: Any) -> None:
    """Trains as a healthy step does that uses the CPU: native code that gives the interpreter up."""
    end = time.thread_time() + STEP_S
    while time.thread_time() < end:
        hashlib.sha256(_BYTES)


@planted(
    "another program takes the CPUs from step 1000 on",
    finds("jump", "machine", "since step ", "because the machine slows it (no CPU was free for "),
    slow=True,
)
def _neighbour() -> Iterator[Training]:
    with contextlib.ExitStack() as stack:

        def train(step: int, *_: Any) -> None:
            compute()
            if step == 1000:
                for _ in range(4 * (os.cpu_count() or 1)):
                    stack.enter_context(program("sh", "-c", "while :; do :; done"))

        yield Training(train, steps=3000, every_s=0.1)


@planted(
    "a CPU quota of a third of a CPU",
    finds("machine", "machine", "a CPU quota holds the process back"),
)
def _quota() -> Iterator[Training]:
    is_real = os.access(CPU_GROUPS, os.W_OK)
    with _throttled() if is_real else _told_of_throttling() as train:
        yield Training(train)


CPU_GROUPS = Path("/sys/fs/cgroup/cpu")


@contextlib.contextmanager
def _throttled() -> Iterator[Trained]:
    """Has this process run in a control group of its own."""
    group = CPU_GROUPS / f"fastload-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("10000")
        (group / "cpu.cfs_quota_us").write_text("3000")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield compute
    finally:
        (CPU_GROUPS / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@contextlib.contextmanager
def _told_of_throttling() -> Iterator[Trained]:
    """Tells the monitor of throttling, where no control group can be made."""
    with _kernel_folder() as folder:
        begin_ns = time.monotonic_ns()
        mounted = f"1 1 0:1 / {folder}/cpu rw - cgroup cgroup rw,cpu\n"
        _replace(folder / "proc/self/cgroup", "1:cpu:/\n")
        _replace(folder / "proc/self/mountinfo", mounted)

        def train(*others: Any) -> None:
            throttled_ns = (time.monotonic_ns() - begin_ns) // 2
            _replace(folder / "cpu/cpu.stat", f"throttled_time {throttled_ns}\n")
            compute(*others)

        train()
        yield train


@contextlib.contextmanager
def _kernel_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, kernel_files(Path(folder)):
        yield Path(folder)


def _replace(file: Path, text: str) -> None:
    """Writes a file that the monitor reads meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name("written")
    written.write_text(text)
    written.rename(file)


@planted("swapping", finds("machine", "machine", "memory is read back from swap"))
def _swapping() -> Iterator[Training]:
    with _kernel_folder() as folder:

        def train(step: int, *others: Any) -> None:
            _replace(folder / "proc/vmstat", f"pswpin {500 * step}\n")
            rest(step, *others)

        yield Training(train)


@planted(
    "files are evicted from the page cache, and take three times as long from step 1000 on",
    finds(
        "jump",
        "machine",
        "since step ",
        "because the machine slows it (files read again that the page cache had)",
    ),
)
def _refaults() -> Iterator[Training]:
    with _kernel_folder() as folder:

        def train(step: int, *others: Any) -> None:
            refaults = 1000 * max(0, step - 1000)
            _replace(folder / "proc/vmstat", f"workingset_refault_file {refaults}\n")
            rest(step, *others)

        yield Training(
            train, steps=3000, dataset=Later(3000), settings={"lane": "threads"}, every_s=0.1
        )


@planted(
    "the page cache is lost for each file before it is read",
    finds("starvation", "data", "the training waits for batches ", "mostly for reading"),
)
def _lost_cache() -> Iterator[Training]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # /tmp may be memory
        paths = [Path(folder, f"{number}.npy") for number in range(16)]
        for path in paths:
            np.save(path, np.zeros(1 << 23, np.uint8))  # longer than a step, also from fast storage
        os.sync()
        files = [os.open(path, os.O_RDONLY) for path in paths]

        def train(step: int, *others: Any) -> None:
            rest(step, *others)
            os.posix_fadvise(files[(step + 4) % 16], 0, 0, os.POSIX_FADV_DONTNEED)

        yield Training(train, steps=1600, dataset=Npy(paths * 100), settings={"num_workers": 1})
        for file in files:
            os.close(file)


@planted(
    "the process is stopped",
    finds(
        "period", "unknown", "every 60 steps the training pauses for ", "the process was stopped"
    ),
)
def _stopped() -> Iterator[Training]:
    """Native code that waits and holds the interpreter looks the same from inside, and needs no other process."""
    hold = ctypes.PyDLL(None).usleep  # called without giving up the interpreter

    def train(step: int, *others: Any) -> None:
        rest(step, *others)
        if step % 60 == 59:
            hold(400_000)

    yield Training(train)
