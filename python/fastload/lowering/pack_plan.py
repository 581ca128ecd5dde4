"""Batches of a lowered dataset, made natively as a `PackCollate` makes them.

Owns which leaves are packed, and what a batch of each style has. Refuses samples that are no documents:
Python says best what is wrong with them.
"""

from typing import Any

from fastload import _lib
from fastload.collate.pack_collate import IGNORED, PackCollate
from fastload.lowering import Leaf, Lowered, NotNative
from fastload.lowering.plan_parts import Parts, Plan

__all__ = ["documents", "pack_plan"]


def pack_plan(lowered: Lowered, collate: PackCollate) -> Plan:
    """Returns how the batches that `collate` makes of a dataset's samples are made natively.

    Raises:
        NotNative: Python makes them, and why.
    """
    sample = documents(lowered, "PackCollate")
    parts = Parts(lowered)
    has_labels = "labels" in sample
    style, pad = collate._style, collate._padding_value
    columns: list[tuple[complex, complex | None]] = [(pad, None)]
    if not has_labels:
        columns.append((IGNORED, IGNORED))
    is_flat = style == "flash"
    rule = _lib.Rule.pack(
        "'input_ids'",
        columns,
        collate._native,
        positions=True,
        segments=(1, "int64") if style == "segment_ids" else None,
        boundaries={"hf": 2, "flash": 1}.get(style, 0),
        flat=is_flat,
    )
    tokens = parts.add(sample["input_ids"], rule, "packed")
    batch: dict[str, Any] = {"input_ids": parts.part(tokens, "values")}
    if has_labels:
        rule = _lib.Rule.pack("'labels'", [(IGNORED, IGNORED)], flat=is_flat)
        labels = parts.add(sample["labels"], rule, "packed")
        batch["labels"] = parts.part(labels, "values")
    else:
        batch["labels"] = parts.part(tokens, "labels")
    for name, fill in collate._fields.items():
        if name not in sample:
            msg = f"samples have no field {name!r}"
            raise NotNative(msg, "leave it out of the fields of PackCollate")
        rule = _lib.Rule.pack(repr(name), [(fill, None)], flat=is_flat)
        batch[name] = parts.part(parts.add(sample[name], rule, "packed"), "values")
    extras = {"positions" if style == "segment_ids" else "position_ids": "positions"}
    if style == "segment_ids":
        extras["segment_ids"] = "segments"
    elif style == "hf":
        extras |= {"cu_seq_lens_q": "boundaries", "cu_seq_lens_k": "boundaries again"}
        extras |= {"max_length_q": "longest", "max_length_k": "longest"}
    else:
        extras |= {"cu_seqlens": "boundaries", "max_seqlen": "longest"}
    if collate._counts:
        extras["num_tokens"] = "tokens"
    batch |= {name: parts.part(tokens, what) for name, what in extras.items()}
    return parts.plan(batch, "PackCollate")


def documents(lowered: Lowered, collation: str) -> dict[str, Leaf]:
    """Returns the fields of samples that are mappings with tokens, or the tokens alone.

    Args:
        lowered: The dataset.
        collation: The collation that needs them, for messages.

    Raises:
        NotNative: Samples of another structure, or whose tokens are no array.
    """
    sample = lowered.sample
    if isinstance(sample, Leaf):
        sample = {"input_ids": sample}
    if not isinstance(sample, dict) or "input_ids" not in sample:
        msg = f"samples have no field 'input_ids' for {collation}"
        raise NotNative(msg, "have samples that are dicts with 'input_ids', or tokens alone")
    for name in ("input_ids", "labels"):
        leaf = sample.get(name)
        if leaf is not None and not isinstance(leaf, Leaf):
            msg = f"field {name!r} is a {type(leaf).__name__}"
            raise NotNative(msg, "have arrays of numbers there")
    return sample
