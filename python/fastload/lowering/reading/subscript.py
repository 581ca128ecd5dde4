"""Indexing: `container[key]`, where either may differ from sample to sample."""

import operator
from typing import Any

from fastload.lowering.reading import frames
from fastload.lowering.reading.arithmetic import SIMPLE, lifted
from fastload.lowering.reading.arrays import check_array, is_array, of_rows, taken
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

_INDEXED = frozenset({list, tuple, str, range, Cells})


def item(container: Any, key: Any) -> Any:
    """Returns `container[key]`.

    Raises:
        NotNative: It is not known, or fails for a sample.
    """
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
        return lifted(operator.getitem, [container, key], lambda *_: _is_plain(key), "an index")
    if isinstance(container, Each):
        return _of_objects(container, key)
    if type(container) is dict:
        return lifted(
            container.__getitem__, [key], lambda kind: kind in SIMPLE, "the look-up of a dict"
        )
    if type(container) not in _INDEXED:
        refuse(f"indexing {described(container)} is not known")
    return _of_sequence(container, key)


def differs(key: Any) -> bool:
    """Returns true if an index differs from sample to sample."""
    if type(key) is slice:
        return any(isinstance(each, Each) for each in (key.start, key.stop, key.step))
    return isinstance(key, Each) or (type(key) is tuple and any(map(differs, key)))


def _is_plain(key: Any) -> bool:
    parts = key if type(key) is tuple else (key,)
    return all(
        part is None or part is ... or type(part) is int or _is_known_slice(part) for part in parts
    )


def _is_known_slice(part: Any) -> bool:
    return type(part) is slice and all(
        end is None or type(end) is int for end in (part.start, part.stop, part.step)
    )


def _of_sequence(container: Any, key: Any) -> Any:
    if isinstance(key, Index):
        return _of_index(container, key)
    if type(key) is slice and differs(key):
        ends = [key.start, key.stop, key.step]
        return lifted(
            lambda *each: container[slice(*each)],
            ends,
            lambda *kinds: set(kinds) <= {int, type(None)},
            "a slice",
        )
    if type(container) is range and isinstance(key, Each):
        refuse("a range indexed by other than the index is not known")
    return lifted(
        container.__getitem__, [key], lambda kind: kind is int or _is_known_slice(key), "an index"
    )


def _of_index(container: Any, key: Index) -> Any:
    length = len(container)
    low, high = key.ends
    shift = length if high < 0 else 0
    if low + shift < 0 or high + shift >= length:
        refuse(f"its indices go from {low} to {high}, and what they index has {length}")
    if type(container) is range:
        first = container[key.first + shift]
        return Index(key.step * container.step, first, key.count)
    check_count(key.count)
    values = key.values()
    if shift == 0 and values == range(length) and type(container) is list:
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
