"""What worker threads do to the training process against the rules: looked for, and said once.

Owns the state of the global generators at two moments. Compares them only between moments at which
the training thread cannot have drawn.
"""

import logging
import random
import weakref
from typing import Any

import numpy as np
import torch

__all__ = ["GlobalState", "Told"]

_log = logging.getLogger("fastload")


class Told:
    """Says each thing once for a loader, whatever the number of its iterators."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    @classmethod
    def of(cls, loader: Any) -> "Told":
        """Returns that of a loader."""
        return _told.setdefault(loader, cls())

    def first(self, what: str) -> bool:
        """Returns whether a thing has not been said yet; it counts as said then."""
        new = what not in self._said
        self._said.add(what)
        return new

    def __call__(self, what: str) -> None:
        """Logs a clause, with the way out of it."""
        if self.first(what):
            _log.warning("%s; workers='process' keeps it in a process of its own", what)


_told: "weakref.WeakKeyDictionary[Any, Told]" = weakref.WeakKeyDictionary()


class GlobalState:
    """The global generators' states.

    Args:
        accelerators: Whether those of accelerators in use are among them.
    """

    def __init__(self, *, accelerators: bool = False) -> None:
        self._torch = torch.get_rng_state()
        self._numpy = np.random.get_state()
        self._python = random.getstate()
        self._cuda = torch.cuda.get_rng_state_all() if accelerators and _uses_cuda() else []

    def moved(self) -> list[str]:
        """Returns the names of the generators that are in another state now."""
        now = GlobalState(accelerators=bool(self._cuda))
        names = {
            "torch's global generator": torch.equal(self._torch, now._torch),
            "numpy.random's global generator": _same(self._numpy, now._numpy),
            "random's global generator": self._python == now._python,
            "torch's generators of CUDA devices": all(map(torch.equal, self._cuda, now._cuda)),
        }
        return [name for name, same in names.items() if not same]

    def restore(self) -> None:
        """Puts the states back."""
        torch.set_rng_state(self._torch)
        np.random.set_state(self._numpy)
        random.setstate(self._python)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


def _uses_cuda() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
