"""`Meter`: what the consumer's waits cost, and whether Python threads hold the interpreter too long.

After a wait, and at times where there was none, it is measured how long the consumer waits for the
interpreter itself: that is what each operation of a training step that gives it up pays, too.
"""

import logging
import time
from collections.abc import Mapping

from fastload.iterators.learned import Logged

__all__ = ["Meter"]

_log = logging.getLogger("fastload")

_EVERY = 16
"""Of so many batches that are ready when they are asked for, one is used to measure."""

_ENOUGH = 8
"""Measurements before anything is said."""

_HARM_MS = 1.0


class Meter:
    """Counters of one iterator."""

    def __init__(self, log: Logged) -> None:
        self._log = log
        self.batches = 0
        self._wait_s = 0.0
        self._ready = 0
        self._taken_back_s = 0.0
        self._measured = 0

    def read(self) -> Mapping[str, float]:
        """Returns the counters, units in the names."""
        return {
            "batches": self.batches,
            "wait_s": self._wait_s,
            "interpreter_wait_ms": self._mean_ms(),
        }

    def waited(self, since: float, finished: float) -> None:
        """Counts a wait that has just ended.

        Args:
            since: When it began.
            finished: When the worker had what was waited for.
        """
        now = time.perf_counter()
        self._wait_s += now - since
        if finished > since:
            self._take_back(now - finished)

    def was_ready(self) -> None:
        """Counts a batch that was not waited for."""
        self._ready += 1
        if self._ready % _EVERY == 0:
            since = time.perf_counter()
            time.sleep(0)  # gives the interpreter up and takes it back
            self._take_back(time.perf_counter() - since)

    def _take_back(self, seconds: float) -> None:
        self._taken_back_s += seconds
        self._measured += 1
        harms = self._measured >= _ENOUGH and self._mean_ms() > _HARM_MS
        if harms and self._log.first("interpreter"):
            _log.info(
                "the training thread waits %.1f ms for the interpreter, held by worker threads, each "
                "time it has given it up; lane='process' keeps Python code out of this process",
                self._mean_ms(),
            )

    def _mean_ms(self) -> float:
        return 1e3 * self._taken_back_s / self._measured if self._measured else 0.0
