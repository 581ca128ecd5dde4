"""The memory budget: how many bytes a loader may hold in batches that nobody has taken yet.

Owns how a budget is written (`int` bytes or text such as `"2GiB"`) and what it is when nobody
says. Enforcing it is the stream's part.
"""

import functools
import operator
import re
from typing import SupportsIndex

import psutil

from fastload.machine import cgroup
from fastload.machine.ranks import ranks_on_host

_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_MOST_BYTES = 2 * 1024**3
_PART_OF_AVAILABLE = 0.1


def budget_bytes(memory_budget: object, name: str = "memory_budget") -> int:
    """Returns a budget in bytes.

    Args:
        memory_budget: Bytes; or a number with a unit (`"512MB"`, `"2GiB"`); or None for the
            smaller of 2 GiB and a tenth of the memory available to this rank.
        name: What the caller calls it, for words.

    Raises:
        TypeError: Neither an integer, nor text, nor None.
        ValueError: Not positive, or text that is no size.
    """
    if memory_budget is None:
        return _default_bytes()
    if isinstance(memory_budget, str):
        size = _parse(memory_budget, name)
    elif isinstance(memory_budget, SupportsIndex) and not isinstance(memory_budget, bool):
        size = operator.index(memory_budget)
    else:
        msg = (
            f"{name} should be an integer number of bytes or text such as '2GiB', "
            f"but got {type(memory_budget).__name__}"
        )
        raise TypeError(msg)
    if size <= 0:
        msg = f"{name} should be positive, but got {memory_budget!r}"
        raise ValueError(msg)
    return size


def share(available_bytes: int, ranks: int) -> int:
    """Returns the default budget of one of `ranks` processes."""
    return max(1, min(_MOST_BYTES, int(available_bytes * _PART_OF_AVAILABLE / ranks)))


def _parse(text: str, name: str) -> int:
    match = _TEXT.fullmatch(text)
    if match is None or match[2].lower() not in _UNITS:
        msg = (
            f"{name} should be a number with a unit (KB, MB, GB, TB, KiB, MiB, GiB, TiB), "
            f"but got {text!r}"
        )
        raise ValueError(msg)
    return int(float(match[1]) * _UNITS[match[2].lower()])


@functools.cache
def _default_bytes() -> int:
    """Reads the machine once: starting an iterator must not cost file reads."""
    return share(available_bytes(), ranks_on_host())


def available_bytes() -> int:
    """Returns how much memory may still be taken: the host's, or the control groups' where that is less."""
    available, room = psutil.virtual_memory().available, cgroup.memory_available_bytes()
    return available if room is None else min(available, room)
