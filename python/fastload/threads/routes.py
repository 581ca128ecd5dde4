"""Everything global that worker threads need, installed while there are any.

Owns the count of users. Invariant: at zero, and in a forked child, every function, class
and generator is again what it was.
"""

import os
import threading
from collections.abc import Iterable
from typing import Any, Protocol

from fastload.threads import numpy_streams, random_streams, torch_seeds, worker_info

__all__ = ["acquire", "release"]


class _Route(Protocol):
    def install(self) -> None: ...

    def uninstall(self) -> None: ...


_ROUTES: tuple[_Route, ...] = (
    worker_info.SWAP,
    *torch_seeds.SWAPS.values(),
    random_streams.ROUTE,
    numpy_streams.ROUTE,
)

_lock = threading.RLock()
_users = 0


def acquire(modules: Iterable[str]) -> None:
    """Installs the routes for their first user.

    Args:
        modules: Modules into which users may have imported functions by name that only a module's names can reach.
    """
    global _users
    with _lock:
        if _users == 0:
            try:
                for route in _ROUTES:
                    route.install()
            except BaseException:  # Ctrl-C in the midst of it
                _uninstall()
                raise
        _users += 1
        random_streams.ROUTE.cover(modules)


def release() -> None:
    """Uninstalls the routes after their last user."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _uninstall()


def _uninstall() -> None:
    for route in reversed(_ROUTES):
        route.uninstall()


class _Held(threading.local):
    """The lock of `numpy.random` that a thread takes while it forks."""

    lock: numpy_streams.Lock | None = None


_held = _Held()


def _before_fork() -> None:
    """Waits until no worker thread has lent its state to numpy's global generator."""
    _lock.acquire()
    _held.lock = numpy_streams.ROUTE.lock
    if _held.lock is not None:
        _held.lock.plain.acquire()


def _after_fork() -> None:
    if _held.lock is not None:
        _give_back(_held.lock.plain)
    _give_back(_lock)


def _give_back(lock: Any) -> None:
    if lock._is_owned():  # Ctrl-C may have come before it was taken
        lock.release()


def _in_child() -> None:
    """Forgets the worker threads, which a forked child does not have."""
    global _users
    worker_info.clear()
    _after_fork()
    if _users:
        _users = 0
        _uninstall()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
