"""`PadCollate`: collates samples of any structure, each field by its rule."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

import torch

from fastload.collate.fields import ByArguments
from fastload.collate.rules import Rule
from fastload.collate.walk import Program, Walk

__all__ = ["PadCollate"]


@final
class PadCollate(ByArguments):
    """Collates samples whose fields may differ in size.

    Tuples, named tuples, lists and dicts, nested ones too, keep their structure. Of their fields,

    - tensors, NumPy arrays and lists of numbers are padded, by their rule or by `Pad()`; lists of
      ints become int64, of floats float64, of bools bool;
    - single numbers and tensors without dimensions are stacked as by torch's `default_collate`;
    - everything else (text, bytes, None, objects) is passed on as a list.

    Each padded field of a mapping gets an entry with its lengths: int64 on the CPU, `(B,)` for one padded
    dimension, `(B, k)` for several. It is there even if all samples have the same length, so the keys of a
    batch do not depend on its samples. Sequences have no names: lengths and masks that are requested explicitly
    are appended after the fields; named tuples cannot hold any.

    Args:
        fields: Rules by name, position, or path as a tuple; mappings nest. A single rule applies to every field
            that can be padded. Fields without a rule are padded by `Pad()`.
        mask: Masks, true at values and false at padding. A name: one mask, of the first field with a `Pad`
            rule, or else of the first padded field. Names by field, or True for `<key>_mask`, for several.
            None: no masks.
        mask_dtype: `torch.bool` or `torch.int64`.
        mask_rank: Number of dimensions of a mask, the batch dimension included; None for `(B, ...)` with the
            padded ones alone. Extra dimensions have size 1 and take the places of the field's other dimensions,
            the last ones first, then go in front: `(B, 1, T)` for a field `(B, C, T)`. One number, or numbers
            by field.
        lengths: As `mask`: one name, names by field, or True for `<key>_lengths`. None: True in
            mappings, nothing in sequences. False: nothing.
        shapes: Allowed sizes of padded dimensions, so that there are few shapes to compile for: each size is
            rounded up to the next allowed one, above the largest to a multiple of it. In a field without a rule
            this applies to the dimensions that vary, or to its only one.
        num_tokens: True if the batch gets `num_tokens`, an int: the sum of the lengths of the field that a
            single mask would belong to; or the name of another field.

    Raises:
        TypeError: `fields` holds something other than rules, or an option has the wrong type.
        ValueError: Options that exclude each other.

    Examples:
        >>> Loader(dataset, batch_size=32, collate_fn=PadCollate())
        >>> PadCollate(
        ...     {
        ...         "input_ids": Pad(0, pad_to_multiple_of=8),
        ...         "labels": Pad(-100),
        ...         "boxes": Unpadded(),
        ...     },
        ...     mask="attention_mask",
        ...     mask_dtype=torch.int64,
        ...     lengths=False,
        ... )
    """

    _defaults = MappingProxyType({"mask_dtype": torch.bool, "num_tokens": False})

    def __init__(
        self,
        fields: Mapping[Any, Any] | Rule | None = None,
        *,
        mask: bool | str | Mapping[Any, Any] | None = None,
        mask_dtype: torch.dtype = torch.bool,
        mask_rank: int | Mapping[Any, Any] | None = None,
        lengths: bool | str | Mapping[Any, Any] | None = None,
        shapes: Sequence[int] | None = None,
        num_tokens: bool | str | tuple[Any, ...] = False,
    ) -> None:
        if mask_dtype not in (torch.bool, torch.int64):
            msg = f"mask_dtype should be torch.bool or torch.int64, but got {mask_dtype}"
            raise ValueError(msg)
        self._arguments = {
            "fields": fields,
            "mask": mask,
            "mask_dtype": mask_dtype,
            "mask_rank": mask_rank,
            "lengths": lengths,
            "shapes": shapes,
            "num_tokens": num_tokens,
        }
        if not (fields is None or isinstance(fields, Mapping | Rule)):
            msg = f"fields should be one rule or map fields to rules, but got {fields!r}"
            raise TypeError(msg)
        self._program = Program(**self._arguments)

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Returns the batch of a list of samples.

        Raises:
            IndexError: There are no samples.
            ValueError: Samples that do not fit together or exceed a limit; the message names the field, the
                position of the sample and the shapes.
            TypeError: A field's type does not suit its rule.
        """
        samples = list(samples)
        if not samples:
            msg = "a batch of no samples cannot be collated: the batch sampler gave no indices"
            raise IndexError(msg)
        return Walk(self._program).batch(samples)
