"""How much of its time Python code keeps the interpreter from other threads.

A thread asks for the interpreter a thousand times a second while samples are made beside it; the part
of the times at which it had to wait is the part of the time for which it was held. That is what a
training step meets when it takes the interpreter back.
"""

import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

from fastload.machine.interpreter import holds_interpreter

__all__ = ["Pickled", "held_share", "pickled"]

_SLEEP_S = 0.001
_WAITED_S = 0.0003
"""A delay above the usual one that is no scheduler's mood."""

_MOST_BYTES = 256 << 20


def held_share(work: Callable[[], object], seconds: float) -> float:
    """Returns the part of its time for which `work`, done again and again, holds the interpreter.

    Args:
        work: What is measured; it runs in this thread.
        seconds: For how long.
    """
    if not holds_interpreter():
        return 0.0
    over = threading.Event()
    delays: list[float] = []

    def probe() -> None:
        while not over.is_set():
            began = time.perf_counter()
            time.sleep(_SLEEP_S)
            delays.append(time.perf_counter() - began - _SLEEP_S)

    idle = _usual()
    thread = threading.Thread(target=probe, name="fastload-probe")
    thread.start()
    try:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            work()
    finally:
        over.set()
        thread.join()
    waited = sum(1 for delay in delays if delay > idle + _WAITED_S)
    held_s = sum(delay for delay in delays if delay > idle + _WAITED_S)
    if not delays:
        return 0.0
    # Asked while it was held the probe waits for long, and asks less often meanwhile.
    return min(1.0, max(waited / len(delays), held_s / (held_s + _SLEEP_S * len(delays))))


def _usual() -> float:
    """Returns by how much a sleep is late when nothing runs beside it: the 9th of 10."""
    late = []
    for _ in range(20):
        began = time.perf_counter()
        time.sleep(_SLEEP_S)
        late.append(time.perf_counter() - began - _SLEEP_S)
    return sorted(late)[17]


class Pickled:
    """Whether something pickles, as spawned workers need it.

    Attributes:
        bytes: How large it is; what was written until it was too large to go on.
        why_not: The error; empty if it pickles.
    """

    def __init__(self, bytes: int, why_not: str) -> None:
        self.bytes = bytes
        self.why_not = why_not


class _FullError(Exception):
    """Enough was written."""


class _Sink:
    """Counts what is written, up to a limit."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.bytes += size
        if self.bytes > _MOST_BYTES:
            raise _FullError
        return size


def pickled(*parts: Any) -> Pickled:
    """Pickles what workers get, into nothing."""
    sink = _Sink()
    try:
        for part in parts:
            pickle.Pickler(sink, protocol=pickle.HIGHEST_PROTOCOL).dump(part)
    except _FullError:
        pass
    except Exception as error:
        words = (str(error).splitlines() or [""])[0]
        return Pickled(sink.bytes, f"{type(error).__name__}: {words}")
    return Pickled(sink.bytes, "")
