"""The padding of a tokenizer of transformers: the part that its collate functions have in common.

Owns the settings, read once, and the batch that `tokenizer.pad` makes of lists of values. Refuses
tokenizers with code of their own, and settings that pad nothing.
"""

from typing import Any

import numpy as np
import torch

from fastload import _lib, registry
from fastload.collate import Pad
from fastload.registry import NotNative

__all__ = [
    "Batch",
    "TokenizerPad",
    "check_torch",
    "rounded_up",
    "stacked",
    "stacked_array",
    "whole",
]

_STACK = Pad(dim=()).native()

Batch = dict[str, Any]


class TokenizerPad:
    """Makes what `tokenizer.pad` makes of columns, as a plain dict.

    Attributes:
        main: The field whose lengths count.
        pads: The fields that are padded, and how.
        wants_mask: True if there is an attention mask, given or made.

    Raises:
        NotNative: A tokenizer with code of its own, or no padding.
    """

    def __init__(self, collator: Any, padding: Any, max_length: int | None) -> None:
        from transformers.tokenization_utils_base import PreTrainedTokenizerBase

        check_torch(collator.return_tensors)
        tokenizer, multiple_of = collator.tokenizer, collator.pad_to_multiple_of
        for method in ("pad", "_pad", "_get_padding_truncation_strategies"):
            original = getattr(PreTrainedTokenizerBase, method)
            if getattr(getattr(tokenizer, method, None), "__func__", None) is not original:
                msg = f"{registry.name(type(tokenizer))} has a {method} of its own"
                raise NotNative(msg, "use fastload.PadCollate")
        try:
            strategy, _, max_length, _ = tokenizer._get_padding_truncation_strategies(
                padding=padding, max_length=max_length, verbose=False
            )
        except ValueError as error:
            raise NotNative(str(error)) from error
        if strategy.value == "do_not_pad" or (
            strategy.value == "max_length" and max_length is None
        ):
            msg = "the collator does not pad"
            raise NotNative(msg, "set padding=True")
        size: dict[str, Any] = {"pad_to_multiple_of": multiple_of}
        if strategy.value == "max_length":
            size = {"to": rounded_up(max_length, multiple_of)}
        if tokenizer.pad_token_id is None:
            msg = "the tokenizer has no token to pad with"
            raise NotNative(msg, "set tokenizer.pad_token")
        self.main: str = tokenizer.model_input_names[0]
        self.wants_mask = "attention_mask" in tokenizer.model_input_names
        fills = {self.main: tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
        fills["special_tokens_mask"] = 1
        if self.wants_mask:
            fills["attention_mask"] = 0
        side = tokenizer.padding_side
        self.pads: dict[str, _lib.Pad] = {
            name: Pad(fill, dim=0, padding_side=side, **size).native()
            for name, fill in fills.items()
        }

    def __call__(self, columns: Batch) -> Batch:
        """Returns the batch of lists of values, by field.

        Raises:
            TypeError: Values that the original may take, and this does not.
            ValueError: Fields that do not fit together.
        """
        tokens = columns[self.main]
        lengths = list(map(len, tokens))
        plain = isinstance(tokens[0], list | tuple)
        batch: Batch = {}
        made = None
        for name, values in columns.items():
            if plain and not all(type(value) in (list, int, float, bool) for value in values):
                msg = f"{name} is made of other things than lists"
                raise TypeError(msg)
            if name not in self.pads:
                batch[name] = stacked(values, name)
                continue
            if list(map(len, values)) != lengths:
                msg = f"{name} has other lengths than {self.main}"
                raise ValueError(msg)
            ask = (None, True) if name == self.main and self.wants_mask else None
            padded, _, mask = self.pads[name].collate(values, name, mask=ask)
            batch[name] = whole(padded)
            made = mask if ask else made
            if padded.dim() != 2:
                msg = f"{name} has several dimensions"
                raise ValueError(msg)
        if self.wants_mask and "attention_mask" not in columns:
            batch["attention_mask"] = made
        return batch


def stacked_array(values: list[Any], name: str) -> torch.Tensor:
    """Returns tensors or arrays of one shape, stacked."""
    made: torch.Tensor = _STACK.collate(values, name)[0]
    return made


def stacked(values: list[Any], name: str) -> torch.Tensor:
    """Returns what `torch.tensor` makes of the values as Python has them."""
    if isinstance(values[0], int | float | np.generic):
        return torch.tensor(values)
    if getattr(values[0], "ndim", 1) == 0:
        return torch.tensor([value.item() for value in values])
    return _plain(stacked_array(values, name))


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Returns integers as int64.

    Raises:
        TypeError: Other numbers, or none, of which torch and NumPy say another type.
    """
    if not tensor.numel():
        msg = "no numbers"
        raise TypeError(msg)
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype is torch.uint64:
        msg = f"{tensor.dtype} in place of integers"
        raise TypeError(msg)
    return tensor.to(torch.int64)


def rounded_up(size: int, multiple_of: int | None) -> int:
    """Returns a size, or the next multiple."""
    return size if multiple_of is None else -(-size // multiple_of) * multiple_of


def check_torch(tensors: str) -> None:
    """Refuses a collator that makes other arrays than torch's."""
    if tensors != "pt":
        msg = f"it returns {tensors!r}, not tensors"
        raise NotNative(msg, 'set return_tensors="pt"')


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns numbers in the dtypes of Python's numbers."""
    if tensor.dtype.is_floating_point and tensor.numel():
        return tensor.to(torch.get_default_dtype())
    return tensor if tensor.dtype is torch.bool else whole(tensor)
