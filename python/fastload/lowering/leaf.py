"""The leaves of a lowered dataset, and the structures that hold them.

A leaf describes one value of a sample: the native column that makes it, the remaining Python calls, and their
explanation. A structure is an exact tuple, list, dict or named tuple of structures, or a leaf.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from fastload import _lib
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

__all__ = ["Form", "Leaf", "containers", "fill", "leaves", "rebuild", "select"]

Form = Literal[
    "tensor", "channels_last", "array", "cell", "number", "list", "text", "bytes", "texts", "pillow"
]


@dataclass(frozen=True)
class Leaf:
    """One value of a sample.

    Attributes:
        native: The column of `fastload._lib` that makes it.
        column: Description of the stored data: `"1000 files"`.
        form: What the value is in one sample, as `fastload._lib.Leaf` says.
        decode: Description of the decoding; empty if nothing is decoded.
        transforms: The names of the operations that are made natively.
        exact: Description of the reference that the result equals.
        wrap: The subclass of `torch.Tensor` that a single sample is of, or None.
        tail: Python calls that remain to be made on the value, in order.
        stop: Why the first of `tail` is Python.
        heavy: Whether a value takes long enough to release the interpreter for it.
        alone: Why Python makes single samples: their values differ from those in batches.
        listed: Whether the dataset, indexed with a list of indices, has a batch of the value.
        is_read: Whether it was read from the code of a user's class.
        draws: Whether it was read, and draws random numbers for each sample.
        from_zero: Whether only ints from 0 to the dataset's length are known to be valid indices.
    """

    native: Any
    column: str
    form: Form = "tensor"
    decode: str = ""
    transforms: tuple[str, ...] = ()
    exact: str = "bit for bit"
    wrap: type | None = None
    tail: tuple[Callable[[Any], Any], ...] = ()
    stop: NotNative | None = None
    heavy: bool = False
    alone: NotNative | None = None
    listed: bool = False
    is_read: bool = False
    draws: bool = False
    from_zero: bool = False

    def over(self, native: Any, column: str) -> "Leaf":
        """Returns the same leaf over another column."""
        return replace(self, native=native, column=column)


def leaves(structure: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yields each leaf with its path, in the order of the sample's values."""
    if isinstance(structure, Leaf):
        yield path, structure
    elif isinstance(structure, dict):
        for key, part in structure.items():
            yield from leaves(part, f"{path}[{key!r}]")
    else:
        names = getattr(type(structure), "_fields", None)
        for place, part in enumerate(structure):
            yield from leaves(part, f"{path}.{names[place]}" if names else f"{path}[{place}]")


def fill(structure: Any, values: Iterator[Any]) -> Any:
    """Returns a new structure with a value in place of each leaf, in the order of `leaves`."""
    if isinstance(structure, Leaf):
        return next(values)
    if isinstance(structure, dict):
        return {key: fill(part, values) for key, part in structure.items()}
    return rebuild(structure, [fill(part, values) for part in structure])


def rebuild(container: Any, parts: list[Any]) -> Any:
    """Returns a tuple, list or named tuple of `parts`, of the type of `container`."""
    kind = type(container)
    return kind._make(parts) if hasattr(kind, "_fields") else kind(parts)


def containers(structure: Any) -> set[type]:
    """Returns the types of the containers in a structure."""
    if isinstance(structure, Leaf):
        return set()
    parts = structure.values() if isinstance(structure, dict) else structure
    return {type(structure)}.union(*map(containers, parts))


def select(leaf: Leaf, picked: _lib.Rows, count: str, memo: Memo) -> Leaf:
    """Returns the leaf of some of a leaf's samples.

    Args:
        leaf: All of them.
        picked: Which, as numbers that are checked once, while neither they nor the leaf change.
        count: How many they are, in words.
        memo: What is kept.
    """
    columns = leaf.native, picked
    native = memo.of_objects("selection", columns, lambda: _lib.Select(*columns))
    return leaf.over(native, f"{count} {leaf.column}")
