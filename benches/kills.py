"""Workers that are killed, crash, leave or hang: how soon that is told, by name, and what is left.

Each way to end, at each stage: before the first batch (`worker_init_fn`), in a sample, in collation, in
the message (while the batch is pickled), idle (all that was asked for is made, and waits). The worker
notes the time and ends itself; the clock stops when `next` raises, after `timeout` for one that hangs.
What is said has to name the worker, how it ended and the samples that it had in hand.

After each: children, threads, descriptors and mappings that were not there before; after all of a case: memory.
Leaving a loader one of whose workers hangs takes five seconds, as torch's does: the first one of a case is left
that way, the hung workers of all others are killed by hand. `--rounds` is how often; torch, beside, gets a tenth.
"""

import contextlib
import math
import mmap
import os
import re
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import torch
from _contest import Bench, Figures
from _starts import held
from torch.utils.data import DataLoader, Dataset, get_worker_info

import fastload

TOLD, UNNAMED, HUNG = "told, ms", "unnamed", "hung"
LEFT = ("children", "threads", "descriptors", "mappings")
MEMORY = "RSS, MB"
STAGES = ("start", "sample", "collation", "message", "idle")
TIMEOUT_S, PATIENCE_S = 0.2, 20
SAMPLES, BATCH_SIZE, NUMBERS = 24, 3, 3_000


def hang() -> None:
    """Does not come back."""
    time.sleep(600)


ENDS: dict[str, tuple[Callable[[], None], str]] = {
    "SIGKILL": (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
    "SIGSEGV": (lambda: os.kill(os.getpid(), signal.SIGSEGV), "was killed by SIGSEGV"),
    "os._exit": (lambda: os._exit(7), "ended with exit code 7"),
    "hang": (hang, "timed out after"),
}
"""What a worker does, and what is said of it."""


class Deadly:
    """Ends the process that pickles it."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end

    def __reduce__(self) -> Any:
        self.end()
        return int, ()


class Failing(Dataset[torch.Tensor]):
    """Ends worker 1 at a stage; has the time at which it did."""

    def __init__(self, end: Callable[[], None], stage: str) -> None:
        self._end, self._stage = end, stage
        self._when = mmap.mmap(-1, 8)  # shared with the workers
        self._idle_ends, self.ends_idle = os.pipe()

    @property
    def ended_s(self) -> float:
        """When the worker ended."""
        return float(struct.unpack("d", self._when)[0])

    def close(self) -> None:
        """Closes what is shared with workers."""
        self._when.close()
        os.close(self._idle_ends)
        os.close(self.ends_idle)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == BATCH_SIZE + 1:
            self._at("sample")
        return torch.full((NUMBERS,), index)

    def start(self, worker: int) -> None:
        """Initialises a worker."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what crashes say is read nowhere
        self._at("start")
        if self._stage == "idle" and worker == 1:
            threading.Thread(target=self._wait, daemon=True).start()

    def collate(self, samples: list[torch.Tensor]) -> Any:
        """Makes a batch; it is the worker's end if its pickling is."""
        self._at("collation")
        is_deadly = self._stage == "message" and get_worker_info().id == 1
        return torch.stack(samples), Deadly(self._end_now) if is_deadly else 0

    def _wait(self) -> None:
        os.read(self._idle_ends, 1)
        self._end_now()

    def _at(self, stage: str) -> None:
        if stage == self._stage and get_worker_info().id == 1:
            self._end_now()

    def _end_now(self) -> None:
        self._when[:] = struct.pack("d", time.monotonic())
        self._end()


class HungError(Exception):
    """Nothing came of it for a long time."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Raises if the block takes too long."""

    def give_up(*_: Any) -> None:
        raise HungError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fail(kind: type[DataLoader], how: str, stage: str, *, by_hand: bool) -> dict[str, float]:
    """Has a worker fail once; returns when that was told, and whether well."""
    end, words = ENDS[how]
    dataset = Failing(end, stage)
    loader = kind(
        dataset,
        BATCH_SIZE,
        num_workers=2,
        collate_fn=dataset.collate,
        worker_init_fn=dataset.start,
        timeout=TIMEOUT_S if how == "hang" else 0,
    )
    told, account = "", {HUNG: 0.0}
    batches = None
    try:
        with watched():
            batches = iter(loader)
            if stage == "idle":
                next(batches)
                os.write(dataset.ends_idle, b"x")
                while not dataset.ended_s:  # before the others have made all that there is
                    time.sleep(0.001)
            for _ in batches:
                pass
    except HungError:
        account[HUNG] = 1.0
    except Exception as error:  # torch's may be whatever broke first
        told_s, told = time.monotonic(), str(error)
        late_s = TIMEOUT_S if how == "hang" else 0
        account[TOLD] = 1e3 * max(0.0, told_s - dataset.ended_s - late_s)
    with contextlib.suppress(RuntimeError):  # which torch raises wherever a worker's end finds it
        if how == "hang" and by_hand:
            for child in psutil.Process().children():
                child.kill()
        del batches
    dataset.close()
    in_hand = "" if stage == "idle" else "samples 3, 4, 5"
    account[UNNAMED] = float(words not in told or not re.search(f"worker 1 .*{in_hand}", told))
    return account


def case(kind: type[DataLoader], how: str, stage: str, times: int) -> dict[str, list[float]]:
    """Has workers fail many times; returns when that was told each time, and sums of the rest."""
    fail(kind, how, stage, by_hand=True)  # what is made once and kept is no growth
    before = now = held()
    accounts, left = [], dict.fromkeys(LEFT, 0.0)
    for number in range(times):
        accounts.append(fail(kind, how, stage, by_hand=number > 0))
        now = held()
        left = {what: max(most, now[what] - before[what]) for what, most in left.items()}
    return {
        TOLD: [account[TOLD] for account in accounts if TOLD in account],
        UNNAMED: [sum(account[UNNAMED] for account in accounts)],
        HUNG: [sum(account[HUNG] for account in accounts)],
        **{what: [most] for what, most in left.items()},
        MEMORY: [now[MEMORY] - before[MEMORY]],
    }


def matrix(bench: Bench, title: str, kind: type[DataLoader], times: int) -> Figures:
    """Runs and shows all cases."""
    figures: Figures = {
        f"{stage}, {how}": case(kind, how, stage, times)
        for stage in STAGES
        for how in ENDS
        if (stage, how) != ("idle", "hang")
    }
    bench.show(f"{title}, {times} times each; what is left over is the most", figures, digits=0)
    return figures


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=100)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.unraisablehook = lambda _: None  # the same, where no code can catch it
    figures = matrix(bench, "fastload", fastload.Loader, bench.rounds)
    cases = figures.values()
    latest_s = max(max(values[TOLD], default=math.inf) for values in cases) / 1e3
    bench.claim("the latest that was told, s", latest_s, 1)
    for what in (UNNAMED, HUNG, *LEFT):
        bench.claim(f"{what}, of all cases", sum(values[what][0] for values in cases), 0)
    bench.claim("RSS grown by a case at most, MB", max(values[MEMORY][0] for values in cases), 5)
    matrix(bench, "torch", DataLoader, max(1, bench.rounds // 10))
    bench.close()


if __name__ == "__main__":
    main()
