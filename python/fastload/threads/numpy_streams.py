"""The functions of `numpy.random`, drawing from the stream of the worker whose thread calls them.

They are methods of one hidden `RandomState`. The names in the module are replaced by functions that
ask for the thread; for methods that were imported by name, or are called through the hidden object,
its lock, which every draw takes, lends it the worker's state meanwhile. That is exact, but costs some
tenths of a millisecond a call. `seed` and `set_state` take no lock: imported by name they are not
followed.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import mtrand

from fastload.threads import worker_info

__all__ = ["ROUTE", "Lock"]

_FUNCTIONS = {"seed": "seed", "sample": "random_sample", "ranf": "random_sample"}
"""The functions of the module that are no methods, by the method that they stand for."""

_LOCKLESS = {"seed", "get_state", "set_state"}
"""Functions that do not take the lock, or not all the time."""


class Lock:
    """A lock for the hidden object that lends it the state of a worker whose thread takes it.

    For any other thread each method is the plain lock's own, so that none of our code runs between
    taking the lock and the caller's `try`: Ctrl-C would leave it taken there.

    Attributes:
        plain: The lock alone.
    """

    def __init__(self, hidden: Any) -> None:
        self._hidden = hidden
        self.plain = threading.RLock()
        self._depth = 0
        self._own: Any = None

    def _lend(self) -> bool:
        self.plain.acquire()
        self._depth += 1
        if self._depth == 1:
            self._own = self._hidden.get_state(legacy=False)
            self._hidden.set_state(_worker().streams.numpy.get_state(legacy=False))
        return True

    def _take_back(self, *_: object) -> None:
        if self._depth == 1:
            _worker().streams.numpy.set_state(self._hidden.get_state(legacy=False))
            self._hidden.set_state(self._own)
            self._own = None
        self._depth -= 1
        self.plain.release()

    @property
    def acquire(self) -> Callable[[], bool]:
        """Takes the lock."""
        return self.plain.acquire if worker_info.current() is None else self._lend

    @property
    def release(self) -> Callable[[], None]:
        """Gives it back."""
        return self.plain.release if worker_info.current() is None else self._take_back

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self.plain.__enter__ if worker_info.current() is None else self._lend

    @property
    def __exit__(self) -> Callable[..., None]:
        return self.plain.__exit__ if worker_info.current() is None else self._take_back


def _worker() -> worker_info.ThreadWorker:
    worker = worker_info.current()
    assert worker is not None
    return worker


class StandIn(np.random.MT19937):
    """The hidden object's generator with another lock.

    Everything else is the original's, above all the state, which stays where it is: whoever writes to it
    while one takes the other's place writes to both.
    """

    __slots__ = "_lock", "_original"

    def __init__(self, original: Any, lock: Any) -> None:
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_lock", lock)

    def __getattribute__(self, name: str) -> Any:
        own = functools.partial(object.__getattribute__, self)
        return own("_lock") if name == "lock" else getattr(own("_original"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_original"), name, value)


@functools.cache  # fifty of them take a quarter of the start of a worker
def _routed(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(*arguments: Any, **keywords: Any) -> Any:
        worker = worker_info.current()
        if worker is not None:
            return getattr(worker.streams.numpy, method)(*arguments, **keywords)
        lock = ROUTE.lock if method in _LOCKLESS else None  # which another thread may take out
        if lock is not None:
            with lock:
                return original(*arguments, **keywords)
        return original(*arguments, **keywords)

    return function


class _Route:
    """Puts the functions and the lock in; takes them out again."""

    def __init__(self) -> None:
        self._functions: dict[str, tuple[Any, Any]] = {}
        self._bits: tuple[Any, Any] = (None, None)
        self.lock: Lock | None = None

    def install(self) -> None:
        """Has the functions of `numpy.random` ask for the thread."""
        hidden = mtrand._rand
        names = vars(np.random)
        methods = {n: n for n, value in names.items() if getattr(value, "__self__", None) is hidden}
        for name, method in {**methods, **_FUNCTIONS}.items():
            original = names[name]
            routed = _routed(method, original)
            self._functions[name] = original, routed
            setattr(np.random, name, routed)
        bits = hidden._bit_generator
        if type(bits) is np.random.MT19937 and hasattr(np.random, "set_bit_generator"):
            self.lock = Lock(hidden)
            self._bits = bits, StandIn(bits, self.lock)
            with bits.lock:
                _exchange(hidden, self._bits[1])

    def uninstall(self) -> None:
        """Restores the original, unless it was replaced again since."""
        for name, (original, routed) in self._functions.items():
            if getattr(np.random, name) is routed:
                setattr(np.random, name, original)
        self._functions = {}
        if self.lock is not None:
            hidden = mtrand._rand
            bits, ours = self._bits
            with self.lock:
                if hidden._bit_generator is ours:
                    _exchange(hidden, bits)
            self.lock, self._bits = None, (None, None)


def _exchange(hidden: Any, bits: Any) -> None:
    """Gives the hidden object another generator in the same state."""
    state = hidden.get_state(legacy=False)
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]
    if state["has_gauss"]:  # the only part that is the hidden object's own
        hidden.set_state(state)


ROUTE = _Route()
