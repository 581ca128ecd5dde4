"""Forks beside busy native threads: children that use what they inherit, each with an alarm."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import fastload

FORKS = int(os.environ.get("FASTLOAD_TEST_FORKS", "40"))
"""Children of one test."""

ALARM_S = 20
"""A child that takes longer hangs: what it does takes milliseconds."""


def endless(dataset: Any) -> Iterator[Any]:
    """Yields batches of shuffled epochs for ever, made by eight threads."""
    loader = fastload.Loader(dataset, batch_size=4, num_workers=8, prefetch_factor=8, shuffle=True)
    while True:
        yield from loader


def storm(
    child: Callable[[int], object], between: Callable[[], object], forks: int = FORKS
) -> None:
    """Forks beside native threads; fails with what went wrong in children, and how often.

    Args:
        child: What each child does, with its number; it fails by an exception.
        between: What the parent does before each fork, to keep its threads busy.
        forks: How many children there are, one after the other.
    """
    failures: dict[str, int] = {}
    for number in range(forks):
        between()
        said = in_child(child, number)
        if said:
            failures[said] = failures.get(said, 0) + 1
            if failures.get("it hung", 0) == 3:
                break
    assert not failures, f"of {number + 1} children: {failures}"


def in_child(body: Callable[[int], object], number: int) -> str:
    """Runs `body` in a forked child; returns what went wrong there, or nothing."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends also what waits in native code
        signal.alarm(ALARM_S)
        try:
            body(number)
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode()[:4096])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGALRM:
        return "it hung"
    return said or ("" if status == 0 else f"it ended with {status}")
