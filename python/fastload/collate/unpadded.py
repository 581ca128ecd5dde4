"""`Unpadded`: keeps the samples of a field at their own lengths."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import torch

from fastload import _lib

__all__ = ["Flat", "Unpadded", "collate"]

_LAYOUTS = ("list", "jagged", "flat")


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
        if self.layout not in _LAYOUTS:
            msg = f"layout should be one of {_LAYOUTS}, but got {self.layout!r}"
            raise ValueError(msg)


def collate(rule: Unpadded, values: list[Any], field: str, allocate: Any) -> Any:
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
