"""The rules by which fields are collated: `Pad`, `Unpadded`, `Keep`."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch

from fastload import _lib
from fastload.checks import check_choice, positive

__all__ = ["Flat", "Keep", "Pad", "Rule", "Unpadded", "joined", "ladder"]


@final
@dataclass(frozen=True)
class Keep:
    """The values of a field as a list, one for each sample: what the dataset returned, untouched."""


class Flat(NamedTuple):
    """Samples, concatenated.

    Attributes:
        values: `(sum of lengths, ...)`.
        offsets: int64 `(B + 1,)`; sample i is `values[offsets[i] : offsets[i + 1]]`.
    """

    values: torch.Tensor
    offsets: torch.Tensor


@final
@dataclass(frozen=True)
class Unpadded:
    """A field without padding.

    Args:
        layout: `"list"`: a list of tensors of any shapes, passed on as they are.
            `"jagged"`: one nested tensor of layout `torch.jagged`, with its minimum and maximum lengths set,
            which saves a device synchronization. `"flat"`: a `Flat` of values and offsets. For the latter two,
            samples may differ in their first dimension only.

    Raises:
        ValueError: An unknown layout.
    """

    layout: Literal["list", "jagged", "flat"] = "list"

    def __post_init__(self) -> None:
        check_choice("layout", self.layout, ("list", "jagged", "flat"))


@final
@dataclass(frozen=True)
class Pad:
    """A field padded to one shape.

    The size of a padded dimension is that of the longest sample, capped at `max_length` if samples may be
    truncated, then rounded up to a size of `shapes`, then to a multiple of `pad_to_multiple_of`. `to` overrides all
    of these.

    Args:
        padding_value: Value of the padding; the field's dtype must be able to represent it.
        dim: The padded dimension of a sample, or several; negative ones count from the end. The others must be
            equal. None: every dimension that varies in the batch, or the first if none does. Set it if the
            shape of a batch, or of its lengths, must not depend on the samples. `()` pads nothing: samples must
            have one shape, and get no lengths.
        padding_side: Side of the padding.
        to: Fixed size, whatever the samples have; one for each of `dim`, or one for all.
        pad_to_multiple_of: Sizes become multiples of this.
        max_length: Maximum size of a sample in a padded dimension. The padded size may exceed it after rounding
            up.
        overlong: Treatment of longer samples: `"error"`, or `"truncate"`, which cuts them at their end.
        shapes: Allowed sizes; above the largest, its multiples. None: those of the `PadCollate`.

    Raises:
        TypeError: The padding value is not a number; or `dim`, `to` or `shapes` are not integers.
        ValueError: Sizes out of range, or options that exclude each other.

    Examples:
        >>> Pad(-100, pad_to_multiple_of=8, max_length=4096, overlong="truncate")
        >>> Pad(0.0, dim=-1, to=2304)  # time last, one length for all batches
    """

    padding_value: complex = 0
    dim: int | Sequence[int] | None = field(default=None, kw_only=True)
    padding_side: Literal["right", "left"] = field(default="right", kw_only=True)
    to: int | Sequence[int] | None = field(default=None, kw_only=True)
    pad_to_multiple_of: int | None = field(default=None, kw_only=True)
    max_length: int | None = field(default=None, kw_only=True)
    overlong: Literal["error", "truncate"] = field(default="error", kw_only=True)
    shapes: Sequence[int] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.padding_value, np.generic):
            object.__setattr__(self, "padding_value", self.padding_value.item())
        if isinstance(self.dim, Iterable):
            object.__setattr__(self, "dim", tuple(_several(self.dim)))
        check_choice("padding_side", self.padding_side, ("right", "left"))
        check_choice("overlong", self.overlong, ("error", "truncate"))
        if self.to is not None and (self.pad_to_multiple_of is not None or self.shapes is not None):
            msg = "to sets the size; leave out pad_to_multiple_of and shapes"
            raise ValueError(msg)
        sizes, dims = _several(self.to), _several(self.dim)
        if len(sizes) > 1 and len(sizes) != len(dims):
            msg = f"to={self.to!r} needs a dim for each of its sizes, but got dim={self.dim!r}"
            raise ValueError(msg)
        if len(set(dims)) < len(dims):
            msg = f"dim={self.dim!r} names a dimension twice"
            raise ValueError(msg)
        positive("pad_to_multiple_of", self.pad_to_multiple_of, or_none=True)
        positive("max_length", self.max_length, or_none=True)
        if any(size < 0 for size in sizes):
            msg = f"to should not be negative, but got {self.to!r}"
            raise ValueError(msg)
        self.native()

    def native(self, shapes: Iterable[int] = (), *, named: bool = True) -> _lib.Pad:
        """Returns the native form of the rule.

        Args:
            shapes: The allowed sizes, unless the rule has its own.
            named: True if the user gave the rule for this very field.
        """
        return _lib.Pad(
            self.padding_value,
            padding_side=self.padding_side,
            dims=None if self.dim is None else _several(self.dim),
            named=named,
            to=_several(self.to),
            max_length=self.max_length,
            truncate=self.overlong == "truncate",
            shapes=ladder(shapes if self.shapes is None else self.shapes),
            pad_to_multiple_of=1 if self.pad_to_multiple_of is None else self.pad_to_multiple_of,
        )


Rule = Pad | Unpadded | Keep


def joined(rule: Unpadded, values: list[Any], field: str, allocate: Any) -> Any:
    """Returns the collated values of a field.

    Raises:
        ValueError: Samples that do not fit together.
        TypeError: A sample is not an array.
    """
    if rule.layout == "list":
        return [
            value if isinstance(value, torch.Tensor) else _lib.flatten([value], field)[0]
            for value in values
        ]
    flat, offsets, shortest, longest = _lib.flatten(values, field, allocate=allocate)
    if rule.layout == "flat":
        return Flat(flat, offsets)
    return torch.nested.nested_tensor_from_jagged(
        flat, offsets, min_seqlen=shortest, max_seqlen=longest
    )


def ladder(shapes: Iterable[int]) -> list[int]:
    """Returns allowed sizes in ascending order.

    Raises:
        ValueError: A size below 1.
    """
    rungs = sorted(map(operator.index, shapes))
    if rungs and rungs[0] < 1:
        msg = f"shapes should be sizes of at least 1, but got {rungs[0]}"
        raise ValueError(msg)
    return rungs


def _several(value: Any) -> list[int]:
    """Returns None, a number or several numbers as a list."""
    if value is None:
        return []
    numbers = value if isinstance(value, Iterable) else (value,)
    return [operator.index(number) for number in numbers]
