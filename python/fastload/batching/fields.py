"""Lengths of one field of a dataset's samples, from what its storage knows: nothing is decoded."""

from typing import Any

from fastload import _lib
from fastload.lowering import Leaf, NotNative, lower

__all__ = ["field_lengths"]


def field_lengths(dataset: Any, field: Any = None) -> _lib.Lengths:
    """Returns how long a field of each sample is, in its first dimension.

    A field of single whole numbers says the lengths itself.

    Args:
        dataset: One of columns, or one that is lowered to such.
        field: Its name, its position, or the path to it as a tuple; None for samples that are one
            field themselves.

    Raises:
        KeyError: Samples have no such field.
        TypeError: A field that is no array, or a dataset that only Python knows.
        ValueError: Samples of one shape, or the length of one is not known before it is decoded.
    """
    path = () if field is None else field if isinstance(field, tuple) else (field,)
    try:
        part = lower(dataset).sample
    except NotNative as reason:
        msg = f"lengths are not known before samples are made: {reason}; give them to TokenBatchSampler"
        raise TypeError(msg) from reason
    for step in path:
        try:
            named = hasattr(part, "_fields") and isinstance(step, str)
            part = getattr(part, step) if named else part[step]
        except (AttributeError, IndexError, KeyError, TypeError):
            msg = f"samples have no field {field!r}"
            raise KeyError(msg) from None
    if not isinstance(part, Leaf):
        msg = f"field {field!r} is a {type(part).__name__}; name one of its fields by a tuple"
        raise TypeError(msg)
    try:
        return _lib.Lengths(part.native)
    except TypeError as error:
        msg = f"field {field!r}, {part.column}, has no lengths: its samples are no arrays"
        raise TypeError(msg) from error
