"""`Seat`: who the worker is that a thread runs.

Owns the thread-local variable by which everything else tells a worker thread from the others.
"""

import threading
from typing import Any, NamedTuple

from fastload.threads.streams import Streams

__all__ = ["Seat", "here", "leave", "take"]


class Seat(NamedTuple):
    """What belongs to one worker.

    Attributes:
        info: Torch's `WorkerInfo`.
        streams: Its generators.
    """

    info: Any
    streams: Streams


class _Local(threading.local):
    seat: Seat | None = None


_local = _Local()


def here() -> Seat | None:
    """Returns the seat of the thread that asks; None if it is no worker."""
    return _local.seat


def take(seat: Seat) -> None:
    """Makes the thread that calls the worker of a seat."""
    _local.seat = seat


def leave() -> None:
    """Makes the thread that calls no worker."""
    _local.seat = None
