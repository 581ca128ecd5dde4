"""Batches of a lowered dataset, made natively by the rules of a `PadCollate`.

The walk that makes a batch of Python's samples goes once over the structure of a sample instead, with
the number of a leaf in place of each value: what it returns is the structure of every batch, and beside
it the rule of each leaf. So batches have the same keys in the same order in every lane. Refuses
what depends on the values of a sample, or is an error for every batch: Python says that best.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastload import _lib
from fastload.collate import unpadded
from fastload.collate.fields import Path, title
from fastload.collate.pad_collate import PadCollate
from fastload.collate.unpadded import Unpadded
from fastload.collate.walk import Rule, Walk
from fastload.columns.structure import fill
from fastload.lowering import Leaf, Lowered, NotNative
from fastload.lowering.plan_parts import Plan

__all__ = ["plan"]

_ARRAYS = ("tensor", "channels_last", "array", "list")
_KEEP = "leave the field out, or pass it on with Keep()"


@dataclass(frozen=True)
class _Column:
    """A leaf of a sample, by its number."""

    number: int
    leaf: Leaf
    shape: tuple[int, ...] | None
    dtype: str


def plan(lowered: Lowered, collate: PadCollate) -> Plan:
    """Returns how the batches that `collate` makes of a dataset's samples are made natively.

    Raises:
        NotNative: Python makes them, and why.
    """
    layout = lowered.program.layout()
    columns = [
        _Column(number, leaf, shape, dtype)
        for number, ((_, leaf), (shape, dtype)) in enumerate(
            zip(lowered.leaves, layout, strict=True)
        )
    ]
    walk = _Tracing(collate._program, len(columns))
    try:
        batch = walk.batch([fill(lowered.sample, iter(columns))])
        program = lowered.program.collated(walk.rules, walk.parts, batch)
    except (TypeError, ValueError) as error:
        msg = f"PadCollate makes an error of every batch, or is Python here: {error}"
        raise NotNative(msg, "give rules that fit the samples") from error
    return Plan(program, walk.words, "PadCollate")


class _Tracing(Walk):
    """The walk over the structure of a sample."""

    def __init__(self, program: Any, leaves: int) -> None:
        super().__init__(program)
        self.rules = [_lib.Rule("stack", "")] * leaves
        self.words = ["stacked"] * leaves
        self.parts: list[tuple[int, str]] = []

    def _field(
        self, values: list[Any], path: Path, *, keyed: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        value = values[0]
        rule = self._program.rules.by_path.get(path)
        if not isinstance(value, _Column):
            return self._structure(value, rule, path, keyed=keyed)
        if rule is not None:
            self._used.add(path)
            return self._ruled(rule, values, path, keyed=keyed, named=True)
        form = value.leaf.form
        if form in ("text", "bytes", "pillow") or value.dtype == "str":
            return self._ruled_as("keep", value, path), []
        if form == "texts":
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
        if not isinstance(first, (_Column, Mapping, tuple)) or (
            isinstance(first, _Column)
            and (first.leaf.form not in _ARRAYS[:3] or self._is_single(first))
        ):
            msg = f"only its samples show whether field {title(path)} is a list of numbers"
            raise NotNative(msg, "use a tuple in place of the list")
        return self._sequence([value], path), []

    def _kept(self, values: list[Any], path: Path) -> Any:
        return self._ruled_as("keep", values[0], path)

    def _unpadded(self, rule: Unpadded, values: list[Any], path: Path) -> Any:
        column = values[0]
        self._check_array(column, path)
        if self._is_single(column) and (
            rule.layout != "list" or column.leaf.form not in ("tensor", "channels_last")
        ):
            msg = f"field {title(path)} is single numbers, which Unpadded refuses"
            raise NotNative(msg, _KEEP)
        if rule.layout == "list":
            return self._ruled_as("tensors", column, path)
        joined = self._ruled_as(rule.layout, column, path, f"unpadded, {rule.layout}")
        if rule.layout == "flat":
            return unpadded.Flat(joined, self._part(column, "offsets"))
        return joined

    def _pad(
        self,
        pad: _lib.Pad,
        values: list[Any],
        path: Path,
        *,
        lengths: bool,
        mask: tuple[int | None, bool] | None,
    ) -> tuple[Any, Any, Any]:
        column = values[0]
        self._check_array(column, path)
        self.rules[column.number] = _lib.Rule(
            "pad", title(path), pad=pad, lengths=lengths, mask=mask
        )
        self.words[column.number] = "padded"
        padded = self._part(column, "values")
        sizes = self._part(column, "lengths") if lengths else None
        return padded, sizes, None if mask is None else self._part(column, "mask")

    def _count(self, values: list[Any], sizes: Any) -> Any:  # noqa: ARG002 (as the walk's)
        return self._part(values[0], "tokens")

    def _is_single(self, value: Any) -> bool:
        return isinstance(value, _Column) and value.shape == ()

    def _stacked(self, values: list[Any], path: Path) -> Any:  # noqa: ARG002 (as the walk's)
        return self._part(values[0], "values")

    def _check_array(self, column: _Column, path: Path) -> None:
        """Refuses what the walk refuses, or takes apart, by looking at values."""
        if column.leaf.form not in _ARRAYS and not self._is_single(column):
            msg = f"field {title(path)} is no array"
            raise NotNative(msg, _KEEP)

    def _ruled_as(self, how: str, column: _Column, path: Path, words: str = "") -> Any:
        """Gives a leaf its rule."""
        if how in ("keep", "tensors") and column.leaf.wrap is not None:
            msg = f"field {title(path)} is made of {column.leaf.wrap.__name__}, no plain tensors"
            raise NotNative(msg, "end the transforms with ToPureTensor()")
        self.rules[column.number] = _lib.Rule(how, title(path))
        self.words[column.number] = words or "sample by sample"
        return self._part(column, "values")

    def _part(self, column: _Column, what: str) -> Any:
        """Returns the placeholder of a part of a leaf in the structure of a batch."""
        self.parts.append((column.number, what))
        return _lib.Leaf(len(self.parts) - 1, "tensor")
