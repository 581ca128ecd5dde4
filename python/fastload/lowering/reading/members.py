"""Attributes and items of values: what stands behind a dot or in brackets, and what a loop yields.

Owns which attributes of which types are known. Objects of the user's are read by `attributes`.
"""

import operator
import types
from typing import Any, NamedTuple

from fastload.lowering.reading import attributes, frames
from fastload.lowering.reading.arithmetic import PATHS, SIMPLE, VIEWS, lifted
from fastload.lowering.reading.arrays import (
    check_array,
    differs,
    is_array,
    is_plain,
    of_rows,
    taken,
)
from fastload.lowering.reading.row_methods import transposed
from fastload.lowering.reading.values import (
    Cells,
    Each,
    Index,
    Objects,
    Rows,
    check_count,
    described,
)
from fastload.registry import name, refuse

__all__ = [
    "METHODS_OF",
    "Method",
    "attribute",
    "getter",
    "is_encoding",
    "is_immutable",
    "is_sequence",
    "item",
    "parts",
    "unwrapped",
]


_INDEXED = frozenset({list, tuple, str, Cells})
_MOST_PARTS = 256
"""Longest container that a loop or an assignment goes through."""


_STR = (
    "capitalize casefold endswith join lower lstrip partition removeprefix removesuffix replace rpartition "
    "rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
)


METHODS_OF: dict[type, str] = {
    str: _STR,
    dict: "get items keys values",
    list: "",  # append and extend of a list that the method made itself are known, too
    bytes: "decode",
    **dict.fromkeys(PATHS, "with_suffix with_name joinpath as_posix"),
}
"""Methods that run no user code, by exact type."""


class Method(NamedTuple):
    """A method of a known type, with what it is called on."""

    of: Any
    name: str


def attribute(value: Any, attribute: str) -> Any:
    """Returns an attribute: a value, a `Method`, or what `attributes` says of objects of the user's."""
    if frames.is_of_frames(value):
        if attribute == "to_numpy":
            return Method(value, attribute)
        return frames.attribute(value, attribute)
    is_rows = isinstance(value, Rows) and not value.is_python
    if (is_rows or is_array(value)) and attribute in ("shape", "ndim", "dtype"):
        found = getattr(value, attribute)
        return tuple(found) if attribute == "shape" else found
    if is_rows and attribute == "T":
        return transposed(value)
    if isinstance(value, Each) or is_array(value):
        return Method(value, attribute)
    kind = type(value)
    if kind is types.ModuleType:
        if attribute not in vars(value):
            refuse(f"{value.__name__} has no {attribute}")
        return vars(value)[attribute]
    if issubclass(kind, type):
        return _of_class(value, attribute)
    if kind in METHODS_OF:
        return Method(value, attribute)
    if is_encoding(kind):
        return Method(unwrapped(value), attribute)
    return attributes.of_instance(value, attribute)


def _of_class(kind: type, attribute: str) -> Any:
    if type(kind) is not type:
        refuse(f"{name(kind)} has a metaclass")
    found = next((vars(each)[attribute] for each in kind.__mro__ if attribute in vars(each)), None)
    if type(found) not in SIMPLE | {tuple, list, dict} or found is None:
        refuse(f"{name(kind)}.{attribute} is not known")
    return found


def is_encoding(kind: type) -> bool:
    """Returns true if a class is what tokenizers of transformers return, a dict of a kind."""
    return (kind.__module__, kind.__qualname__) == (
        "transformers.tokenization_utils_base",
        "BatchEncoding",
    )


def unwrapped(value: Any) -> Any:
    """Returns the dict that a tokenizer's encoding is; any other value as it is."""
    if isinstance(value, Each) or not is_encoding(type(value)):
        return value
    data = attributes.all_stored(value).get("data")
    if type(data) is not dict:
        refuse("an encoding without data is not known")
    return data


def getter(container: Any) -> types.FunctionType | None:
    """Returns the `__getitem__` of a user's class, or None."""
    kind = type(container)
    if isinstance(container, Each) or kind.__module__ == "builtins" or is_array(container):
        return None
    found = attributes.of_class(kind, "__getitem__")
    is_own = type(found) is types.FunctionType and not frames.is_of_frames(container)
    return found if is_own and not is_encoding(kind) else None


def is_sequence(value: Any, count: int) -> bool:
    """Returns true if a value is a plain sequence of so many things, and takes any index as such."""
    return (type(value) in (list, tuple, Cells) or (is_array(value) and value.ndim > 0)) and (
        len(value) == count
    )


def parts(value: Any, count: int | None = None) -> list[Any]:
    """Returns the items of a container; of one that differs between samples, a value for each position.

    Args:
        value: The container.
        count: Number of values that are wanted, if that is known.
    """
    if isinstance(value, Objects) and value.kinds in ({tuple}, {list}) and count is not None:
        if set(map(len, value.values)) != {count}:
            refuse(f"not all samples have {count} values")
        return [Objects([each[at] for each in value.values]) for at in range(count)]
    if isinstance(value, Rows) and value.ndim and value.shape[0] <= _MOST_PARTS:
        return [of_rows(value, at) for at in range(value.shape[0])]
    if type(value) not in {list, tuple, range, dict} | VIEWS:
        refuse(f"a loop over {described(value)} is not read")
    if len(value) > _MOST_PARTS:
        refuse(f"a loop over {len(value)} things is not read")
    return list(value)


def is_immutable(value: Any) -> bool:
    """Returns true if `value += other` leaves the value itself as it is."""
    if isinstance(value, Index):
        return True
    if isinstance(value, Objects):
        return value.kinds <= SIMPLE | {tuple}
    if isinstance(value, Rows):
        return value.is_scalar
    return type(value) in SIMPLE | {tuple}


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
