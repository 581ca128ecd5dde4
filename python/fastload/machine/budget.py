"""The memory budget: the maximum number of bytes in batches that are not taken yet.

Owns how a budget is written (`int` bytes or text such as `"2GiB"`) and its default. The stream enforces it.
"""

import functools
import operator
import re
from typing import SupportsIndex

from fastload.machine import memory
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
        name: The caller's name of the argument, for messages.

    Raises:
        TypeError: Neither an integer, nor text, nor None.
        ValueError: Not positive, or not a size.
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
    """Returns the default budget; reads the machine once, so that starting an iterator reads no files."""
    return share(memory.read().available_bytes, ranks_on_host())
