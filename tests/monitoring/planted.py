"""The troubles that are planted in real runs, by name: modules register theirs with `planted`."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .real_runs import ATTEMPTS, STEP_S, Expected, Played, Training, play

__all__ = ["LONG_S", "SEARCH_EVERY", "TROUBLES", "Trouble", "finds", "planted", "program"]

LONG_S = 20 * STEP_S
SEARCH_EVERY = 30


class Trouble(NamedTuple):
    """A trouble.

    Attributes:
        plant: Makes the training in a context; what is planted ends with it.
        expected: What must be found.
        is_slow: A run takes more than ten seconds.
    """

    plant: Callable[[], contextlib.AbstractContextManager[Training]]
    expected: tuple[Expected, ...]
    is_slow: bool = False

    def played(self) -> Played:
        """Returns a run in which all was found, or the last attempt."""
        for _ in range(ATTEMPTS):
            with self.plant() as training:
                run = play(training, self.expected)
            if run.found.keys() == set(self.expected):
                break
        return run


TROUBLES: dict[str, Trouble] = {}


def finds(kind: str, owner: str, *says: str) -> Expected:
    return Expected(kind, owner, says)


def planted(name: str, *expected: Expected, slow: bool = False) -> Any:
    """Registers the generator of a training as a trouble."""

    def register(plant: Callable[[], Iterator[Training]]) -> Callable[[], Iterator[Training]]:
        TROUBLES[name] = Trouble(contextlib.contextmanager(plant), expected, slow)
        return plant

    return register


@contextlib.contextmanager
def program(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs another program for a while."""
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
