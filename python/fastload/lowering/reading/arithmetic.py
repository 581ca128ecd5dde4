"""Operators, on what is the same for all samples and on what is not.

Owns the types whose operators are Python's own. Python objects are calculated one by one, by Python;
arrays by `arrays`, where that is exact.
"""

import operator
import pathlib
from collections.abc import Callable
from typing import Any

from fastload.lowering.reading.elements import OPERATORS, calculated, number
from fastload.lowering.reading.values import (
    Each,
    Index,
    Objects,
    Rows,
    check_count,
    described,
    objects_of,
    tried,
)
from fastload.registry import refuse

__all__ = [
    "NUMBERS",
    "PATHS",
    "SIMPLE",
    "VIEWS",
    "binary",
    "compared",
    "formatted",
    "lifted",
    "negated",
    "truth",
    "with_text",
]

NUMBERS = frozenset({int, float, bool})
SIMPLE = frozenset({*NUMBERS, str, bytes, type(None)})
"""Types that are immutable, and whose operators run no user code."""
_SEQUENCES = frozenset({list, tuple})
PATHS = frozenset({pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath})
VIEWS = frozenset({type({}.keys()), type({}.values()), type({}.items())})
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset, range, *VIEWS})


def binary(symbol: str, left: Any, right: Any) -> Any:
    """Returns `left symbol right`."""
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
    return lifted(OPERATORS[symbol], [left, right], lambda *each: _may(symbol, *each), symbol)


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
    if isinstance(value, Index | Rows):
        return value.count
    if isinstance(value, Objects):
        return len(value.values)
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
    """Returns true if `left symbol right`."""
    if symbol == "is":
        return _is(left, right)
    if symbol == "is not":
        return _inverted(_is(left, right), symbol)
    is_within = symbol in ("in", "not in")
    if isinstance(left, Index) and type(right) is int and not is_within:
        low, high = left.ends
        at_ends = {OPERATORS[symbol](low, right), OPERATORS[symbol](high, right)}
        is_equality = symbol in ("==", "!=")
        if len(at_ends) == 1 and (not is_equality or not low <= right <= high):
            return at_ends.pop()
    if _has_arrays(left, right) and not is_within:
        return calculated(symbol, left, right)

    if not is_within:
        return lifted(
            OPERATORS[symbol], [left, right], lambda *kinds: SIMPLE.issuperset(kinds), symbol
        )
    is_simple = not isinstance(right, Each) and type(right) in _CONTAINERS
    is_simple = is_simple and SIMPLE.issuperset(map(type, right))

    def may(other: type, one: type) -> bool:
        return one is str if other is str else one in SIMPLE and is_simple

    found = lifted(operator.contains, [right, left], may, symbol)
    return found if symbol == "in" else _inverted(found, symbol)


def _inverted(truths: Any, symbol: str) -> Any:
    return lifted(operator.not_, [truths], lambda kind: kind is bool, symbol)


def _is(left: Any, right: Any) -> Any:
    value, other = (left, right) if isinstance(left, Each) else (right, left)
    if not isinstance(value, Each):
        kinds = {type(left), type(right)}
        if not kinds & {bool, type(None)} and kinds & (SIMPLE | _CONTAINERS):
            refuse("`is` of numbers, texts or containers, of which Python may share some")
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
    """Returns true if a value counts as true; refuses it if that differs between samples, or code would have to run."""
    if isinstance(value, Rows) and value.ndim == 0 and not value.is_python:
        value = number(value)
    if isinstance(value, Each):
        objects = objects_of(value, "the truth")
        if not objects.kinds <= SIMPLE | _CONTAINERS:
            refuse(f"the truth of {described(objects)} is not known")
        truths = set(map(bool, objects.values))
        if len(truths) != 1:
            refuse(f"{what} differs from sample to sample")
        return truths.pop()
    kind = type(value)
    if kind in SIMPLE or kind in _CONTAINERS:
        return bool(value)
    if any({"__bool__", "__len__"} & vars(each).keys() for each in kind.__mro__):
        refuse(f"the truth of {described(value)} is not known")
    return True


def chosen(test: Objects, one: Any, other: Any) -> Any:
    """Returns one value for the samples of which a test is true, another for the rest."""
    return lifted(
        lambda is_one, *both: both[not is_one],
        [test, one, other],
        lambda *kinds: set(kinds) <= SIMPLE,
        "a choice between values",
    )


def formatted(values: list[Any], formats: list[str]) -> Any:
    """Returns the text of an f-string."""
    return lifted(
        lambda *each: "".join(map(format, each, formats)),
        list(map(with_text, values)),
        lambda *kinds: set(kinds) <= SIMPLE | PATHS,
        "a format",
    )


def with_text(value: Any) -> Any:
    """Returns Python's ints for NumPy's, whose text is the same; any other value as it is."""
    if not isinstance(value, Rows) or not value.is_scalar or value.is_python:
        return value
    if value.steps or value.dtype.kind not in "iu":
        refuse("the text of a NumPy scalar is known only for integers")
    return number(value)
