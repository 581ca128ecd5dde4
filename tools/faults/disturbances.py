"""Faults that are no failing call: files that change, signals, limits, while an epoch runs."""

import contextlib
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil

__all__ = ["DISTURBANCES", "SWEEP", "Disturbance", "limited"]

_FIRST_S, _LATER = 5e-5, 1.35
"""The first interrupts come within a step of microseconds, the last ones within one of milliseconds."""
_LATE_S = 0.2
"""By then an interrupt that a step has held back is there: a thread sends it a millisecond later, if it has a CPU."""


class Disturbance(NamedTuple):
    """Something that happens to a running epoch.

    Attributes:
        name: Its name in the table.
        happen: A context manager; entered after the first batch, left after the epoch.
        names: What an error must contain one of; where empty, the path of a file.
        only: "files" for lanes that read files, "processes" for lanes with worker processes, or "".
        changes: Whether it leaves the files changed, so that the dataset has to be made anew.
        harmless: Whether no error may come of it at all.
    """

    name: str
    happen: Callable[[Path], Any]
    names: tuple[str, ...] = ()
    only: str = ""
    changes: bool = False
    harmless: bool = False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix != ".index")


def _each(change: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Returns what changes the second half of the files, which are read later."""

    @contextlib.contextmanager
    def happen(folder: Path) -> Iterator[None]:
        files = _files(folder)
        for path in files[len(files) // 2 :]:
            change(path)
        yield

    return happen


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _replace(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(b"something else entirely" * 20)
    other.replace(path)


@contextlib.contextmanager
def _kill(_: Path) -> Iterator[None]:
    for child in psutil.Process().children()[:1]:
        child.kill()
    yield


@contextlib.contextmanager
def _stop(_: Path) -> Iterator[None]:
    children = psutil.Process().children()[:1]
    timer = threading.Timer(0.5, lambda: [child.resume() for child in children])
    timer.start()  # first: where no thread can be started, none must stay stopped
    for child in children:
        child.suspend()
    yield
    timer.join()


@contextlib.contextmanager
def _interrupt(_: Path) -> Iterator[None]:
    main, stop = threading.main_thread().ident, threading.Event()

    def storm() -> None:
        for number in range(20):
            if stop.wait(_FIRST_S * _LATER**number):
                return
            signal.pthread_kill(main, signal.SIGINT)  # type: ignore[arg-type]

    sender = threading.Thread(target=storm)
    usual_s = sys.getswitchinterval()
    try:
        # else an epoch may be over before the other thread has run
        sys.setswitchinterval(_FIRST_S / 5)
        sender.start()
        yield
    finally:
        sys.setswitchinterval(usual_s)
        stop.set()
        sender.join()
        time.sleep(_LATE_S)


@contextlib.contextmanager
def limited(what: int, room: int) -> Iterator[None]:
    """Allows no more of `what` (`resource.RLIMIT_*`) than is used, and some room."""
    soft, hard = resource.getrlimit(what)
    if what == resource.RLIMIT_NOFILE:
        used = os.dup(0)  # the lowest that is free
        os.close(used)
    else:
        used = psutil.Process().memory_info().vms
    resource.setrlimit(what, (used + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def _limit(what: int, room: int) -> Callable[[Path], Any]:
    return lambda _: limited(what, room)


_MEMORY = ("memory", "allocat", "MemoryError", "thread", "worker")

DISTURBANCES = (
    Disturbance("files cut", _each(_cut), only="files", changes=True),
    Disturbance("files replaced", _each(_replace), only="files", changes=True),
    Disturbance("files deleted", _each(Path.unlink), only="files", changes=True),
    Disturbance("a worker killed", _kill, ("worker", "process"), only="processes"),
    Disturbance("a worker stopped for 0.5 s", _stop, only="processes", harmless=True),
    Disturbance("Ctrl-C, twenty times", _interrupt, ("KeyboardInterrupt",)),
    Disturbance("8 descriptors left", _limit(resource.RLIMIT_NOFILE, 8), ("open files",)),
    Disturbance("1 descriptor left", _limit(resource.RLIMIT_NOFILE, 1), ("open files",)),
    Disturbance("16 MiB of addresses left", _limit(resource.RLIMIT_AS, 1 << 24), _MEMORY),
    Disturbance("1 MiB of addresses left", _limit(resource.RLIMIT_AS, 1 << 20), _MEMORY),
)

SWEEP = Disturbance("each limit of addresses", lambda _: contextlib.nullcontext(), _MEMORY)
"""An epoch from the making of its dataset on, with room for ever more addresses: see `matrix`."""
