"""Checks of arguments, in one form of sentence: `rows should be a positive integer, but got 0`."""

import operator
from typing import Any

__all__ = ["at_least", "check_choice", "positive"]


def check_choice(name: str, value: Any, known: tuple[str | None, ...]) -> None:
    """Refuses an unknown value of an argument.

    Raises:
        ValueError: The value is unknown.
    """
    if value not in known:
        msg = f"{name} should be one of {known}, but got {value!r}"
        raise ValueError(msg)


def positive(name: str, value: Any, most: int = (1 << 63) - 1, *, or_none: bool = False) -> int:
    """Returns an integer of at least 1; `most` for None where that is allowed.

    Raises:
        ValueError: The value is below 1, or no integer.
    """
    if value is None and or_none:
        return most
    number = operator.index(value) if hasattr(value, "__index__") else 0
    if number < 1 or isinstance(value, bool):
        msg = f"{name} should be a positive integer, but got {value!r}"
        raise ValueError(msg)
    return min(number, most)


def at_least(name: str, value: Any, least: int) -> int:
    """Returns an integer of at least `least`.

    Raises:
        TypeError: The value is no integer.
        ValueError: The value is below it.
    """
    if not hasattr(value, "__index__"):
        msg = f"{name} should be an integer, but got {value!r}"
        raise TypeError(msg)
    number = operator.index(value)
    if number < least:
        msg = f"{name} should be at least {least}, but got {value!r}"
        raise ValueError(msg)
    return number
