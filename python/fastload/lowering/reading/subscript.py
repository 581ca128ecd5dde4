"""Indexing: `container[key]`, where either may differ from sample to sample."""

import operator
from typing import Any

from fastload.lowering.reading import frames
from fastload.lowering.reading.arithmetic import SIMPLE, lifted
from fastload.lowering.reading.arrays import (
    check_array,
    differs,
    is_array,
    is_plain,
    of_rows,
    taken,
)
from fastload.lowering.reading.values import (
    Cells,
    Each,
    Index,
    Objects,
    Rows,
    check_count,
    described,
)
from fastload.registry import refuse

__all__ = ["item"]

_INDEXED = frozenset({list, tuple, str, Cells})


def item(container: Any, key: Any) -> Any:
    """Returns `container[key]`."""
    if frames.is_of_frames(container):
        return frames.item(container, key)
    if isinstance(container, Rows) and not container.is_python:
        if differs(key):
            refuse("an array that differs from sample to sample, indexed likewise")
        return of_rows(container, key)
    if is_array(container):
        if differs(key):
            return taken(container, key)
        check_array(container)
        return lifted(operator.getitem, [container, key], lambda *_: is_plain(key), "an index")
    if isinstance(container, Each):
        return _of_objects(container, key)
    if type(container) is dict:
        return lifted(
            container.__getitem__, [key], lambda kind: kind in SIMPLE, "the look-up of a dict"
        )
    if type(container) not in _INDEXED:
        refuse(f"indexing {described(container)} is not known")
    return _of_sequence(container, key)


def _of_sequence(container: Any, key: Any) -> Any:
    if isinstance(key, Index):
        return _of_index(container, key)
    if type(key) is slice:
        return lifted(
            lambda *ends: container[slice(*ends)],
            [key.start, key.stop, key.step],
            lambda *kinds: set(kinds) <= {int, type(None)},
            "a slice",
        )
    return lifted(container.__getitem__, [key], lambda kind: kind is int, "an index")


def _of_index(container: Any, key: Index) -> Any:
    values = key.within(len(container)).values()
    check_count(key.count)
    if values == range(len(container)) and type(container) is list:
        return Objects(container)
    return Objects([container[at] for at in values])


def _of_objects(objects: Each, key: Any) -> Any:
    if type(key) is slice:
        ends = [key.start, key.stop, key.step]
        return lifted(
            lambda each, *ends: each[slice(*ends)],
            [objects, *ends],
            lambda kind, *rest: kind in _INDEXED and set(rest) <= {int, type(None)},
            "a slice",
        )

    def may(kind: type, of_key: type) -> bool:
        return (kind in _INDEXED and of_key is int) or (kind is dict and of_key in SIMPLE)

    return lifted(operator.getitem, [objects, key], may, "an index")
