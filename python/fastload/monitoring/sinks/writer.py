"""`Writer`: the thread that brings windows to sinks.

Owns the bounded queue between the monitor and its sinks, and what becomes of a sink that fails. Invariant: `put` waits
for no sink, and a forked child writes nothing.
"""

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink

__all__ = ["Writer"]

_log = logging.getLogger("fastload")

_QUEUED = 64  # windows
_ERRORS = 3  # in a row, after which a sink gets no more windows
_EXIT_S = 2.0


class Writer:
    """Writes windows to sinks, in a daemon thread; closes by itself at exit.

    Args:
        sinks: The sinks.
        settings: The settings of the loader, for sinks that keep them.
    """

    def __init__(self, sinks: Sequence[Sink], settings: Mapping[str, Any] | None = None) -> None:
        # The thread must not keep the writer alive, which closes when it is collected.
        self._queue = _Queue(sinks, dict(settings or {}))
        self._finalizer = weakref.finalize(self, self._queue.close, _EXIT_S, "")

    def put(self, window: Window, findings: Sequence[Finding]) -> None:
        """Queues a window; where 64 wait, the oldest is dropped."""
        self._queue.put(window, findings)

    @property
    def dropped(self) -> int:
        """The number of windows that were not written: too many waited, or the writer was closed."""
        return self._queue.dropped

    def close(self, timeout_s: float = _EXIT_S, summary: str = "") -> None:
        """Writes what is queued and closes the sinks, for at most `timeout_s` seconds; safe to call twice.

        Args:
            timeout_s: Longest time to wait.
            summary: What the monitor says of the whole run.
        """
        if self._finalizer.detach() is not None:
            self._queue.close(timeout_s, summary)


class _Target:
    """A sink with its errors in a row."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._errors = 0

    @property
    def is_alive(self) -> bool:
        """True until the sink has failed three times in a row."""
        return self._errors < _ERRORS

    def call(self, act: Callable[..., None], *arguments: Any) -> None:
        """Calls a method of the sink, unless it has ended; an error is counted, the third is logged."""
        if not self.is_alive:
            return
        try:
            act(*arguments)
        except BaseException as error:  # SystemExit of a user's function would end the thread
            self._errors += 1
            if not self.is_alive:
                message = (
                    "the monitor writes no more to %s after %d errors in a row; the last: %s: %s"
                )
                _log.warning(message, self.sink.name, _ERRORS, type(error).__name__, error)
        else:
            self._errors = 0


class _Queue:
    """The windows that wait, and the thread that takes them."""

    def __init__(self, sinks: Sequence[Sink], settings: Mapping[str, Any]) -> None:
        self.dropped = 0
        self._instant = [_Target(sink) for sink in sinks if sink.is_instant]
        self._queued = [_Target(sink) for sink in sinks if not sink.is_instant]
        self._waiting: deque[tuple[Window, Sequence[Finding]]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._summary = ""
        self._busy = ""  # name of the sink that is being called
        self._pid = os.getpid()
        for target in self._instant:
            target.call(target.sink.start, settings)
        self._thread = threading.Thread(
            target=self._run, args=(settings,), name="fastload-monitor-sinks", daemon=True
        )
        if self._queued:
            self._thread.start()

    def put(self, window: Window, findings: Sequence[Finding]) -> None:
        if (
            os.getpid() != self._pid
        ):  # and the lock may be held by a thread that does not exist here
            return
        findings = tuple(findings)
        with self._changed:
            if self._is_closed:
                self.dropped += 1
                return
            if self._queued:
                if len(self._waiting) == _QUEUED:
                    self._waiting.popleft()
                    self.dropped += 1
                self._waiting.append((window, findings))
                self._changed.notify()
        for target in self._instant:
            target.call(target.sink.write, window, findings)

    def close(self, timeout_s: float, summary: str) -> None:
        if os.getpid() != self._pid:
            return
        until = time.monotonic() + timeout_s
        with self._changed:
            self._is_closed = True
            self._summary = summary
            self._changed.notify()
        for target in self._instant:
            target.call(target.sink.close, summary)
        if not self._queued or threading.current_thread() is self._thread:
            return
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            with self._changed:
                left = len(self._waiting)
                self._waiting.clear()
                self.dropped += left
            message = "the monitor's last %d windows were not written: %s took longer than %g s"
            _log.warning(message, left + 1, self._busy or "a sink", timeout_s)

    def _run(self, settings: Mapping[str, Any]) -> None:
        for target in self._queued:
            self._call(target, target.sink.start, settings)
        while (taken := self._take()) is not None:
            for target in self._queued:
                self._call(target, target.sink.write, *taken)
        for target in self._queued:
            self._call(target, target.sink.close, self._summary)

    def _call(self, target: _Target, act: Callable[..., None], *arguments: Any) -> None:
        self._busy = target.sink.name
        target.call(act, *arguments)

    def _take(self) -> tuple[Window, Sequence[Finding]] | None:
        """Waits for a window; None once the queue is closed and empty."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            return self._waiting.popleft()
