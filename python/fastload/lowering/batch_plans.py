"""Batches of a lowered dataset, made natively: the parts of a plan, and the plans of `PadCollate` and `PackCollate`.

Owns the leaves that are needed, the rule of each, and the values of a batch that they are to give. What is
not needed is not made.

For a `PadCollate`, the walk that makes a batch of Python's samples goes once over the structure of a sample
instead, with a leaf in place of each value: what it returns is the structure of every batch, and beside
it the rule of each leaf. So batches have the same keys in the same order in every lane. Refuses
what depends on the values of a sample, or is an error for every batch: Python says that best.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fastload import _lib
from fastload.collate.fields import Path, title
from fastload.collate.pack_collate import IGNORED, PackCollate
from fastload.collate.pad_collate import PadCollate
from fastload.collate.rules import Flat, Rule, Unpadded
from fastload.collate.walk import Walk
from fastload.lowering import Leaf, Lowered, NotNative

__all__ = ["BOUNDARIES", "Parts", "Plan", "documents", "pack_plan", "packed", "pad_plan"]

_ARRAYS = ("tensor", "channels_last", "array", "list")
_KEEP = "leave the field out, or pass it on with Keep()"

BOUNDARIES = {
    "cu_seq_lens_q": "boundaries",
    "cu_seq_lens_k": "boundaries again",
    "max_length_q": "longest",
    "max_length_k": "longest",
}
"""What attention needs to know of documents, by transformers' names, and the parts of a leaf that say it."""


class Plan(NamedTuple):
    """The native plan of batches.

    Attributes:
        program: The program that makes them.
        words: The collation of each leaf, in words.
        name: The name of the collation, for the user.
    """

    program: _lib.Program
    words: list[str]
    name: str


class Parts:
    """The leaves, rules and values of batches in the making of a plan.

    Args:
        lowered: The dataset.
        name: The name of the collation.
        change: What makes a collation native that is not.
    """

    def __init__(
        self, lowered: Lowered, name: str, change: str = "choose what fits the samples"
    ) -> None:
        self._lowered = lowered
        self._name, self._change = name, change
        layout = lowered.program.layout()
        self._layout = {
            id(leaf): each for (_, leaf), each in zip(lowered.leaves, layout, strict=True)
        }
        self._leaves: list[tuple[Leaf, str]] = []
        self._rules: list[_lib.Rule] = []
        self._words: dict[int, str] = {}
        self._parts: list[tuple[int, str]] = []

    def shape(self, leaf: Leaf) -> tuple[int, ...] | None:
        """Returns the shape of every sample of a leaf; None if they differ or are known later."""
        return self._layout[id(leaf)][0]

    def dtype(self, leaf: Leaf) -> str:
        """Returns the name of a leaf's element type."""
        return self._layout[id(leaf)][1]

    def add(self, leaf: Leaf, rule: _lib.Rule, words: str, form: str | None = None) -> int:
        """Adds a leaf that is needed, and returns its number.

        Args:
            leaf: The leaf.
            rule: The collation of its samples.
            words: That, for the user.
            form: In which its samples are seen; None: the leaf's own.
        """
        self._leaves.append((leaf, form or leaf.form))
        self._rules.append(rule)
        self._words[id(leaf)] = words
        return len(self._leaves) - 1

    def part(self, number: int, what: str) -> Any:
        """Returns the placeholder of a part of a leaf, by its number, in the structure of a batch."""
        self._parts.append((number, what))
        return _lib.Leaf(len(self._parts) - 1, "tensor")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuses a rule that a leaf cannot have, which is an error within."""
        try:
            yield
        except (TypeError, ValueError) as error:
            msg = f"`{self._name}` cannot be made natively: {error}"
            raise NotNative(msg, self._change) from error

    def plan(
        self, batch: Any, *, wrap: Callable[[Any], Any] | None = None, asks: bool = False
    ) -> Plan:
        """Returns the plan of batches of this structure.

        Args:
            batch: With parts in place of values.
            wrap: Called with each batch; returns what is handed over.
            asks: True if a batch that does not fit together is made in Python.
        """
        template = {place: _lib.Leaf(place, form) for place, (_, form) in enumerate(self._leaves)}
        with self.refusing():
            program = _lib.Program([leaf.native for leaf, _ in self._leaves], template)
            program = program.collated(self._rules, self._parts, batch, wrap=wrap, asks=asks)
        words = [self._words.get(id(leaf), "left out") for _, leaf in self._lowered.leaves]
        return Plan(program, words, self._name)


def pad_plan(lowered: Lowered, collate: PadCollate) -> Plan:
    """Returns how the batches that `collate` makes of a dataset's samples are made natively."""
    parts = Parts(lowered, "PadCollate", "give rules that fit the samples")
    with parts.refusing():
        batch = _Tracing(collate._program, parts).batch([lowered.sample])
    return parts.plan(batch)


class _Tracing(Walk):
    """The walk over the structure of a sample."""

    def __init__(self, program: Any, parts: Parts) -> None:
        super().__init__(program)
        self._parts = parts
        self._last = -1

    def _field(
        self, values: list[Any], path: Path, *, keyed: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        value = values[0]
        rule = self._program.rules.by_path.get(path)
        if not isinstance(value, Leaf):
            return self._structure(value, rule, path, keyed=keyed)
        if rule is not None:
            self._used.add(path)
            return self._ruled(rule, values, path, keyed=keyed, named=True)
        if value.form in ("text", "bytes", "pillow") or self._parts.dtype(value) == "str":
            return self._kept_as("keep", value, path), []
        if value.form == "texts":
            msg = f"only its samples show whether field {title(path)} is a list of text"
            raise NotNative(msg, "give it the rule Keep()")
        if self._is_single(value):
            return self._stacked(values, path), []
        return self._ruled(self._program.others, values, path, keyed=keyed, named=not path)

    def _structure(
        self, value: Any, rule: Rule | None, path: Path, *, keyed: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        if rule is not None:
            msg = f"the rule of field {title(path)} is for a {type(value).__name__}"
            raise NotNative(msg, "give rules to the fields in it")
        if not isinstance(value, list):
            return super()._field([value], path, keyed=keyed)
        first = value[0] if value else None
        if not isinstance(first, (Leaf, Mapping, tuple)) or (
            isinstance(first, Leaf) and (first.form not in _ARRAYS[:3] or self._is_single(first))
        ):
            msg = f"only its samples show whether field {title(path)} is a list of numbers"
            raise NotNative(msg, "use a tuple in place of the list")
        return self._sequence([value], path), []

    def _kept(self, values: list[Any], path: Path) -> Any:
        return self._kept_as("keep", values[0], path)

    def _unpadded(self, rule: Unpadded, values: list[Any], path: Path) -> Any:
        leaf = values[0]
        self._check_array(leaf, path)
        if self._is_single(leaf) and (
            rule.layout != "list" or leaf.form not in ("tensor", "channels_last")
        ):
            msg = f"field {title(path)} is single numbers, which Unpadded refuses"
            raise NotNative(msg, _KEEP)
        if rule.layout == "list":
            return self._kept_as("tensors", leaf, path)
        joined = self._add(leaf, _lib.Rule(rule.layout, title(path)), f"unpadded, {rule.layout}")
        return Flat(joined, self._part("offsets")) if rule.layout == "flat" else joined

    def _pad(self, pad: _lib.Pad, values: list[Any], path: Path, **asked: Any) -> Any:
        self._check_array(values[0], path)
        padded = self._add(values[0], _lib.Rule("pad", title(path), pad=pad, **asked), "padded")
        sizes = self._part("lengths") if asked["lengths"] else None
        return padded, sizes, None if asked["mask"] is None else self._part("mask")

    def _count(self, values: list[Any], sizes: Any) -> Any:  # noqa: ARG002 (as the walk's)
        return self._part("tokens")

    def _is_single(self, value: Any) -> bool:
        return isinstance(value, Leaf) and self._parts.shape(value) == ()

    def _stacked(self, values: list[Any], path: Path) -> Any:  # noqa: ARG002 (as the walk's)
        return self._add(values[0], _lib.Rule("stack", ""), "stacked")

    def _check_array(self, leaf: Leaf, path: Path) -> None:
        """Refuses what the walk refuses, or takes apart, by looking at values."""
        if leaf.form not in _ARRAYS and not self._is_single(leaf):
            msg = f"field {title(path)} is no array"
            raise NotNative(msg, _KEEP)

    def _kept_as(self, how: str, leaf: Leaf, path: Path) -> Any:
        """Passes the samples of a leaf on one by one."""
        if leaf.wrap is not None:
            msg = f"field {title(path)} is made of {leaf.wrap.__name__}, no plain tensors"
            raise NotNative(msg, "end the transforms with ToPureTensor()")
        return self._add(leaf, _lib.Rule(how, title(path)), "sample by sample")

    def _add(self, leaf: Leaf, rule: _lib.Rule, words: str) -> Any:
        self._last = self._parts.add(leaf, rule, words)
        return self._part("values")

    def _part(self, what: str) -> Any:
        """Returns the placeholder of a part of the leaf that was added last."""
        return self._parts.part(self._last, what)


def pack_plan(lowered: Lowered, collate: PackCollate) -> Plan:
    """Returns how the batches that `collate` makes of a dataset's samples are made natively."""
    sample = documents(lowered, "PackCollate")
    parts = Parts(lowered, "PackCollate")
    style = collate._style
    is_flat = style == "flash"
    batch, tokens = packed(
        parts,
        sample,
        collate._native,
        fill=collate._padding_value,
        label=IGNORED,
        positions=True,
        segments=(1, "int64") if style == "segment_ids" else None,
        boundaries={"hf": 2, "flash": 1}.get(style, 0),
        flat=is_flat,
    )
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
        extras |= BOUNDARIES
    else:
        extras |= {"cu_seqlens": "boundaries", "max_seqlen": "longest"}
    if collate._counts:
        extras["num_tokens"] = "tokens"
    batch |= {name: parts.part(tokens, what) for name, what in extras.items()}
    return parts.plan(batch)


def packed(
    parts: Parts,
    sample: dict[str, Leaf],
    pack: _lib.Pack,
    *,
    fill: complex,
    label: complex,
    flat: bool = False,
    **asked: Any,
) -> tuple[dict[str, Any], int]:
    """Adds documents, packed; returns their tokens and labels, and the number of the tokens' leaf.

    Args:
        parts: The plan in the making.
        sample: The fields of a sample.
        pack: How documents are put into rows.
        fill: The padding of tokens.
        label: The padding of labels, and the label of each document's first token.
        flat: True if rows are joined.
        asked: What else `_lib.Rule.pack` is asked for.
    """
    has_labels = "labels" in sample
    columns: list[tuple[complex, complex | None]] = [(fill, None)]
    if not has_labels:
        columns.append((label, label))
    rule = _lib.Rule.pack("'input_ids'", columns, pack, flat=flat, **asked)
    tokens = parts.add(sample["input_ids"], rule, "packed")
    batch = {"input_ids": parts.part(tokens, "values")}
    if has_labels:
        rule = _lib.Rule.pack("'labels'", [(label, label)], flat=flat)
        labels = parts.add(sample["labels"], rule, "packed")
        batch["labels"] = parts.part(labels, "values")
    else:
        batch["labels"] = parts.part(tokens, "labels")
    return batch, tokens


def documents(lowered: Lowered, collation: str) -> dict[str, Leaf]:
    """Returns the fields of samples that are mappings with tokens, or the tokens alone, for a `collation`.

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
