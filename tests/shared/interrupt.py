"""Calls that Ctrl-C ends."""

import signal
import threading
import time
from collections.abc import Callable

import pytest


def interrupt(call: Callable[[], object], *after_s: float) -> float:
    """Calls a function that Ctrl-C ends, which comes so many seconds from now; returns how long it took."""
    main = threading.get_ident()
    timers = [threading.Timer(s, signal.pthread_kill, (main, signal.SIGINT)) for s in after_s]

    def start_and_call() -> None:
        for timer in timers:
            timer.start()
        call()

    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # a timer may be done before the call
        start_and_call()
    took_s = time.monotonic() - since
    for timer in timers:
        timer.cancel()
        timer.join()
    return took_s
