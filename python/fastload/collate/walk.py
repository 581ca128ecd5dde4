"""Collates one batch: walks the structure of its samples and applies each field's rule."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

from fastload import _lib
from fastload.collate.fields import Fields, Option, Path, title, with_entry
from fastload.collate.rules import Keep, Pad, Rule, Unpadded, joined, ladder
from fastload.collate.stacking import allocator

__all__ = ["Program", "Walk"]

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_STRUCTURES = (torch.Tensor, np.ndarray, Mapping, tuple)
_KINDS = "biufc"


class Program:
    """The rules and options of all fields.

    Args are those of `PadCollate`.

    Attributes:
        rules: Rules by field.
        others: The rule of fields without their own.
        native: Native forms of the padding rules, by field; that of `others` is at `()`, for samples that are a
            field themselves, and at None.
        mask: Fields that get a mask.
        is_wide: True if masks are int64.
        rank: Number of dimensions of masks that are not in `ranks`.
        ranks: Number of dimensions of masks, by field.
        lengths: Fields that get lengths.
        counts: True if the batch gets `num_tokens`.
        counted: The field whose lengths are summed; None for the first padded one.
    """

    def __init__(
        self,
        fields: Any,
        *,
        mask: Any,
        mask_dtype: torch.dtype,
        mask_rank: Any,
        lengths: Any,
        shapes: Any,
        num_tokens: Any,
    ) -> None:
        rungs = ladder(shapes or ())
        self.others: Rule = fields if isinstance(fields, Rule) else Pad()
        given = fields if isinstance(fields, Mapping) else {}
        self.rules: Fields[Rule] = Fields(
            given, lambda value: isinstance(value, Rule), "fields", "Pad, Unpadded or Keep"
        )
        pads = {path: rule for path, rule in self.rules.by_path.items() if isinstance(rule, Pad)}
        self.native: dict[Path | None, _lib.Pad] = {
            path: rule.native(rungs) for path, rule in pads.items()
        }
        if isinstance(self.others, Pad):
            self.native.setdefault((), self.others.native(rungs))
            self.native[None] = self.others.native(rungs, named=False)
        first = next(iter(pads), None)
        self.mask = Option(mask, "mask", first)
        self.is_wide = mask_dtype is torch.int64
        ranks = mask_rank if isinstance(mask_rank, Mapping) else {}
        self.rank: int | None = None if ranks else mask_rank
        self.ranks: Fields[int] = Fields(
            ranks, lambda value: type(value) is int, "mask_rank", "an int"
        )
        self.lengths = Option(lengths, "lengths", first)
        self.counts = num_tokens is not False
        named = num_tokens if isinstance(num_tokens, tuple) else (num_tokens,)
        self.counted: Path | None = first if isinstance(num_tokens, bool) else named
        for given_by_field in (self.mask.fields, self.lengths.fields, self.ranks):
            for path in given_by_field.by_path:
                if not isinstance(self.rules.by_path.get(path, self.others), Pad):
                    msg = f"field {title(path)} is not padded: leave out its lengths and mask"
                    raise ValueError(msg)


class Walk:
    """The collation of one batch."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._allocate = allocator()
        self._used: set[Path] = set()
        self._padded: set[Path] = set()
        self._taken: set[str] = set()
        self._tokens: Any = None

    def batch(self, samples: list[Any]) -> Any:
        """Returns the batch of at least one sample."""
        batch, extras = self._field(samples, (), keyed=False)
        self._check_all_used()
        if extras:
            batch = (batch, *(value for _, value in extras))
        if not self._program.counts:
            return batch
        if self._tokens is None:
            counted = self._program.counted
            msg = f"num_tokens needs a padded field{f' {title(counted)}' if counted else ''}"
            raise ValueError(msg)
        if isinstance(batch, tuple) and type(batch) is not tuple:
            return batch, self._tokens
        return with_entry(batch, "num_tokens", self._tokens, by="PadCollate")

    def _check_all_used(self) -> None:
        """Refuses options for fields that samples do not have, or that were not padded."""
        program = self._program
        if unused := [title(path) for path in program.rules.by_path if path not in self._used]:
            msg = f"samples have no field {', '.join(unused)}, for which PadCollate has a rule"
            raise ValueError(msg)
        for option in (program.mask, program.lengths):
            for path in option.fields.by_path:
                if path not in self._padded:
                    msg = (
                        f"samples have no padded field {title(path)}, but {option.suffix} names it"
                    )
                    raise ValueError(msg)
            if isinstance(option.given, str) and option.suffix not in self._taken:
                msg = (
                    f"samples have no padded field, but {option.suffix}={option.given!r} needs one"
                )
                raise ValueError(msg)

    def _field(
        self, values: list[Any], path: Path, *, keyed: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        """Returns a field collated, and its lengths and mask by name."""
        rule = self._program.rules.by_path.get(path)
        if rule is not None:
            self._used.add(path)
            return self._ruled(rule, values, path, keyed=keyed, named=True)
        first = values[0]
        if isinstance(first, torch.Tensor):
            is_array = first.dim() > 0
        elif isinstance(first, np.ndarray):
            is_array = first.ndim > 0
            if first.dtype.kind not in _KINDS:
                return values, []
        elif isinstance(first, Mapping):
            return self._mapping(values, path), []
        elif isinstance(first, tuple):
            return self._sequence(values, path), []
        elif isinstance(first, list):
            if not all(map(_is_numeric, values)):
                nests = any(isinstance(part, _STRUCTURES) for part in first)
                return (self._sequence(values, path) if nests else values), []
            is_array = True
        elif isinstance(first, _NUMBERS):
            is_array = False
        else:
            return values, []
        if is_array:
            return self._ruled(self._program.others, values, path, keyed=keyed, named=not path)
        return self._stacked(values, path), []

    def _ruled(
        self, rule: Rule, values: list[Any], path: Path, *, keyed: bool, named: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        if isinstance(rule, Keep):
            return self._kept(values, path), []
        if isinstance(rule, Unpadded):
            return self._unpadded(rule, values, path), []
        if self._is_single(values[0]):
            return self._stacked(values, path), []
        program = self._program
        self._padded.add(path)
        lengths = mask = None
        if rule.dim != ():
            lengths = program.lengths.name(path, self._taken, keyed=keyed)
            mask = program.mask.name(path, self._taken, keyed=keyed)
        counts = program.counts and self._tokens is None and program.counted in (None, path)
        rank = program.ranks.by_path.get(path, program.rank)
        padded, sizes, masks = self._pad(
            program.native[(path if path in program.native else ()) if named else None],
            values,
            path,
            lengths=lengths is not None or counts,
            mask=None if mask is None else (rank, program.is_wide),
        )
        if counts and sizes is not None:
            self._tokens = self._count(values, sizes)
        extras = [(name, value) for name, value in ((lengths, sizes), (mask, masks)) if name]
        return padded, extras

    def _kept(self, values: list[Any], path: Path) -> Any:  # noqa: ARG002 (for a plan of batches)
        return values

    def _unpadded(self, rule: Unpadded, values: list[Any], path: Path) -> Any:
        return joined(rule, values, title(path), self._allocate)

    def _pad(
        self,
        pad: _lib.Pad,
        values: list[Any],
        path: Path,
        *,
        lengths: bool,
        mask: tuple[int | None, bool] | None,
    ) -> tuple[Any, Any, Any]:
        """Returns a field padded, its lengths and its mask; None for what was not requested."""
        return pad.collate(
            values,
            title(path),
            lengths=lengths,
            mask=mask,
            allocate=self._allocate,
            threads=torch.get_num_threads(),
        )

    def _count(self, values: list[Any], sizes: Any) -> Any:  # noqa: ARG002 (for a plan of batches)
        """Returns the number of tokens, from lengths."""
        return int((sizes if sizes.dim() == 1 else sizes.prod(1)).sum())

    def _is_single(self, value: Any) -> bool:
        """Returns true if a value has no dimensions."""
        if isinstance(value, torch.Tensor):
            return value.dim() == 0
        if isinstance(value, np.ndarray):
            return value.ndim == 0
        return isinstance(value, _NUMBERS)

    def _stacked(self, values: list[Any], path: Path) -> Any:
        try:
            return default_collate(values)
        except Exception as error:
            error.add_note(f"while collating field {title(path)}")
            raise

    def _mapping(self, samples: list[Any], path: Path) -> Any:
        first = samples[0]
        for position, sample in enumerate(samples):
            if not isinstance(sample, Mapping) or sample.keys() != first.keys():
                keys = list(sample) if isinstance(sample, Mapping) else type(sample).__name__
                msg = (
                    f"cannot collate {title(path)}: sample {position} of the batch has the fields "
                    f"{keys}, the first has {list(first)}"
                )
                raise ValueError(msg)
        batch: dict[Any, Any] = {}
        for key in first:
            values = [sample[key] for sample in samples]
            value, extras = self._field(values, (*path, key), keyed=True)
            batch[key] = value
            _check_new([name for name, _ in extras], first)
            batch = _with(batch, extras)
        if type(first) is dict:
            return batch
        try:
            return type(first)(batch)
        except TypeError:  # as torch does: the mapping's class takes other arguments
            return batch

    def _sequence(self, samples: list[Any], path: Path) -> Any:
        first = samples[0]
        kind = type(first)
        for position, sample in enumerate(samples):
            if not isinstance(sample, list | tuple) or len(sample) != len(first):
                found = len(sample) if isinstance(sample, list | tuple) else type(sample).__name__
                msg = (
                    f"cannot collate {title(path)}: sample {position} of the batch has {found} parts, "
                    f"the first has {len(first)}; pass them on with Keep()"
                )
                raise ValueError(msg)
        names = getattr(kind, "_fields", None)
        parts, beside = [], []
        for position, values in enumerate(zip(*samples, strict=True)):
            inner = (*path, position)
            if names is not None:
                inner = self._program.rules.child(path, position, names[position])
            value, extras = self._field(list(values), inner, keyed=False)
            parts.append(value)
            beside += extras
        if names is None:
            parts += [value for _, value in beside]
            return parts if isinstance(first, list) else tuple(parts)
        if beside:
            msg = f"{kind.__name__} cannot hold lengths and masks; return dicts or tuples from the dataset"
            raise ValueError(msg)
        return kind(*parts)


def _is_numeric(value: Any) -> bool:
    """Returns true if a list holds numbers, judged by its first innermost element."""
    if not isinstance(value, list):
        return False
    for part in value:
        if isinstance(part, list):
            if part:
                return _is_numeric(part)
        else:
            return isinstance(part, _NUMBERS)
    return True


def _with(batch: dict[Any, Any], extras: list[tuple[str, Any]]) -> dict[Any, Any]:
    """Returns a batch with extra entries.

    Raises:
        ValueError: The batch has an entry of that name.
    """
    _check_new([name for name, _ in extras], batch)
    return batch | dict(extras)


def _check_new(names: list[str], others: Mapping[Any, Any]) -> None:
    if taken := [name for name in names if name in others]:
        msg = f"the batch already has {taken[0]!r}; choose other names for lengths and masks"
        raise ValueError(msg)
