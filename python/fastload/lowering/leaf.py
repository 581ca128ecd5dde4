"""The leaves of a lowered dataset.

A leaf describes one value of a sample: the native column that makes it, the remaining Python calls, and their
explanation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from fastload import _lib
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

__all__ = ["Form", "Leaf", "select"]

Form = Literal[
    "tensor", "channels_last", "array", "cell", "number", "list", "text", "bytes", "texts", "pillow"
]


@dataclass(frozen=True)
class Leaf:
    """One value of a sample.

    Attributes:
        native: The column of `fastload._lib` that makes it.
        column: Description of the stored data: `"1000 files"`.
        form: The form of the value in one sample, as `fastload._lib.Leaf` takes it.
        decode: Description of the decoding; empty if nothing is decoded.
        transforms: The names of the operations that are made natively.
        exact: Description of the reference that the result equals.
        wrap: The subclass of `torch.Tensor` that a single sample is of, or None.
        tail: Python calls that remain to be made on the value, in order.
        stop: The reason why the first of `tail` is Python.
        heavy: True if a value takes long enough to release the interpreter for it.
        alone: The reason why Python makes single samples: their values differ from those in batches.
        listed: True if the dataset, indexed with a list of indices, has a batch of the value.
        is_read: True if it was read from the code of a user's class.
        draws: True if it was read, and draws random numbers for each sample.
        from_zero: True if only ints from 0 to the dataset's length are known to be valid indices.
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


def select(leaf: Leaf, picked: _lib.Rows, count: str, memo: Memo) -> Leaf:
    """Returns the leaf of some of a leaf's samples.

    Args:
        leaf: All of them.
        picked: Which, as numbers that are checked once, while neither they nor the leaf change.
        count: Their number, in words.
        memo: The memo.
    """
    columns = leaf.native, picked
    native = memo.of_objects("selection", columns, lambda: _lib.select(*columns))
    return leaf.over(native, f"{count} {leaf.column}")
