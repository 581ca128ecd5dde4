"""Operators, on what is the same for all samples and on what is not.

Owns the types whose operators are Python's own. Python objects are calculated one by one, by Python;
arrays by `arrays`, where that is exact.
"""

import operator
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fastload.lowering.reading.elements import calculated
from fastload.lowering.reading.row_methods import METHODS
from fastload.lowering.reading.values import (
    Each,
    Index,
    Objects,
    Rows,
    check_count,
    described,
    objects_of,
    tried,
    uniform,
)
from fastload.registry import refuse

__all__ = [
    "NUMBERS",
    "PATHS",
    "SIMPLE",
    "binary",
    "compared",
    "formatted",
    "lifted",
    "negated",
    "truth",
]

NUMBERS = frozenset({int, float, bool})
SIMPLE = frozenset({*NUMBERS, str, bytes, type(None)})
"""Types that are immutable, and whose operators run no user code."""
_SEQUENCES = frozenset({list, tuple})
PATHS = frozenset({pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath})
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset, range})

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, other: one in other,
    "not in": lambda one, other: one not in other,
}


def binary(symbol: str, left: Any, right: Any) -> Any:
    """Returns `left symbol right`.

    Raises:
        NotNative: It is not known, or fails.
    """
    made = _affine(symbol, left, right)
    if made is not None:
        return made
    if _has_arrays(left, right):
        return calculated(symbol, left, right)
    if symbol == "%" and type(right) is tuple:
        return lifted(
            lambda text, *values: text % values,
            [left, *right],
            lambda kind, *kinds: kind is str and set(kinds) <= SIMPLE,
            "the text of values",
        )
    return lifted(_BINARY[symbol], [left, right], lambda *each: _may(symbol, *each), symbol)


def _affine(symbol: str, left: Any, right: Any) -> Any:
    """Returns a sum, difference or product of the index as such; None of other things."""
    pair = left, right
    if not any(isinstance(each, Index) for each in pair) or not all(
        isinstance(each, Index) or type(each) is int for each in pair
    ):
        return None
    count = next(each.count for each in pair if isinstance(each, Index))
    (a, b), (c, d) = ((e.step, e.first) if isinstance(e, Index) else (0, e) for e in pair)
    if symbol == "+":
        step, first = a + c, b + d
    elif symbol == "-":
        step, first = a - c, b - d
    elif symbol == "*" and (a == 0 or c == 0):
        step, first = a * d + b * c, b * d
    else:
        return None
    return Index(step, first, count) if step else first


def _has_arrays(*values: Any) -> bool:
    return any(isinstance(each, Rows) and not each.is_python for each in values)


def _may(symbol: str, one: type, other: type) -> bool:
    """Returns true if an operator on two types is Python's own, and has an end."""
    kinds = {one, other}
    if kinds <= NUMBERS:
        return True
    if symbol == "+":
        return one is other and one in {str, *_SEQUENCES}
    if symbol == "*":
        return int in kinds and bool(kinds & {str, *_SEQUENCES})
    if symbol == "/":
        return one in PATHS and other in {str, *PATHS}
    return symbol == "%" and one is str and other in SIMPLE


def lifted(
    function: Callable[..., Any],
    arguments: list[Any],
    may: Callable[..., bool],
    doing: str,
) -> Any:
    """Returns what a function returns: once if all arguments are the same for all samples, else for each.

    Args:
        function: One of Python's own.
        arguments: Values, some of which may be an `Each`.
        may: True if it runs no user code for arguments of these types.
        doing: The name of the operation, for the words of a refusal.

    Raises:
        NotNative: It may not, or fails.
    """
    count = max((_count(each) for each in arguments), default=0)
    if not count:
        if not may(*map(type, arguments)):
            refuse(f"{doing} of {' and '.join(map(described, arguments))} is not known")
        return tried(function, *arguments)
    check_count(count)
    columns = [_column(each, count, doing) for each in arguments]
    for kinds in set(zip(*(map(type, column) for column in columns), strict=True)):
        if not may(*kinds):
            names = " and ".join(kind.__name__ for kind in kinds)
            refuse(f"{doing} of {names} is not known")
    return Objects(tried(lambda: list(map(function, *columns))))


def _count(value: Any) -> int:
    if isinstance(value, Index):
        return value.count
    if isinstance(value, Objects):
        return len(value.values)
    if isinstance(value, Rows):
        return len(value.view) if value.picks is None else len(value.picks)
    if isinstance(value, Each):
        refuse(f"an operation on {described(value)} is not known")
    return max(map(_count, value), default=0) if type(value) is tuple else 0


def _column(value: Any, count: int, doing: str) -> list[Any]:
    """Returns a value for each sample."""
    if isinstance(value, Each):
        return objects_of(value, doing).values
    if type(value) is tuple and _count(value):
        parts = [_column(part, count, doing) for part in value]
        return list(zip(*parts, strict=True))
    return [value] * count


def compared(symbol: str, left: Any, right: Any) -> Any:
    """Returns true if `left symbol right`.

    Raises:
        NotNative: It is not known.
    """
    if symbol in ("is", "is not"):
        same = _is(left, right)
        return (
            same if symbol == "is" else lifted(operator.not_, [same], lambda kind: kind is bool, "")
        )
    if isinstance(left, Index) and type(right) is int and symbol not in ("in", "not in"):
        low, high = left.ends
        compare = _COMPARE[symbol]
        if symbol not in ("==", "!="):
            at_ends = {compare(low, right), compare(high, right)}
            if len(at_ends) == 1:
                return at_ends.pop()
        elif right < low or right > high:
            return symbol == "!="
    if _has_arrays(left, right) and symbol not in ("in", "not in"):
        return calculated(symbol, left, right)
    return lifted(_COMPARE[symbol], [left, right], _may_compare(symbol, right), symbol)


def _may_compare(symbol: str, right: Any) -> Callable[[type, type], bool]:
    def may(one: type, other: type) -> bool:
        if symbol not in ("in", "not in"):
            return one in SIMPLE and other in SIMPLE
        if other is str:
            return one is str
        return one in SIMPLE and other in _CONTAINERS and _is_simple(right)

    return may


def _is_simple(container: Any) -> bool:
    return not isinstance(container, Each) and all(type(each) in SIMPLE for each in container)


def _is(left: Any, right: Any) -> Any:
    value, other = (left, right) if isinstance(left, Each) else (right, left)
    if not isinstance(value, Each):
        return left is right
    if other is not None:
        refuse("`is` of values that differ between samples is not known")
    if isinstance(value, Objects):
        return Objects([each is None for each in value.values])
    return False


def negated(value: Any) -> Any:
    """Returns `-value`."""
    if isinstance(value, Index):
        return binary("-", 0, value)
    if _has_arrays(value):
        refuse("the negative of an array is not known")
    return lifted(operator.neg, [value], lambda kind: kind in NUMBERS, "the negative")


def truth(value: Any, what: str) -> bool:
    """Returns true if a value counts as true, for all samples.

    Raises:
        NotNative: It differs between samples, or code would have to run to tell.
    """
    if isinstance(value, Rows) and value.ndim == 0 and not value.is_python:
        value = METHODS["item"](value)
    if isinstance(value, Each):
        objects = objects_of(value, "the truth")
        if not objects.kinds <= SIMPLE | _CONTAINERS:
            refuse(f"the truth of {described(objects)} is not known")
        return uniform(map(bool, objects.values), what)
    kind = type(value)
    if kind in SIMPLE or kind in _CONTAINERS:
        return bool(value)
    if any({"__bool__", "__len__"} & vars(each).keys() for each in kind.__mro__):
        refuse(f"the truth of {described(value)} is not known")
    return True


def chosen(test: Objects, one: Any, other: Any) -> Any:
    """Returns one value for the samples of which a test is true, another for the rest.

    Raises:
        NotNative: They are other things than numbers, text or None.
    """
    return lifted(
        lambda is_one, *both: both[not is_one],
        [test, one, other],
        lambda *kinds: set(kinds) <= SIMPLE,
        "a choice between values",
    )


def formatted(parts: Iterable[tuple[Any, str, str]]) -> Any:
    """Returns the text of an f-string.

    Args:
        parts: Each value with its conversion (`"r"`, `"s"`, `"a"` or none) and its format.
    """
    values, how = [], []
    for value, conversion, spec in parts:
        if isinstance(value, Rows) and value.is_scalar and not value.is_python:
            value = _scalars(value)
        values.append(value)
        how.append((conversion, spec))
    convert: dict[str, Callable[[Any], Any]] = {
        "": lambda value: value,
        "r": repr,
        "s": str,
        "a": ascii,
    }

    def join(*each: Any) -> str:
        return "".join(
            format(convert[conversion](value), spec)
            for value, (conversion, spec) in zip(each, how, strict=True)
        )

    def may(*kinds: type) -> bool:
        return all(
            kind in SIMPLE or kind in PATHS or issubclass(kind, np.integer) for kind in kinds
        )

    return lifted(join, values, may, "a format")


def _scalars(rows: Rows) -> Objects:
    """Returns NumPy's integers, one for each sample."""
    if rows.steps or rows.probe.dtype.kind not in "iu":
        refuse("the text of a NumPy scalar is known only for integers")
    view = rows.view if rows.picks is None else rows.view[rows.picks]
    check_count(len(view))
    return Objects(list(view))
