"""The making of one batch: a walk over the structure of its samples, each field by its rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

from fastload import _lib
from fastload.collate import ragged
from fastload.collate.fields import Fields, Option, Path, title
from fastload.collate.keep import Keep
from fastload.collate.pad import Pad
from fastload.collate.ragged import Ragged
from fastload.collate.shared import allocator

__all__ = ["Program", "Rule", "Walk"]

Rule = Pad | Ragged | Keep

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_STRUCTURES = (torch.Tensor, np.ndarray, Mapping, tuple)
_KINDS = "biufc"


@dataclass(frozen=True)
class Program:
    """What is done with each field.

    Attributes:
        rules: Rules that were given for fields.
        others: The rule of the fields without one.
        native: What carries out the rules that pad, by field; those of `others` are at `()`, for samples
            that are a field themselves, and at None.
        mask: Which fields get one.
        is_wide: Whether masks are int64.
        rank: Of masks, where `ranks` says nothing.
        ranks: Of masks, by field.
        lengths: Which fields get them.
        counts: Whether tokens are counted.
        counted: The field whose lengths those are; None: the first that is padded.
    """

    rules: Fields[Rule]
    others: Rule
    native: dict[Path | None, _lib.Pad]
    mask: Option
    is_wide: bool
    rank: int | None
    ranks: Fields[int]
    lengths: Option
    counts: bool
    counted: Path | None


class Walk:
    """One batch in the making."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._allocate = allocator()
        self._used: set[Path] = set()
        self._padded: set[Path] = set()
        self._taken: set[str] = set()
        self._tokens: Any = None

    def batch(self, samples: list[Any]) -> Any:
        """Returns the batch of samples, one at least."""
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
        if isinstance(batch, dict):
            return _with(batch, [("num_tokens", self._tokens)])
        if isinstance(batch, list):
            return [*batch, self._tokens]
        return (*batch, self._tokens) if type(batch) is tuple else (batch, self._tokens)

    def _check_all_used(self) -> None:
        """Refuses options for fields that samples do not have, or that were not padded."""
        program = self._program
        if unused := [title(path) for path in program.rules.by_path if path not in self._used]:
            msg = f"samples have no field {', '.join(unused)}, for which PadCollate has a rule"
            raise ValueError(msg)
        for option in (program.mask, program.lengths):
            for path in option.fields.by_path:
                if path not in self._padded:
                    msg = f"samples have no padded field {title(path)}, for which {option.suffix} was asked"
                    raise ValueError(msg)
            if isinstance(option.given, str) and option.suffix not in self._taken:
                msg = f"samples have no padded field, for which {option.suffix}={option.given!r} was asked"
                raise ValueError(msg)

    def _field(
        self, values: list[Any], path: Path, *, keyed: bool
    ) -> tuple[Any, list[tuple[str, Any]]]:
        """Returns the batch of a field, and what is to stand beside it, by name."""
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
        if isinstance(rule, Ragged):
            return self._ragged(rule, values, path), []
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

    def _ragged(self, rule: Ragged, values: list[Any], path: Path) -> Any:
        return ragged.collate(rule, values, title(path), self._allocate)

    def _pad(
        self,
        pad: _lib.Pad,
        values: list[Any],
        path: Path,
        *,
        lengths: bool,
        mask: tuple[int | None, bool] | None,
    ) -> tuple[Any, Any, Any]:
        """Returns the batch of a field, its lengths and its mask; None for what is not asked for."""
        return pad.collate(
            values,
            title(path),
            lengths=lengths,
            mask=mask,
            allocate=self._allocate,
            threads=torch.get_num_threads(),
        )

    def _count(self, values: list[Any], sizes: Any) -> Any:  # noqa: ARG002 (for a plan of batches)
        """Returns how many tokens there are, from lengths."""
        return int((sizes if sizes.dim() == 1 else sizes.prod(1)).sum())

    def _is_single(self, value: Any) -> bool:
        return _is_single(value)

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
        except TypeError:  # as torch: a mapping that is made in another way
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
            msg = f"{kind.__name__} has no place for lengths and masks; have samples that are dicts or tuples"
            raise ValueError(msg)
        return kind(*parts)


def _is_single(value: Any) -> bool:
    """Returns whether a value has no dimensions."""
    if isinstance(value, torch.Tensor):
        return value.dim() == 0
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, _NUMBERS)


def _is_numeric(value: Any) -> bool:
    """Returns whether a list looks like one of numbers: its first number, however deep, tells."""
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
    """Returns a batch with more in it.

    Raises:
        ValueError: Something is there already.
    """
    _check_new([name for name, _ in extras], batch)
    return batch | dict(extras)


def _check_new(names: list[str], others: Mapping[Any, Any]) -> None:
    if taken := [name for name in names if name in others]:
        msg = f"the batch has {taken[0]!r} already; choose other names for lengths and masks"
        raise ValueError(msg)
