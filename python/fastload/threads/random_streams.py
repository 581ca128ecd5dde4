"""The functions of `random`, drawing from the stream of the worker whose thread calls them.

They are methods of one hidden instance. Its class gives way to one that asks for the thread, so that
functions imported by name follow, too. `random.random` and `random.getrandbits` are native methods,
which cannot: they are replaced in their module and in those that are named.
"""

import _random
import random
import sys
from collections.abc import Iterable
from typing import Any

from fastload.threads import worker_info

__all__ = ["ROUTE"]


class _Below(_random.Random):
    """The base of `random.Random`'s methods: the native generator, or the worker's."""

    __slots__ = ()

    def random(self) -> float:
        worker = worker_info.current()
        return super().random() if worker is None else worker.streams.python.random()

    def getrandbits(self, k: int, /) -> int:
        worker = worker_info.current()
        return super().getrandbits(k) if worker is None else worker.streams.python.getrandbits(k)

    def seed(self, *seed: Any) -> None:
        worker = worker_info.current()
        if worker is None:
            super().seed(*seed)
        else:
            _random.Random.seed(worker.streams.python, *seed)

    def getstate(self) -> Any:
        worker = worker_info.current()
        return (
            super().getstate() if worker is None else _random.Random.getstate(worker.streams.python)
        )

    def setstate(self, state: Any, /) -> None:
        worker = worker_info.current()
        if worker is None:
            super().setstate(state)
        else:
            _random.Random.setstate(worker.streams.python, state)


class _Routed(random.Random, _Below):  # the order is the point
    """The class of the hidden instance while there are worker threads."""

    __slots__ = ()

    @property
    def gauss_next(self) -> float | None:
        worker = worker_info.current()
        kept = self.__dict__ if worker is None else worker.streams.python.__dict__
        return kept["gauss_next"]  # type: ignore[no-any-return]

    @gauss_next.setter
    def gauss_next(self, value: float | None) -> None:
        worker = worker_info.current()
        kept = self.__dict__ if worker is None else worker.streams.python.__dict__
        kept["gauss_next"] = value


class _Route:
    """Puts the class in, and the two native functions; takes them out again."""

    def __init__(self) -> None:
        self._replaced: list[tuple[dict[str, Any], str, Any, Any]] = []
        self._native: dict[int, tuple[Any, Any]] = {}

    def install(self) -> None:
        """Has the functions of `random` ask for the thread."""
        hidden = random._inst
        native = random.random, random.getrandbits
        hidden.__class__ = _Routed
        ours = hidden.random, hidden.getrandbits
        self._native = {id(old): (old, new) for old, new in zip(native, ours, strict=True)}
        self.cover(["random"])

    def cover(self, modules: Iterable[str]) -> None:
        """Replaces the two native functions among the globals of modules."""
        for name in modules:
            module = sys.modules.get(name)
            names = {} if module is None else module.__dict__
            for key, value in list(names.items()):
                if (pair := self._native.get(id(value))) is not None:
                    names[key] = pair[1]
                    self._replaced.append((names, key, *pair))

    def uninstall(self) -> None:
        """Restores the original, unless it was replaced again since."""
        for names, key, old, new in self._replaced:
            if names.get(key) is new:
                names[key] = old
        self._replaced = []
        self._native = {}
        hidden: random.Random = random._inst
        if type(hidden) is _Routed:
            hidden.__class__ = random.Random  # type: ignore[assignment]


ROUTE = _Route()
