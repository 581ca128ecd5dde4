"""`Watch`: notices when what worker threads share is changed in place.

In worker processes each would have its own. What it sees: of a tensor every write that torch counts;
of an array a write to one of 64 numbers spread evenly over it, or to its shape; of a long list another
length, or another object at one of 64 places; of a long dict or set another length.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from fastload.threads.copies import Found

__all__ = ["Watch"]

_PLACES = 64


class Watch:
    """Looks at shared things again and again.

    Args:
        shared: The things, and where they hang.
    """

    def __init__(self, shared: Iterable[Found]) -> None:
        self._seen = [[path, thing, _mark(thing)] for path, thing in shared]

    def changed(self) -> list[str]:
        """Returns where things hang that have changed since they were last looked at."""
        paths = []
        for seen in self._seen:
            path, thing, mark = seen
            if (now := _mark(thing)) != mark:
                seen[2] = now
                paths.append(path)
        return paths


def _mark(thing: Any) -> Any:
    """Returns what tells a thing from what it is after most changes."""
    if isinstance(thing, torch.Tensor):
        return None if thing.is_inference() else thing._version
    if isinstance(thing, np.ndarray):
        step = max(1, thing.size // _PLACES)
        places = thing.flat[::step]
        values = [id(each) for each in places] if thing.dtype.hasobject else places.tobytes()
        return thing.shape, thing.strides, values
    if isinstance(thing, list):
        return len(thing), [id(each) for each in thing[:: max(1, len(thing) // _PLACES)]]
    return len(thing)
