"""`RenewedLock`: a lock that a forked child finds free."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["RenewedLock"]


class RenewedLock:
    """A lock of a module, for its whole life.

    A thread of the parent that holds it at the moment of a fork does not exist in the child, which gets a new one.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock; a child that is forked by its holder goes on without it."""
        with self._lock:
            yield

    def _renew(self) -> None:
        self._lock = threading.Lock()
