"""Warnings about worker threads that change the training process, each logged once.

Owns the states of the global generators at two moments, between which the training thread cannot have
drawn.
"""

import logging
import random
import weakref
from typing import Any

import numpy as np
import torch

__all__ = ["GlobalState", "Logged"]

_log = logging.getLogger("fastload")


class Logged:
    """Logs each thing once for a loader and all of its iterators."""

    def __init__(self) -> None:
        self._things: set[str] = set()

    @classmethod
    def of(cls, loader: Any) -> "Logged":
        """Returns the log of a loader."""
        return _logged.setdefault(loader, cls())

    def first(self, what: str) -> bool:
        """Returns true if a thing was not logged before; it counts as logged from now on."""
        new = what not in self._things
        self._things.add(what)
        return new

    def __call__(self, what: str) -> None:
        """Logs a clause, with the way out of it."""
        if self.first(what):
            _log.warning("%s; lane='process' keeps it in a process of its own", what)


_logged: "weakref.WeakKeyDictionary[Any, Logged]" = weakref.WeakKeyDictionary()


class GlobalState:
    """The states of the global generators.

    Args:
        accelerators: True if the generators of accelerators in use are included.
    """

    def __init__(self, *, accelerators: bool = False) -> None:
        self._torch = torch.get_rng_state()
        self._numpy = np.random.get_state()
        self._python = random.getstate()
        self._cuda = torch.cuda.get_rng_state_all() if accelerators and _uses_cuda() else []

    def moved(self) -> list[str]:
        """Returns the names of the generators whose states have changed."""
        now = GlobalState(accelerators=bool(self._cuda))
        names = {
            "torch's global generator": torch.equal(self._torch, now._torch),
            "numpy.random's global generator": _same(self._numpy, now._numpy),
            "random's global generator": self._python == now._python,
            "torch's generators of CUDA devices": all(map(torch.equal, self._cuda, now._cuda)),
        }
        return [name for name, same in names.items() if not same]

    def restore(self) -> None:
        """Restores the states."""
        torch.set_rng_state(self._torch)
        np.random.set_state(self._numpy)
        random.setstate(self._python)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


def _uses_cuda() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
