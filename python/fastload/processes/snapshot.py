"""`Snapshot`: the state of the workers' objects when the first workers were forked.

A worker that is forked later would have what the training has made of the dataset since, and its samples
would depend on when it was started. Owns the attributes of Python objects and the entries of short
lists, dicts and sets, as they were. Refuses to look into arrays, tensors and long containers: what is written there in
place is seen by workers that start afterwards. Calls nothing of the user's.
"""

import types
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

__all__ = ["Snapshot"]

_LONG = 1_000
"""A container of more entries is left as it is."""

_MANY = 20_000
"""Objects found after this many others are left as they are."""

_LEFT = (
    *(bool, int, float, complex, str, bytes, type(None), type, range, slice),
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType),
    *(torch.Tensor, np.ndarray, np.generic),
)


class Snapshot:
    """The state of objects, and of the objects that they refer to.

    Args:
        things: The objects.
    """

    def __init__(self, things: Iterable[Any]) -> None:
        self._kept: list[tuple[Any, Any]] = []
        met, waiting = set[int](), list(things)
        while waiting and len(met) < _MANY:
            thing = waiting.pop()
            if id(thing) in met or isinstance(thing, _LEFT):
                continue
            met.add(id(thing))
            waiting.extend(self._keep(thing))

    def _keep(self, thing: Any) -> Iterable[Any]:
        """Keeps the state of one object; returns the objects that it refers to."""
        kind = type(thing)
        if kind is types.MethodType:
            return [thing.__self__]
        if kind in (list, set, tuple, dict):
            if len(thing) > _LONG:
                return []
            if kind is not tuple:
                self._kept.append((thing, thing.copy()))
            return list(thing.values() if kind is dict else thing)
        attributes = getattr(thing, "__dict__", None)
        if type(attributes) is not dict:
            return []
        self._kept.append((attributes, attributes.copy()))
        return list(attributes.values())

    def restore(self) -> None:
        """Restores the state of all objects in this process; a set that has not changed keeps its order."""
        for thing, kept in self._kept:
            if type(thing) is set and set(map(id, thing)) == set(map(id, kept)):
                continue
            thing.clear()
            (thing.extend if type(thing) is list else thing.update)(kept)
