"""The structure of a sample, of what a method returned for all samples.

Owns which values are columns, and in which form.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fastload.lowering.leaf import Form, Leaf
from fastload.lowering.reading.arrays import check_array
from fastload.lowering.reading.pictures import Picture, check_draws, leaf_of
from fastload.lowering.reading.stored import NUMBERS, Stored, column_of, is_packed
from fastload.lowering.reading.values import (
    Index,
    Objects,
    Ragged,
    Rows,
    check_count,
    described,
    fields,
    over,
)
from fastload.memory import layout
from fastload.registry import NotNative, name, refuse

__all__ = ["Builder"]

_MOST_PLACES = 64
"""Longest list of other things than numbers that is a structure of a sample."""
_ALONE = NotNative("samples one by one may not be contiguous", "load batches")


@dataclass(frozen=True)
class Builder:
    """Makes the leaves of a sample.

    Attributes:
        stored: Makes the columns.
        count: Number of samples.
        from_zero: True if the dataset is known for ints from 0 to its length alone.
        pictures: Those that are leaves already.
    """

    stored: Stored
    count: int
    from_zero: bool
    pictures: list[Picture] = field(default_factory=list)

    def structure(self, value: Any) -> Any:
        """Returns the structure of a sample, with a leaf for each value."""
        if isinstance(value, Rows | Ragged):
            return self._array(value)
        if isinstance(value, Objects):
            return self._objects(value)
        if type(value) is dict and value:
            return {key: self.structure(part) for key, part in value.items()}
        if type(value) in (tuple, list) and value:
            return type(value)(map(self.structure, value))
        if isinstance(value, Index):
            return self._index(value)
        if isinstance(value, Picture):
            check_draws(value, self.pictures)
            self.pictures.append(value)
            return leaf_of(self.stored, value, from_zero=self.from_zero)
        return self._constant(value)

    def _leaf(self, native: Any, words: str, form: Form, alone: NotNative | None = None) -> Leaf:
        return Leaf(
            native,
            words,
            form,
            exact="bit for bit, as its code says",
            alone=alone,
            is_read=True,
            from_zero=self.from_zero,
        )

    def _array(self, rows: Rows | Ragged, form: Form | None = None) -> Leaf:
        if isinstance(rows, Ragged):
            own: Form = "tensor" if isinstance(rows.values, torch.Tensor) else "array"
            words = f"{len(rows.lengths)} arrays of different lengths"
            return self._leaf(self.stored.ragged(rows), words, form or own)
        own = "number" if rows.is_python else "tensor" if rows.is_torch else "array"
        if own == "array" and rows.shape == () and rows.dtype == np.uint64:
            refuse("torch makes no tensors of NumPy's uint64 scalars")
        is_packed_row = all(step.is_pointwise for step in rows.steps) and is_packed(rows.view)
        native, picks = self.stored.rows(rows), rows.picks
        words = f"{rows.count} rows of {layout.dtype_name(rows.dtype)}, shape {rows.shape}"
        native = native if picks is None else self.stored.picked(native, picks)
        return self._leaf(native, words, form or own, None if is_packed_row else _ALONE)

    def _index(self, index: Index) -> Leaf:
        check_count(index.count)
        numbers = np.arange(index.count) * index.step + index.first
        use = "index", index.step, index.first, index.count
        native = self.stored.memo.of_objects(use, (), lambda: column_of(numbers))
        return self._leaf(native, "the index", "number")

    def _constant(self, value: Any) -> Leaf:
        """Returns the leaf of a value that is the same for all samples."""
        kind = type(value)
        if kind in NUMBERS:
            numbers = np.broadcast_to(np.array(value, NUMBERS[kind]), self.count)
            use = "constant", kind, repr(value), self.count
            native = self.stored.memo.of_objects(use, (), lambda: column_of(numbers))
            return self._leaf(native, f"{value!r}", "number")
        if kind is str:
            check_count(self.count)
            return self._leaf(
                self.stored.texts(Objects([value] * self.count)), f"{value!r}", "text"
            )
        if kind not in (np.ndarray, torch.Tensor) or (value.ndim == 0 and kind is np.ndarray):
            refuse(f"a sample has {described(value)} in it")
        check_array(value)
        shape = self.count, *value.shape
        is_torch = kind is torch.Tensor
        whole = value[None].expand(shape) if is_torch else np.broadcast_to(value, shape)
        return self._array(over(whole, owner=value))

    def _objects(self, objects: Objects) -> Any:
        kinds, values = objects.kinds, objects.values
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        if kind is tuple or kind is list:
            return self._sequences(values, kind)
        if kind is dict:
            return {key: self._objects(each) for key, each in fields(values).items()}
        if kind in NUMBERS:
            dtype = NUMBERS[kind]
            numbers = self.stored.values(objects, lambda each: np.array(each, dtype), dtype)
            return self._leaf(self.stored.native(numbers), f"{len(values)} numbers", "number")
        if kind is str:
            return self._leaf(self.stored.texts(objects), f"{len(values)} texts", "text")
        if kind in (torch.Tensor, np.ndarray):
            return self._array(self.stored.stacked(values))
        return refuse(f"a sample has {described(objects)} in it")

    def _sequences(self, values: list[Any], kind: type) -> Any:
        lengths = set(map(len, values))
        if kind is list and (numbers := self.stored.lists(values)) is not None:
            return self._array(numbers, "list")
        if len(lengths) != 1 or not 0 < (length := lengths.pop()) <= _MOST_PLACES:
            refuse(f"{name(kind)}s of several lengths, none or many places")
        return kind(
            self._objects(Objects([each[place] for each in values])) for place in range(length)
        )
