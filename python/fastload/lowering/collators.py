"""Collate functions of transformers, with their batches padded and packed natively.

Owns what each makes of a batch, to the dtype and the order of the keys, for the samples that are common:
mappings of lists of numbers, tensors and arrays. Whatever else it is given, and whatever does not fit,
goes to the original, whose result or error it is then. A batch is of the type that the original makes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.collate import Pad
from fastload.lowering import registry
from fastload.lowering.registry import NotNative

__all__ = ["Collator", "native"]

_MODULE = "transformers.data.data_collator"
_METHODS = ("__call__", "torch_call")
_STACK = Pad(dim=()).native()
_IGNORED = -100

Batch = dict[str, Any]
Make = Callable[[list[Any]], Any]


class Collator:
    """A collate function that makes most batches natively, and asks the original for the others.

    Args:
        original: What it stands for.
    """

    def __init__(self, original: Any) -> None:
        self.original = original
        self._make = _lower(original)

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Returns what the original returns; raises what it raises."""
        try:
            return self._make(list(samples))
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            return self.original(samples)  # which knows the samples, or the words

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the original."""
        return Collator, (self.original,)


def native(collate_fn: Any) -> Collator | None:
    """Returns what makes the same batches natively.

    Args:
        collate_fn: An object or function of transformers', of the exact class.

    Returns:
        None for anything else, and for settings that are not known.
    """
    try:
        return Collator(collate_fn)
    except NotNative:
        return None


def _lower(collate_fn: Any) -> Make:
    entry = registry.find("collator", collate_fn)
    if entry is None:
        msg = f"{registry.name(collate_fn)} is Python code"
        raise NotNative(msg, "use fastload.PadCollate or fastload.PackCollate")
    make: Make = entry.lower(collate_fn)
    return make


@registry.collator(f"{_MODULE}.DataCollatorWithPadding", methods=_METHODS, notes="")
def _with_padding(collator: Any) -> Make:
    pad = _tokenizer_pad(collator, collator.padding, collator.max_length)

    def make(samples: list[Any]) -> Any:
        batch = pad(_columns(samples))
        for name in ("label", "label_ids"):
            if name in batch:
                batch["labels"] = batch.pop(name)
        return _encoding(batch)

    return make


@registry.collator(f"{_MODULE}.DataCollatorForSeq2Seq", methods=_METHODS, notes="without a model")
def _seq2seq(collator: Any) -> Make:
    if collator.model is not None:
        msg = "DataCollatorForSeq2Seq asks a model for decoder_input_ids"
        raise NotNative(msg, "leave model out")
    pad = _tokenizer_pad(collator, collator.padding, collator.max_length)
    fixed = str(getattr(collator.padding, "value", collator.padding)) == "max_length"
    labels_pad = Pad(
        collator.label_pad_token_id,
        dim=0,
        side=collator.tokenizer.padding_side,
        to=_up(collator.max_length, collator.pad_to_multiple_of)
        if fixed and collator.max_length is not None
        else None,
        to_multiple_of=None if fixed and collator.max_length else collator.pad_to_multiple_of,
    ).native()

    def make(samples: list[Any]) -> Any:
        columns = _columns(samples)
        labels = columns.pop("label" if "label" in columns else "labels", None)
        if labels is not None and all(label is None for label in labels):
            labels = None
        batch = pad(columns)
        batch["labels"] = labels
        if labels is not None:
            batch["labels"] = _whole(labels_pad.collate(labels, "'labels'")[0])
        return _encoding(batch)

    return make


@registry.collator(
    f"{_MODULE}.DataCollatorForLanguageModeling", methods=_METHODS, notes="with `mlm=False`"
)
def _language_modeling(collator: Any) -> Make:
    if collator.mlm or getattr(collator, "seed", None) is not None:
        msg = "DataCollatorForLanguageModeling draws masks in Python"
        raise NotNative(msg, "set mlm=False, and no seed")
    pad = _tokenizer_pad(collator, padding=True, max_length=None)
    tokenizer = collator.tokenizer
    tokens = Pad(
        tokenizer.pad_token_id,
        dim=0,
        side=tokenizer.padding_side,
        to_multiple_of=collator.pad_to_multiple_of,
    ).native()

    def make(samples: list[Any]) -> Any:
        if isinstance(samples[0], Mapping):
            batch = pad(_columns(samples))
            batch.pop("special_tokens_mask", None)
            batch.pop("offset_mapping", None)
        else:
            ids = tokens.collate(samples, "'input_ids'")[0]
            batch = {"input_ids": ids if isinstance(samples[0], torch.Tensor) else _whole(ids)}
        labels = batch["input_ids"].clone()
        labels[labels == tokenizer.pad_token_id] = _IGNORED
        batch["labels"] = labels
        return _encoding(batch) if isinstance(samples[0], Mapping) else batch

    return make


@registry.collator(
    f"{_MODULE}.default_data_collator",
    f"{_MODULE}.DefaultDataCollator",
    methods=_METHODS,
    notes="",
)
def _default(collator: Any) -> Make:
    _check_torch(getattr(collator, "return_tensors", "pt"))

    def make(samples: list[Any]) -> Batch:
        first = samples[0]
        columns = _columns(samples)
        batch: Batch = {}
        name = next((each for each in ("label", "label_ids") if first.get(each) is not None), None)
        if name is not None:
            batch["labels"] = _default_labels(columns[name], name)
        for key, values in columns.items():
            if key in ("label", "label_ids") or values[0] is None or isinstance(values[0], str):
                continue
            kept = isinstance(values[0], torch.Tensor | np.ndarray)
            batch[key] = _STACK.collate(values, key)[0] if kept else _stacked(values, key)
        return batch

    return make


@registry.collator(f"{_MODULE}.DataCollatorWithFlattening", methods=_METHODS, notes="")
def _flattening(collator: Any) -> Make:
    _check_torch(collator.return_tensors)
    separator = collator.separator_id
    has_positions = collator.return_position_ids
    has_boundaries = getattr(collator, "return_flash_attn_kwargs", False)
    has_numbers = getattr(collator, "return_seq_idx", False)
    pack = _lib.Pack(
        2**31,
        strategy="concat_split",
        overlong="error",
        pad_rows=False,
        first_position=getattr(collator, "position_ids_start", 0),
    )

    def make(samples: list[Any]) -> Batch:
        tokens = [sample["input_ids"] for sample in samples]
        has_labels = "labels" in samples[0]
        labels = [sample["labels"] for sample in samples] if has_labels else tokens
        if not all(map(len, tokens)):
            msg = "a sample without tokens has a label for its separator"
            raise ValueError(msg)
        fields = [(tokens, "input_ids", 0, None), (labels, "labels", separator, separator)]
        (ids, targets), positions, numbers, ends, longest, _ = pack.collate(
            fields, segments=has_numbers
        )
        batch: Batch = {"input_ids": _whole(ids), "labels": _whole(targets)}
        if has_positions:
            batch["position_ids"] = positions
        if has_numbers:
            batch["seq_idx"] = (numbers - 1).int()
        if has_boundaries:
            batch |= {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends.clone()}
            batch |= {"max_length_q": longest, "max_length_k": longest}
        return batch

    return make


def _tokenizer_pad(collator: Any, padding: Any, max_length: int | None) -> Callable[[Batch], Batch]:
    """Returns what `tokenizer.pad` makes of columns, as a plain dict.

    Raises:
        NotNative: A tokenizer with code of its own, or no padding.
    """
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    _check_torch(collator.return_tensors)
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
    if strategy.value == "do_not_pad" or (strategy.value == "max_length" and max_length is None):
        msg = "the collator does not pad"
        raise NotNative(msg, "set padding=True")
    size: dict[str, Any] = {"to_multiple_of": multiple_of}
    if strategy.value == "max_length":
        size = {"to": _up(max_length, multiple_of)}
    if tokenizer.pad_token_id is None:
        msg = "the tokenizer has no token to pad with"
        raise NotNative(msg, "set tokenizer.pad_token")
    main = tokenizer.model_input_names[0]
    fills = {main: tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
    fills["special_tokens_mask"] = 1
    wants_mask = "attention_mask" in tokenizer.model_input_names
    if wants_mask:
        fills["attention_mask"] = 0
    side = tokenizer.padding_side
    pads = {name: Pad(fill, dim=0, side=side, **size).native() for name, fill in fills.items()}

    def pad(columns: Batch) -> Batch:
        tokens = columns[main]
        lengths = list(map(len, tokens))
        plain = isinstance(tokens[0], list | tuple)
        batch: Batch = {}
        made = None
        for name, values in columns.items():
            if plain and not all(type(value) in (list, int, float, bool) for value in values):
                msg = f"{name} is made of other things than lists"
                raise TypeError(msg)
            if name not in pads:
                batch[name] = _stacked(values, name)
                continue
            if list(map(len, values)) != lengths:
                msg = f"{name} has other lengths than {main}"
                raise ValueError(msg)
            ask = (None, True) if name == main and wants_mask else None
            padded, _, mask = pads[name].collate(values, name, mask=ask)
            batch[name] = _whole(padded)
            made = mask if ask else made
            if padded.dim() != 2:
                msg = f"{name} has several dimensions"
                raise ValueError(msg)
        if wants_mask and "attention_mask" not in columns:
            batch["attention_mask"] = made
        return batch

    return pad


def _columns(samples: list[Any]) -> Batch:
    """Returns a list for each key of the first sample."""
    first = samples[0]
    if not isinstance(first, Mapping):
        msg = "samples are no mappings"
        raise TypeError(msg)
    return {key: [sample[key] for sample in samples] for key in first.keys()}  # noqa: SIM118


def _default_labels(values: list[Any], name: str) -> torch.Tensor:
    """Returns the labels as `default_data_collator` makes them: int64 or float32, by the first."""
    first = values[0]
    if name == "label_ids":
        if isinstance(first, torch.Tensor):
            return _array(values, name)
        first = first[0]
    elif isinstance(first, torch.Tensor):
        first = first.item()
    whole = isinstance(first, int | np.integer)
    return torch.tensor(values, dtype=torch.long if whole else torch.float)


def _array(values: list[Any], name: str) -> torch.Tensor:
    stacked: torch.Tensor = _STACK.collate(values, name)[0]
    return stacked


def _stacked(values: list[Any], name: str) -> torch.Tensor:
    """Returns what `torch.tensor` makes of the values as Python has them."""
    if isinstance(values[0], int | float):
        return torch.tensor(values)
    if isinstance(values[0], np.generic) or getattr(values[0], "ndim", 1) == 0:
        return torch.tensor([value.item() for value in values])
    return _plain(_array(values, name))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns numbers in the dtypes of Python's numbers."""
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.get_default_dtype())
    return tensor if tensor.dtype is torch.bool else _whole(tensor)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Returns whole numbers as int64."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype is torch.uint64:
        msg = f"{tensor.dtype} in place of whole numbers"
        raise TypeError(msg)
    return tensor.to(torch.int64)


def _up(size: int, multiple_of: int | None) -> int:
    return size if multiple_of is None else -(-size // multiple_of) * multiple_of


def _encoding(batch: Batch) -> Any:
    from transformers import BatchEncoding

    return BatchEncoding(batch)


def _check_torch(tensors: str) -> None:
    """Refuses a collator that makes other arrays than torch's."""
    if tensors != "pt":
        msg = f"it returns {tensors!r}, not tensors"
        raise NotNative(msg, 'set return_tensors="pt"')
