"""`Writer`: the threads that bring windows to sinks.

Owns the bounded queue between the monitor and its sinks, and what becomes of a sink that fails. Invariant: `put` waits
for no sink, and a forked child writes nothing.
"""

import logging
import os
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink

__all__ = ["Writer"]

_log = logging.getLogger("fastload")

_QUEUED = 64  # windows
_ERRORS = 3  # in a row, after which a sink gets no more windows
_EXIT_S = 2.0


class Writer:
    """Writes windows to sinks, in daemon threads; closes by itself at exit.

    One thread serves all trackers and functions, another one the files, a third one those that are read later: so
    no tracker holds up the others.
    """

    def __init__(self, sinks: Sequence[Sink], settings: Mapping[str, Any] | None = None) -> None:
        groups = defaultdict(list)
        for sink in sinks:
            groups[sink.is_file, sink.is_instant].append(sink)
        self._queues = [_Queue(group, dict(settings or {})) for group in groups.values()]
        # Threads keep a queue, not the writer, which closes when it is collected.
        self._finalizer = weakref.finalize(self, _close, self._queues, _EXIT_S, "")

    def put(self, window: Window, findings: Sequence[Finding]) -> None:
        """Queues a window; where 64 wait, the oldest is dropped."""
        findings = tuple(findings)
        for queue in self._queues:
            queue.put(window, findings)

    @property
    def dropped(self) -> int:
        """The number of windows that a sink did not write: too many waited, it failed, or the writer was closed."""
        return max((queue.dropped for queue in self._queues), default=0)

    def close(self, timeout_s: float = _EXIT_S, summary: str = "") -> None:
        """Writes the queued windows and closes the sinks, for at most `timeout_s` seconds; safe to call twice."""
        if self._finalizer.detach() is not None:
            _close(self._queues, timeout_s, summary)


def _close(queues: Sequence["_Queue"], timeout_s: float, summary: str) -> None:
    until_s = time.monotonic() + timeout_s
    for queue in queues:
        queue.end(summary)
    for queue in queues:
        queue.join(until_s, timeout_s)


class _Queue:
    """The windows that wait for some sinks, and the thread that takes them."""

    def __init__(self, sinks: Sequence[Sink], settings: Mapping[str, Any]) -> None:
        self.dropped = 0
        self._sinks = sinks
        self._errors = [0] * len(sinks)  # of each, in a row
        self._waiting: deque[tuple[Window, Sequence[Finding]]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._summary = ""
        self._busy = ""  # name of the sink that is being called
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=self._run, args=(settings,), name="fastload monitor sinks", daemon=True
        )
        self._thread.start()

    def put(self, window: Window, findings: Sequence[Finding]) -> None:
        if os.getpid() != self._pid:  # the lock may be held by a thread that does not exist here
            return
        with self._changed:
            if self._is_closed:
                self.dropped += 1
                return
            if len(self._waiting) == _QUEUED:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append((window, findings))
            self._changed.notify()

    def end(self, summary: str) -> None:
        """Has the thread write the queued windows and end; returns at once."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._is_closed = True
            self._summary = summary
            self._changed.notify()

    def join(self, until_s: float, timeout_s: float) -> None:
        """Waits for the thread; drops the windows that it has not written by then."""
        if os.getpid() != self._pid or threading.current_thread() is self._thread:
            return
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._thread.is_alive():
            with self._changed:
                left = len(self._waiting)
                self._waiting.clear()
                self.dropped += left
            message = "the monitor's last %d windows were not written: %s took longer than %g s"
            _log.warning(message, left + 1, self._busy, timeout_s)

    def _run(self, settings: Mapping[str, Any]) -> None:
        self._each("start", settings)
        while (taken := self._take()) is not None:
            if not self._each("write", *taken):
                with self._changed:
                    self.dropped += 1
        self._each("close", self._summary)

    def _each(self, method: str, *arguments: Any) -> bool:
        """Calls a method of all sinks; returns true if each has done it."""
        done = [self._call(place, method, *arguments) for place in range(len(self._sinks))]
        return all(done)

    def _call(self, place: int, method: str, *arguments: Any) -> bool:
        """Calls a method of a sink, unless it has failed three times in a row; returns true if it has done it."""
        if self._errors[place] == _ERRORS:
            return False
        sink = self._sinks[place]
        self._busy = sink.name
        try:
            getattr(sink, method)(*arguments)
        except BaseException as error:  # SystemExit of a user's function would end the thread
            self._errors[place] += 1
            if self._errors[place] == _ERRORS:
                message = (
                    "the monitor writes no more to %s after %d errors in a row; the last: %s: %s"
                )
                _log.warning(message, sink.name, _ERRORS, type(error).__name__, error)
            return False
        self._errors[place] = 0
        return True

    def _take(self) -> tuple[Window, Sequence[Finding]] | None:
        """Waits for a window; None once the queue is closed and empty."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            return self._waiting.popleft()
