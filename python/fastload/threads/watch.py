"""Changes to what worker threads share: objects, and the process's random generators.

Worker processes would have a copy each. `Watch` detects: of a tensor, every write that torch counts;
of an array in memory, a write to one of 64 numbers spread evenly over it, or to its shape; of a long list, another
length, or another object at one of 64 places; of a long dict or set, another length.
"""

import itertools
import random
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from fastload.threads.copies import Found

__all__ = ["GlobalState", "Watch"]

_PLACES = 64
_AT_ONCE = 16


class Watch:
    """Checks shared objects repeatedly."""

    def __init__(self, shared: Iterable[Found]) -> None:
        self._seen = deque([path, thing, _mark(thing)] for path, thing in shared)

    def changed(self) -> list[str]:
        """Returns the paths of objects that have changed since their last check; checks a few at a time."""
        paths = []
        for seen in itertools.islice(self._seen, _AT_ONCE):
            path, thing, mark = seen
            if (now := _mark(thing)) != mark:
                seen[2] = now
                paths.append(path)
        self._seen.rotate(-_AT_ONCE)
        return paths


def _mark(thing: Any) -> Any:
    """Returns a value that most changes of an object change."""
    if isinstance(thing, torch.Tensor):
        return None if thing.is_inference() else thing._version
    if isinstance(thing, np.ndarray):
        if not thing.flags.writeable or isinstance(thing, np.memmap):
            return None
        step = max(1, thing.size // _PLACES)
        places = thing.flat[::step]
        values = [id(each) for each in places] if thing.dtype.hasobject else places.tobytes()
        return thing.shape, thing.strides, values
    if isinstance(thing, list):
        return len(thing), [id(each) for each in thing[:: max(1, len(thing) // _PLACES)]]
    return len(thing)


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
