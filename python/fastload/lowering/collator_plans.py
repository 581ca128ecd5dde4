"""Batches of a lowered dataset, made natively as a collate function of transformers makes them.

Owns which leaves each function pads, stacks or packs, to which dtype, and what a batch is then. Cases that only
the samples of a batch show (unequal lengths, a field without numbers) go to the function itself, for that
batch. Refuses fields that it cannot make exactly: Python makes the batches then.
"""

from collections.abc import Callable
from typing import Any

import torch

from fastload import _lib, registry
from fastload.collate.pack_collate import IGNORED, PackCollate
from fastload.collate.pad_collate import PadCollate
from fastload.columns.structure import leaves
from fastload.lowering import Leaf, Lowered, collators
from fastload.lowering.batch_plans import (
    BOUNDARIES,
    Parts,
    Plan,
    documents,
    pack_plan,
    packed,
    pad_plan,
)
from fastload.lowering.tokenizer_pad import Batch, TokenizerPad
from fastload.registry import NotNative

__all__ = ["planner"]

_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_FLOATS = ("float16", "float32", "float64")
_ARRAYS = ("tensor", "array", "list")
_NUMBERS = (*_ARRAYS, "number", "cell")
_LEAVE_OUT = "leave the field out of the dataset"

Planner = Callable[[Lowered, Any], Plan]


def planner(collate_fn: Any) -> Planner | None:
    """Returns the planner of a collate function's native batches, or None if it is neither ours nor transformers'."""
    if (own := _OWN.get(type(collate_fn))) is not None:
        return own
    entry = registry.find("collator", collate_fn)
    return None if entry is None else _PLANS[entry.path.rpartition(".")[2]]


class _Fields:
    """The fields of samples that are mappings, for a known collate function of this name."""

    def __init__(self, lowered: Lowered, collator: Any, name: str) -> None:
        collators.lower_collator(collator)  # refuses settings that are not known
        self.parts = Parts(lowered, name)
        sample = lowered.sample
        if not isinstance(sample, dict):
            msg = f"samples are no mappings, as {name} wants them"
            raise NotNative(msg, "have samples that are dicts")
        for field, leaf in sample.items():
            if not isinstance(leaf, Leaf):
                msg = f"field {field!r} is a {type(leaf).__name__}"
                raise NotNative(msg, "have samples whose values are numbers and arrays")
        self.leaves: dict[str, Leaf] = dict(sample)

    def padded(self, name: str, pad: _lib.Pad, **options: Any) -> int:
        """Adds a padded field of integers, as int64; returns its number."""
        leaf = self.leaves[name]
        if leaf.form not in _ARRAYS:
            msg = f"field {name!r} is not an array, so it cannot be padded"
            raise NotNative(msg, _LEAVE_OUT)
        if len(self.parts.shape(leaf) or ()) > 1:
            msg = f"field {name!r} has several dimensions"  # transformers stacks such masks
            raise NotNative(msg, _LEAVE_OUT)
        to = self.retyped(name, "int64")
        rule = _lib.Rule("pad", repr(name), pad=pad, lengths=True, to=to, **options)
        return self.parts.add(leaf, rule, "padded", "tensor")

    def stacked(self, name: str, to: str) -> Any:
        """Adds a field that is stacked, of the dtype `to`; returns its batch."""
        leaf = self.leaves[name]
        if leaf.form not in _NUMBERS or leaf.wrap is not None:
            msg = f"field {name!r} is no plain numbers"
            raise NotNative(msg, _LEAVE_OUT)
        rule = _lib.Rule("stack", repr(name), to=to)
        return self.parts.part(self.parts.add(leaf, rule, "stacked", "tensor"), "values")

    def retyped(self, name: str, to: str) -> str:
        """Returns `to`, if the numbers of a field can be converted to it."""
        dtype = self.dtype(name)
        if dtype != to and dtype not in {"int64": _WHOLE, "float32": _FLOATS}.get(to, ()):
            msg = f"field {name!r} is {dtype}, which is not made {to} natively"
            raise NotNative(msg, f"have {to} in the dataset")
        return to

    def plain(self, name: str) -> str:
        """Returns the dtype that `torch.tensor` gives the numbers of a field as Python has them."""
        dtype = self.dtype(name)
        if dtype == "bool":
            return dtype
        default = str(torch.get_default_dtype()).removeprefix("torch.")
        return self.retyped(name, default if dtype in _FLOATS else "int64")

    def dtype(self, name: str) -> str:
        return self.parts.dtype(self.leaves[name])

    def is_single(self, name: str) -> bool:
        return self.parts.shape(self.leaves[name]) == ()

    def plan(self, batch: Batch, **options: Any) -> Plan:
        """Returns the plan of batches, which the collate function makes where they do not fit together."""
        return self.parts.plan(batch, asks=True, **options)

    def encoding(self, batch: Batch) -> Plan:
        from transformers import BatchEncoding

        return self.plan(batch, wrap=BatchEncoding)


def _tokenized(
    fields: _Fields, pad: TokenizerPad, without: str | None = None, **options: Any
) -> tuple[Batch, int]:
    """Returns the results of `tokenizer.pad` for all fields but one, and the number of the tokens' leaf."""
    main = pad.main
    if main not in fields.leaves:
        msg = f"samples have no field {main!r}, which the tokenizer pads"
        raise NotNative(msg, "name the field of tokens so")
    asks = pad.wants_mask and "attention_mask" not in fields.leaves
    mask = (None, True) if asks else None
    tokens = fields.padded(main, pad.pads[main], mask=mask, **options)
    plain = fields.leaves[main].form == "list"
    batch: Batch = {}
    for name, leaf in fields.leaves.items():
        if name == without:
            continue
        if plain and leaf.form not in ("list", "number"):
            msg = f"field {name!r} is neither a number nor a list of numbers, as {main!r} is"
            raise NotNative(msg, _LEAVE_OUT)
        if name not in pad.pads:
            batch[name] = fields.stacked(name, fields.plain(name))
            continue
        own = tokens if name == main else fields.padded(name, pad.pads[name], like=tokens)
        batch[name] = fields.parts.part(own, "values")
    if asks:
        batch["attention_mask"] = fields.parts.part(tokens, "mask")
    return batch, tokens


def _with_padding(lowered: Lowered, collator: Any) -> Plan:
    fields = _Fields(lowered, collator, "DataCollatorWithPadding")
    pad = TokenizerPad(collator, collator.padding, collator.max_length)
    batch, _ = _tokenized(fields, pad)
    for name in ("label", "label_ids"):
        if name in batch:
            batch["labels"] = batch.pop(name)
    return fields.encoding(batch)


def _seq2seq(lowered: Lowered, collator: Any) -> Plan:
    fields = _Fields(lowered, collator, "DataCollatorForSeq2Seq")
    name = "label" if "label" in fields.leaves else "labels"
    if name not in fields.leaves:
        msg = "samples have no labels for DataCollatorForSeq2Seq"
        raise NotNative(msg, "use DataCollatorWithPadding")
    pad = TokenizerPad(collator, collator.padding, collator.max_length)
    batch, _ = _tokenized(fields, pad, without=name)
    labels = fields.padded(name, collators.seq2seq_labels(collator))
    batch["labels"] = fields.parts.part(labels, "values")
    return fields.encoding(batch)


def _language_modeling(lowered: Lowered, collator: Any) -> Plan:
    fields = _Fields(lowered, collator, "DataCollatorForLanguageModeling")
    pad = TokenizerPad(collator, padding=True, max_length=None)
    relabelled = (collator.tokenizer.pad_token_id, IGNORED)
    batch, tokens = _tokenized(fields, pad, labels=relabelled)
    if pad.main != "input_ids":
        msg = f"the tokenizer pads {pad.main!r}, and labels are those of 'input_ids'"
        raise NotNative(msg, "use a tokenizer of text")
    batch.pop("special_tokens_mask", None)
    batch.pop("offset_mapping", None)
    batch["labels"] = fields.parts.part(tokens, "labels")
    return fields.encoding(batch)


def _default(lowered: Lowered, collator: Any) -> Plan:
    fields = _Fields(lowered, collator, "default_data_collator")
    names = ("label", "label_ids")
    batch: Batch = {}
    given = next((name for name in names if name in fields.leaves), None)
    if given is not None:
        batch["labels"] = fields.stacked(given, _labels(fields, given))
    for name, leaf in fields.leaves.items():
        if name in names or leaf.form == "text" or fields.dtype(name) == "str":
            continue
        single = leaf.form == "array" and fields.is_single(name)  # a NumPy scalar keeps its dtype
        kept = leaf.form in ("tensor", "array", "cell") or single
        batch[name] = fields.stacked(name, fields.dtype(name) if kept else fields.plain(name))
    return fields.plan(batch)


def _labels(fields: _Fields, name: str) -> str:
    """Returns the dtype that `default_data_collator` gives labels."""
    leaf, dtype = fields.leaves[name], fields.dtype(name)
    if name == "label_ids" and leaf.form == "tensor":
        return dtype
    shape = fields.parts.shape(leaf)
    is_list = leaf.form == "list" or (shape is not None and len(shape) == 1)
    if not (is_list if name == "label_ids" else fields.is_single(name)):
        msg = f"field {name!r} has other dimensions than labels have"
        raise NotNative(msg, _LEAVE_OUT)
    return fields.retyped(name, "int64" if dtype in _WHOLE else "float32")


def _flattening(lowered: Lowered, collator: Any) -> Plan:
    fields = _Fields(lowered, collator, "DataCollatorWithFlattening")
    sample = documents(lowered, "DataCollatorWithFlattening")
    parts, separator = fields.parts, collator.separator_id
    for name in {"input_ids", "labels"} & set(sample):
        fields.retyped(name, "int64")
    tells_positions = bool(collator.return_position_ids)
    tells_numbers = bool(getattr(collator, "return_seq_idx", False))
    tells_ends = bool(getattr(collator, "return_flash_attn_kwargs", False))
    batch, tokens = packed(
        parts,
        sample,
        collators.flattening_pack(collator),
        fill=0,
        label=separator,
        positions=tells_positions,
        segments=(0, "int32") if tells_numbers else None,
        boundaries=2 if tells_ends else 0,
    )
    if tells_positions:
        batch["position_ids"] = parts.part(tokens, "positions")
    if tells_numbers:
        batch["seq_idx"] = parts.part(tokens, "segments")
    if tells_ends:
        batch |= {name: parts.part(tokens, what) for name, what in BOUNDARIES.items()}
    return fields.plan(batch)


def _removing(lowered: Lowered, collator: Any) -> Plan:
    make = planner(collator.data_collator)
    if make is None:
        msg = f"collate_fn is {registry.name(collator.data_collator)}, Python code"
        raise NotNative(msg, "use fastload.PadCollate or fastload.PackCollate")
    sample = lowered.sample
    if not isinstance(sample, dict):
        return make(lowered, collator.data_collator)
    wanted = collator.signature_columns
    for name in sample.keys() - set(wanted):
        if any(leaf.draws or leaf.transforms for _, leaf in leaves(sample[name])):
            msg = f"field {name!r}, which is removed, may draw random numbers"
            raise NotNative(msg, _LEAVE_OUT)
    kept = Lowered.of({name: part for name, part in sample.items() if name in wanted})
    planned = make(kept, collator.data_collator)
    words = {id(leaf): each for (_, leaf), each in zip(kept.leaves, planned.words, strict=True)}
    return planned._replace(words=[words.get(id(leaf), "left out") for _, leaf in lowered.leaves])


_OWN: dict[type, Planner] = {PadCollate: pad_plan, PackCollate: pack_plan}
_PLANS: dict[str, Planner] = {
    "DataCollatorWithPadding": _with_padding,
    "DataCollatorForSeq2Seq": _seq2seq,
    "DataCollatorForLanguageModeling": _language_modeling,
    "default_data_collator": _default,
    "DefaultDataCollator": _default,
    "DataCollatorWithFlattening": _flattening,
    "RemoveColumnsCollator": _removing,
}
