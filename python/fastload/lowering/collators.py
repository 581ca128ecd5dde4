"""Collate functions of transformers, with their batches padded and packed natively.

Reproduces each function's batch, dtypes and order of keys included, for common samples: mappings of lists of
numbers, tensors and arrays. All other samples go to the original function, with its result or error. A batch is
of the type that the original makes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fastload import _lib, registry
from fastload.collate import Pad
from fastload.collate.pack_collate import IGNORED
from fastload.lowering.tokenizer_pad import (
    Batch,
    TokenizerPad,
    check_torch,
    rounded_up,
    stacked,
    stacked_array,
    whole,
)
from fastload.registry import NotNative

__all__ = [
    "Collator",
    "Make",
    "flattening_pack",
    "lower_collator",
    "native",
    "seq2seq_labels",
    "settings_of",
]

_MODULE = "transformers.data.data_collator"
_METHODS = ("__call__", "torch_call")

_PLAIN = str, int, float, type(None)
_OF_TOKENIZER = (
    *("padding_side", "pad_token_id", "pad_token_type_id", "model_input_names", "model_max_length"),
)

Make = Callable[[list[Any]], Any]


class Collator:
    """A collate function that makes most batches natively, and the others with the original that it replaces."""

    def __init__(self, original: Any) -> None:
        self.original = original
        self._make = lower_collator(original)

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Returns the same result as the original; raises the same errors."""
        try:
            return self._make(list(samples))
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            return self.original(samples)  # which knows the samples, or the words

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the original."""
        return Collator, (self.original,)


def settings_of(collate_fn: Any) -> list[Any]:
    """Returns the settings that the native batches of a collate function depend on, to be compared by `==`."""
    own = getattr(collate_fn, "__dict__", {})
    settings = [*own, *(each if isinstance(each, _PLAIN) else type(each) for each in own.values())]
    if "data_collator" in own:
        settings += settings_of(own["data_collator"])
    if "tokenizer" in own and type(collate_fn).__module__ == _MODULE:
        settings += [str(getattr(own["tokenizer"], name, None)) for name in _OF_TOKENIZER]
    return settings


def native(collate_fn: Any) -> Collator | None:
    """Returns a function that makes the same batches natively; None if `collate_fn`, or its settings, are not known."""
    try:
        return Collator(collate_fn)
    except NotNative:
        return None


def lower_collator(collate_fn: Any) -> Make:
    """Returns a function that makes the same batches natively from Python samples.

    Raises:
        NotNative: An unknown collate function, or settings that are not known.
    """
    entry = registry.find("collator", collate_fn)
    if entry is None:
        msg = f"{registry.name(collate_fn)} is Python code"
        raise NotNative(msg, "use fastload.PadCollate or fastload.PackCollate")
    make: Make = entry.lower(collate_fn)
    return make


@registry.collator(f"{_MODULE}.DataCollatorWithPadding", methods=_METHODS, notes="")
def _with_padding(collator: Any) -> Make:
    pad = TokenizerPad(collator, collator.padding, collator.max_length)

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
    pad = TokenizerPad(collator, collator.padding, collator.max_length)
    labels_pad = seq2seq_labels(collator)

    def make(samples: list[Any]) -> Any:
        columns = _columns(samples)
        labels = columns.pop("label" if "label" in columns else "labels", None)
        if labels is not None and all(label is None for label in labels):
            labels = None
        batch = pad(columns)
        batch["labels"] = labels
        if labels is not None:
            batch["labels"] = whole(labels_pad.collate(labels, "'labels'")[0])
        return _encoding(batch)

    return make


def seq2seq_labels(collator: Any) -> _lib.Pad:
    """Returns how a `DataCollatorForSeq2Seq` pads labels."""
    fixed = str(getattr(collator.padding, "value", collator.padding)) == "max_length"
    return Pad(
        collator.label_pad_token_id,
        dim=0,
        padding_side=collator.tokenizer.padding_side,
        to=rounded_up(collator.max_length, collator.pad_to_multiple_of)
        if fixed and collator.max_length is not None
        else None,
        pad_to_multiple_of=None if fixed and collator.max_length else collator.pad_to_multiple_of,
    ).native()


@registry.collator(
    f"{_MODULE}.DataCollatorForLanguageModeling", methods=_METHODS, notes="with `mlm=False`"
)
def _language_modeling(collator: Any) -> Make:
    if collator.mlm or getattr(collator, "seed", None) is not None:
        msg = "DataCollatorForLanguageModeling draws masks in Python"
        raise NotNative(msg, "set mlm=False, and no seed")
    pad = TokenizerPad(collator, padding=True, max_length=None)
    tokenizer = collator.tokenizer
    tokens = Pad(
        tokenizer.pad_token_id,
        dim=0,
        padding_side=tokenizer.padding_side,
        pad_to_multiple_of=collator.pad_to_multiple_of,
    ).native()

    def make(samples: list[Any]) -> Any:
        if isinstance(samples[0], Mapping):
            batch = pad(_columns(samples))
            batch.pop("special_tokens_mask", None)
            batch.pop("offset_mapping", None)
        else:
            ids = tokens.collate(samples, "'input_ids'")[0]
            batch = {"input_ids": ids if isinstance(samples[0], torch.Tensor) else whole(ids)}
        labels = batch["input_ids"].clone()
        labels[labels == tokenizer.pad_token_id] = IGNORED
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
    check_torch(getattr(collator, "return_tensors", "pt"))

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
            if isinstance(values[0], torch.Tensor | np.ndarray):
                batch[key] = stacked_array(values, key)
            elif isinstance(values[0], np.generic):
                batch[key] = torch.tensor(values)
            else:
                batch[key] = stacked(values, key)
        return batch

    return make


@registry.collator(
    "transformers.trainer_utils.RemoveColumnsCollator",
    methods=("__call__", "_remove_columns"),
    notes="around a function that is recognised",
)
def _removing(collator: Any) -> Make:
    make = lower_collator(collator.data_collator)
    return lambda samples: make([collator._remove_columns(sample) for sample in samples])


@registry.collator(f"{_MODULE}.DataCollatorWithFlattening", methods=_METHODS, notes="")
def _flattening(collator: Any) -> Make:
    check_torch(collator.return_tensors)
    separator = collator.separator_id
    has_positions = collator.return_position_ids
    has_boundaries = getattr(collator, "return_flash_attn_kwargs", False)
    has_numbers = getattr(collator, "return_seq_idx", False)
    pack = flattening_pack(collator)

    def make(samples: list[Any]) -> Batch:
        tokens = [sample["input_ids"] for sample in samples]
        has_labels = "labels" in samples[0]
        labels = [sample["labels"] for sample in samples] if has_labels else tokens
        fields = [(tokens, "input_ids", 0, None), (labels, "labels", separator, separator)]
        (ids, targets), positions, numbers, ends, longest, _ = pack.collate(
            fields, segments=has_numbers
        )
        batch: Batch = {"input_ids": whole(ids), "labels": whole(targets)}
        if has_positions:
            batch["position_ids"] = positions
        if has_numbers:
            batch["seq_idx"] = (numbers - 1).int()
        if has_boundaries:
            batch |= {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends.clone()}
            batch |= {"max_length_q": longest, "max_length_k": longest}
        return batch

    return make


def flattening_pack(collator: Any) -> _lib.Pack:
    """Returns how a `DataCollatorWithFlattening` puts documents into one row.

    A document without tokens is an error here; transformers drops it.
    """
    return _lib.Pack(
        2**31,
        strategy="concat_split",
        overlong="error",
        pad_rows=False,
        first_position=getattr(collator, "position_ids_start", 0),
        empty=False,
    )


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
            return stacked_array(values, name)
        first = first[0]
    elif isinstance(first, torch.Tensor):
        first = first.item()
    whole = isinstance(first, int | np.integer)
    return torch.tensor(values, dtype=torch.long if whole else torch.float)


def _encoding(batch: Batch) -> Any:
    from transformers import BatchEncoding

    return BatchEncoding(batch)
