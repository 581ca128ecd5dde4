"""Values of a method that differ from sample to sample, for all samples at once.

Owns the kinds: an affine integer of the index, one Python object for each sample, one row of an array for each
sample. Whatever is no `Each` is the same object for all samples. An operation on a sample is made on all of
them, by Python, NumPy or torch itself; it is allowed only where that gives each sample its own result.
"""

import functools
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from fastload.registry import name, refuse

__all__ = [
    "Cells",
    "Each",
    "Index",
    "Objects",
    "Ragged",
    "Rows",
    "Step",
    "fields",
    "objects_of",
    "over",
    "tried",
]

MOST_BYTES = 1 << 24
"""Most bytes that are computed, joined or copied ahead of each epoch, to be compared with the last one's."""
MOST_OBJECTS = 2_000_000
"""Most samples whose values are computed one by one, at each `iter()`."""


class Each:
    """A value that differs from sample to sample."""


@dataclass(frozen=True, eq=False)
class Index(Each):
    """The index times `step` plus `first`, for indices from 0 to `count`."""

    step: int
    first: int
    count: int

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest value."""
        last = self.first + self.step * (self.count - 1)
        return min(self.first, last), max(self.first, last)

    def values(self) -> range:
        """Returns the value for each sample."""
        return range(self.first, self.first + self.step * self.count, self.step)

    def within(self, length: int) -> "Index":
        """Returns the places in what has so many items, from its end where all values are negative."""
        low, high = self.ends
        shift = length if high < 0 else 0
        if low + shift < 0 or high + shift >= length:
            refuse(f"its indices run from {low} to {high}, but the container has {length} items")
        return replace(self, first=self.first + shift)


@dataclass(frozen=True, eq=False)
class Objects(Each):
    """One Python object for each sample."""

    values: list[Any]

    @functools.cached_property  # to ask millions of objects takes longer than the rest of a reading
    def kinds(self) -> set[type]:
        """The exact types of the objects."""
        return set(map(type, self.values))


class Cells(list[Any]):
    """The items of an array of objects, which is the same for all samples; no more of it is known."""


@dataclass(frozen=True)
class Step:
    """An operation on arrays of samples.

    Attributes:
        key: Names it with its constants: equal keys mean equal results. A word, or a tuple that begins with one.
        call: Makes it, on an array whose first dimension counts samples.
        is_pointwise: True if each element depends on its own alone, wherever it stands.
        constant: The other operand of arithmetic.
    """

    key: Any
    call: Callable[[Any], Any]
    is_pointwise: bool = True
    constant: Any = None


@dataclass(frozen=True, eq=False)
class Rows(Each):
    """One array for each sample: a row of an array.

    Attributes:
        view: `(N, ...)`, a tensor or a NumPy array, without a copy of what it was made from.
        probe: No rows of what the steps make of `view`: has its dtype, library and shape.
        owner: The user's array that `view` lies in, or one of our own.
        is_ours: True if no other code can write to it.
        steps: The operations on `view`.
        picks: Which row each sample is, `(samples,)`; None where there is one row for each.
        is_python: True if samples are Python numbers.
    """

    view: Any
    probe: Any
    owner: Any
    is_ours: bool = False
    steps: tuple[Step, ...] = ()
    picks: np.ndarray[Any, Any] | None = None
    is_python: bool = False

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.view if self.picks is None else self.picks)

    @property
    def is_torch(self) -> bool:
        """True if samples are tensors."""
        return isinstance(self.probe, torch.Tensor)

    @property
    def ndim(self) -> int:
        """The dimensions of a sample."""
        return int(self.probe.ndim) - 1

    @property
    def dtype(self) -> Any:
        """The dtype of a sample."""
        return self.probe.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample."""
        return tuple(self.probe.shape[1:])

    @property
    def is_scalar(self) -> bool:
        """True if samples are NumPy's scalars, or Python's."""
        return not self.is_torch and self.ndim == 0

    def run(self, array: Any) -> Any:
        """Returns what the steps make of an array."""
        for step in self.steps:
            array = tried(step.call, array)
        return array

    def reshaped(self, key: Hashable, call: Callable[[Any], Any]) -> "Rows":
        """Returns the rows with their elements elsewhere, none of them changed."""
        if all(step.is_pointwise for step in self.steps) and self.is_torch == isinstance(
            self.view, torch.Tensor
        ):
            return replace(self, view=tried(call, self.view), probe=tried(call, self.probe))
        return self.stepped(Step(key, call, is_pointwise=False))

    def stepped(self, step: Step) -> "Rows":
        """Returns the rows with one more operation made on them."""
        return replace(self, probe=tried(step.call, self.probe), steps=(*self.steps, step))


@dataclass(frozen=True, eq=False)
class Ragged(Each):
    """One array for each sample, of different lengths; or a list of numbers.

    Attributes:
        values: All elements, a tensor or a NumPy array of our own.
        lengths: The length of each sample.
    """

    values: Any
    lengths: list[int]


def over(array: Any, *, owner: Any = None, is_ours: bool = False) -> Rows:
    """Returns the rows of an array `(N, ...)`, one for each sample."""
    return Rows(array, array[:0], array if owner is None else owner, is_ours)


def objects_of(value: Each, doing: str) -> Objects:
    """Returns a value as one Python object for each sample: a number or whatever it is."""
    if isinstance(value, Objects):
        return value
    if isinstance(value, Index):
        check_count(value.count)
        return Objects(list(value.values()))
    if isinstance(value, Rows) and value.is_python:
        check_count(value.count)
        array = value.run(value.view)
        return Objects((array if value.picks is None else array[value.picks]).tolist())
    return refuse(f"{doing} of {described(value)} is not known")


def fields(dicts: list[dict[Any, Any]]) -> dict[Any, Objects]:
    """Returns the values of dicts, one for each sample, by their keys; refuses dicts of several keys."""
    keys = {tuple(each) if set(map(type, each)) <= {str, int} else () for each in dicts}
    if len(keys) != 1 or not (names := keys.pop()):
        refuse("its dicts do not all have the same keys")
    return {key: Objects([each[key] for each in dicts]) for key in names}


def check_count(count: int) -> None:
    """Refuses to compute values one by one for very many samples."""
    if count > MOST_OBJECTS:
        refuse(f"its {count} samples would be computed one by one at each epoch")


def check_ahead(size: int, doing: str) -> None:
    """Refuses to compute or copy very many bytes.

    Args:
        size: The bytes.
        doing: What would be done with them, with a place for their number in MiB.
    """
    if size > MOST_BYTES:
        refuse(f"{doing.format(size >> 20)} ahead of each epoch would take too long")


def described(value: Any) -> str:
    """Returns a description of a value, in a few words."""
    if isinstance(value, Index):
        return "the index"
    if isinstance(value, Objects):
        return " or ".join(sorted(map(name, itertools.islice(value.kinds, 3))))
    if isinstance(value, Rows):
        if value.is_python:
            return "a number"
        return "a tensor" if value.is_torch else "a NumPy scalar" if value.is_scalar else "an array"
    if isinstance(value, Ragged):
        return "arrays of different lengths"
    if isinstance(value, Cells):
        return "an array of objects"
    return name(value) if not isinstance(value, Each) else type(value).__name__.lower()


def tried(call: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of a function of Python's own or of a library."""
    try:
        return call(*arguments)
    except Exception as error:
        refuse(f"a sample raises {type(error).__name__}: {error}")
