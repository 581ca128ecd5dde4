"""Columns of what was read: the structure of a sample, with a leaf for each value.

Owns which values have columns, and what is computed ahead of an epoch for those that native code does not compute.
"""

import contextlib
import itertools
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload import _arrays, _lib
from fastload.lowering.chain import Chain, follow
from fastload.lowering.formats import check_files
from fastload.lowering.leaf import Form, Leaf
from fastload.lowering.memo import Memo
from fastload.lowering.reading.arrays import check_array, to_numpy, to_torch
from fastload.lowering.reading.pictures import Picture
from fastload.lowering.reading.values import (
    Each,
    Index,
    Made,
    Objects,
    Ragged,
    Rows,
    Step,
    check_count,
    described,
    over,
)
from fastload.lowering.registry import NotNative, name
from fastload.lowering.torchvision_containers import flat

__all__ = ["Builder"]

_MOST_BYTES = 1 << 24
"""Largest array that is computed ahead, in bytes; it is compared with the last one at each `iter()`."""
_SAME = ("torch", "numpy")
"""The keys of steps that leave each element as it is."""
_BYTES = (torch.uint8, np.dtype(np.uint8))
_MOST_PLACES = 64
"""Longest list of other things than numbers that is a structure of a sample."""
_OWN = (np.int64, np.float64, np.bool_)
_NUMBERS: dict[type, Any] = {int: np.int64, float: np.float64, bool: np.bool_}


class Builder:
    """Makes columns, and keeps those whose values have not changed.

    Args:
        memo: Where they are kept.
        count: How many samples there are.
    """

    def __init__(self, memo: Memo, count: int) -> None:
        self._memo = memo
        self._count = count
        self._places = itertools.count()

    def structure(self, value: Any) -> Any:
        """Returns the structure of a sample, with a leaf for each value.

        Raises:
            NotNative: A value that is no column.
        """
        if isinstance(value, Made):
            return value.structure
        if isinstance(value, Objects):
            return self._objects(value.values)
        if isinstance(value, Picture):
            return self._picture(value)
        if isinstance(value, Each):
            return self._leaf(value)
        if type(value) is dict and value:
            return {key: self.structure(part) for key, part in value.items()}
        if type(value) in (tuple, list) and value:
            return type(value)(map(self.structure, value))
        return self._constant(value)

    def array(self, objects: list[Any], dtype: Any, *, is_torch: bool) -> Rows | Ragged:
        """Returns Python numbers, or lists of them, as arrays or tensors.

        Args:
            objects: A number for each sample, or a list of numbers.
            dtype: Of the result; None for the library's own choice.
            is_torch: Whether torch makes it, else NumPy.

        Raises:
            NotNative: Other things, or several types of numbers.
        """
        make: Callable[[Any], Any] = (
            (lambda values: torch.tensor(values, dtype=dtype))
            if is_torch
            else (lambda values: np.array(values, dtype))
        )
        kinds = set(map(type, objects))
        if not (kinds <= _NUMBERS.keys() or kinds in ({list}, {tuple})) or not objects:
            raise NotNative(f"an array of {described(Objects(objects))} is not known")
        if kinds <= _NUMBERS.keys():
            return over(self._values(objects, make, dtype, is_torch), is_ours=True)
        flat = list(itertools.chain.from_iterable(objects))
        lengths = list(map(len, objects))
        if min(lengths) == 0 and dtype is None:
            raise NotNative("an empty list has no numbers that tell its type")
        array = self._values(flat, make, dtype, is_torch)
        if min(lengths) == max(lengths) > 0:
            return over(array.reshape(len(objects), lengths[0]), owner=array, is_ours=True)
        return Ragged(array, lengths)

    def stacked(self, arrays: list[Any]) -> Rows | Ragged:
        """Returns arrays, one for each sample, as the rows of one.

        Raises:
            NotNative: Arrays of several classes, dtypes or shapes, or very large ones.
        """
        first = arrays[0]
        for array in arrays:
            check_array(array)
            if (type(array), array.dtype, array.shape[1:], array.ndim) != (
                type(first),
                first.dtype,
                first.shape[1:],
                first.ndim,
            ):
                raise NotNative("arrays of several classes, dtypes or shapes")
        if sum(array.nbytes for array in arrays) > _MOST_BYTES or first.ndim == 0:
            raise NotNative("a list of very large arrays, or of scalars", "stack them into one")
        lengths = [len(array) for array in arrays]
        join: Callable[..., Any] = torch.cat if type(first) is torch.Tensor else np.concatenate
        joined = join(list(arrays))
        place = self._place("stacked")
        settings = str(joined.dtype), tuple(joined.shape)
        kept = self._memo.of_bytes(place, _bytes(joined), lambda: joined, settings)
        if min(lengths) == max(lengths) > 0:
            return over(
                kept.reshape(len(arrays), lengths[0], *kept.shape[1:]), owner=kept, is_ours=True
            )
        return Ragged(kept, lengths)

    def _place(self, what: str) -> Hashable:
        return "reading", next(self._places), what

    def _values(
        self, values: list[Any], make: Callable[[Any], Any], dtype: Any, is_torch: bool
    ) -> Any:  # noqa: FBT001
        kinds = set(map(type, values))
        if len(kinds) > 1 or not kinds <= _NUMBERS.keys():
            raise NotNative("numbers of several types", "make them all ints, floats or bools")
        settings = (str(dtype), is_torch, str(torch.get_default_dtype()), kinds)

        def checked() -> Any:
            try:
                array = make(values)
                if not is_torch and dtype is None and array.dtype not in _OWN:
                    raise OverflowError("an int has more than 64 bits")
                return array
            except (OverflowError, RuntimeError, TypeError, ValueError) as error:
                raise NotNative(f"a sample raises {type(error).__name__}: {error}") from error

        return self._memo.of_values(self._place("array"), values, checked, settings)

    def _constant(self, value: Any) -> Leaf:
        """Returns the leaf of a value that is the same for all samples."""
        if type(value) in _NUMBERS:
            numbers = np.broadcast_to(np.array(value, _NUMBERS[type(value)]), self._count)
            return Leaf(self._native(numbers), f"{value!r}", form="number")
        if type(value) is str:
            check_count(self._count)
            return self._text([value] * self._count)
        if type(value) in (np.ndarray, torch.Tensor):
            check_array(value)
            if value.ndim == 0 and type(value) is np.ndarray:
                raise NotNative("an array without dimensions is not known")
            whole = (
                value[None].expand(self._count, *value.shape)
                if type(value) is torch.Tensor
                else np.broadcast_to(value, (self._count, *value.shape))
            )
            return self._array(over(whole, owner=value))
        raise NotNative(f"a sample has {described(value)} in it")

    def _objects(self, values: list[Any]) -> Any:
        kinds = set(map(type, values))
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind in (tuple, list) and kind is not None:
            return self._sequences(values, kind)
        if kind is dict:
            keys = {tuple(each) if set(map(type, each)) <= {str, int} else () for each in values}
            if len(keys) != 1 or not (fields := keys.pop()):
                raise NotNative("dicts of several keys")
            return {key: self._objects([each[key] for each in values]) for key in fields}
        return self._object(values, kind)

    def _object(self, values: list[Any], kind: type | None) -> Leaf:
        if kind in _NUMBERS:
            numbers = self._values(values, lambda each: np.array(each, _NUMBERS[kind]), kind, False)
            return Leaf(self._native(numbers), f"{len(values)} numbers", form="number")
        if kind is str:
            return self._text(values)
        if kind in (torch.Tensor, np.ndarray):
            return self._leaf(self.stacked(values))
        raise NotNative(f"a sample has {described(Objects(values))} in it")

    def _sequences(self, values: list[Any], kind: type) -> Any:
        lengths = set(map(len, values))
        inner = {type(part) for each in values for part in each}
        if kind is list and len(inner) == 1 and inner <= _NUMBERS.keys():
            made = self.array(values, _NUMBERS[inner.pop()], is_torch=False)
            leaf = self._leaf(made if isinstance(made, Ragged) else replace(made, is_python=True))
            return replace(leaf, form="list")
        if len(lengths) != 1 or not 0 < (length := lengths.pop()) <= _MOST_PLACES:
            raise NotNative(f"{name(kind)}s of several lengths, none or many places")
        return kind(self._objects([each[place] for each in values]) for place in range(length))

    def _text(self, values: list[str]) -> Leaf:
        def make() -> Any:
            try:
                encoded = [value.encode() for value in values]
            except UnicodeEncodeError as error:
                raise NotNative(f"a text has no bytes: {error}") from error
            return _lib.Text(_ragged(np.frombuffer(b"".join(encoded), np.uint8), map(len, encoded)))

        native = self._memo.of_values(self._place("text"), values, make, {type(values[0])})
        return Leaf(native, f"{len(values)} texts", form="text")

    def _picture(self, picture: Picture) -> Leaf:
        """Returns the leaf of pictures, if all of their transforms are native."""
        source: Any = []
        if isinstance(picture.source, Rows):
            source = _column_of(picture.source.view)
        channels = 1 if picture.mode == "L" else 3
        chain = Chain(channels, source, least=(picture.source.shape[:2] if source else (0, 0)))  # type: ignore[union-attr]
        several = [step for each in picture.transforms for step in flat(each)]
        done, stop = follow(chain, several)
        if stop is not None:
            raise NotNative(f"{stop.why}, at position {done} of the transforms", stop.change)
        if picture.mode is None or chain.on_pillow:
            raise NotNative("a sample has a picture in it", "end with one that makes a tensor")
        settings = "RGB", chain.ops, chain.output()
        exact = "bit for bit what Pillow and torch make of them"
        if chain.random:
            exact += (
                ", given equal random parameters; these are drawn by Philox from the same ranges"
            )
        words = Leaf(None, "", transforms=tuple(chain.names), exact=exact, wrap=chain.wrap)
        if isinstance(picture.source, Rows):
            native = _lib.Image(source, *settings)
            return replace(
                words.over(native, f"{len(native)} images in memory"), heavy=len(chain.ops) > 1
            )
        paths = picture.source.values

        def make() -> Any:
            foreign = check_files(paths)
            return foreign if foreign is not None else _lib.Image(paths, *settings)

        native = self._memo.of_values(self._place("images"), paths, make, settings)
        if isinstance(native, NotNative):
            raise native.again()
        decoded = replace(words, decode="JPEG, PNG and WebP files to RGB", heavy=True)
        return decoded.over(native, f"{len(paths)} files")

    def _leaf(self, value: Each) -> Leaf:
        if isinstance(value, Index):
            check_count(value.count)
            numbers = np.arange(value.count) * value.step + value.first
            native = self._memo.of_objects(
                f"index {value.step}, {value.first}, {value.count}", (), lambda: _column_of(numbers)
            )
            return Leaf(native, "the index", form="number")
        if isinstance(value, Ragged):
            native = self._memo.of_values(
                self._place("ragged"),
                value.lengths,
                lambda: _ragged(value.values, value.lengths),
                id(value.values),
            )
            form: Form = "tensor" if isinstance(value.values, torch.Tensor) else "array"
            return Leaf(native, f"{len(value.lengths)} arrays of different lengths", form=form)
        if isinstance(value, Rows):
            return self._array(value)
        raise NotNative(f"a sample has {described(value)} in it")

    def _array(self, rows: Rows) -> Leaf:
        form: Form = "number" if rows.is_python else "tensor" if rows.is_torch else "array"
        count = len(rows.view) if rows.picks is None else len(rows.picks)
        words = f"{count} rows of {_arrays.dtype_name(rows.probe.dtype)}, shape {rows.shape}"
        leaf = Leaf(self._column(rows), words, form=form)
        if not _is_packed(rows.view) or not all(step.is_pointwise for step in rows.steps):
            leaf = replace(
                leaf, alone=NotNative("samples one by one may not be contiguous", "load batches")
            )
        if rows.picks is None:
            return leaf
        picks = self._memo.of_values(
            self._place("picks"), rows.picks.tolist(), lambda: _column_of(rows.picks)
        )
        columns = leaf.native, picks
        return leaf.over(
            self._memo.of_objects("selection", columns, lambda: _lib.Select(*columns)), leaf.column
        )

    def _column(self, rows: Rows) -> Any:
        """Returns the native column of rows, with what the steps make of them."""
        keys = [step.key for step in rows.steps if step.key not in _SAME]
        if not keys:
            return self._native(rows.view)
        dtype = _arrays.dtype_name(rows.probe.dtype)
        if rows.view.dtype in _BYTES and all(step.is_pointwise for step in rows.steps):
            return self._native(rows.view, dtype, _bytes(_run(rows.steps, _all_bytes(rows.view))))
        if len(keys) == 1 and type(keys[0]) is tuple and keys[0][0] == "cast":
            with contextlib.suppress(ValueError):  # no such conversion is native
                return self._native(rows.view, dtype)
        return self._computed(rows)

    def _computed(self, rows: Rows) -> Any:
        """Returns the column of what the steps make of rows, computed here and now."""
        elements = int(np.prod(rows.shape, dtype=np.int64)) * len(rows.view)
        size = elements * max(rows.probe.itemsize, rows.view.itemsize)
        if size > _MOST_BYTES:
            raise NotNative(
                f"computing its {size >> 20} MiB ahead of each epoch would take too long"
            )

        def make() -> Any:
            return _column_of(_run(rows.steps, rows.view))

        keys = tuple(step.key for step in rows.steps)
        settings = keys, str(rows.view.dtype), str(rows.probe.dtype), tuple(rows.view.shape)
        if rows.is_ours:
            place = f"computed {_memory(rows.view)[:-1]}"
            return self._memo.of_objects(place, (rows.owner,), make, settings)
        return self._memo.of_bytes(self._place("computed"), _bytes(rows.view), make, settings)

    def _native(self, array: Any, cast: str | None = None, table: Any = None) -> Any:
        """Returns the column of an array's rows, kept while it lies where it was.

        Args:
            array: `(N, ...)`.
            cast: The dtype of samples, if it is another.
            table: What each byte becomes, as bytes.

        Raises:
            NotNative: No array in memory.
            ValueError: No such conversion is native.
        """
        try:
            memory = _memory(array)
        except TypeError as error:
            raise NotNative(str(error)) from error
        settings = cast, None if table is None else table.tobytes()
        place: Any = "rows", memory[:-1], settings  # the column keeps the memory: no other is there
        native = self._memo.of_objects(place, (), lambda: _lib.Rows(*memory, *settings))
        return _lib.Rows(*memory, *settings) if native.moved() else native


def _run(steps: tuple[Step, ...], array: Any) -> Any:
    """Returns what steps make of an array.

    Raises:
        NotNative: One of them fails.
    """
    for step in steps:
        try:
            array = step.call(array)
        except Exception as error:
            raise NotNative(f"a sample raises {type(error).__name__}: {error}") from error
    return array


def _all_bytes(like: Any) -> Any:
    """Returns each byte once, of the library of an array."""
    is_torch = isinstance(like, torch.Tensor)
    return torch.arange(256, dtype=torch.uint8) if is_torch else np.arange(256, dtype=np.uint8)


def _memory(array: Any) -> _arrays.Memory:
    is_torch = isinstance(array, torch.Tensor)
    return _arrays.of_tensor(array) if is_torch else _arrays.of_array(array)


def _column_of(array: Any) -> Any:
    return _lib.Rows(*_memory(array))


def _is_packed(view: Any) -> bool:
    if not len(view):
        return True
    row = view[:1]
    return bool(row.is_contiguous() if isinstance(row, torch.Tensor) else row.flags.c_contiguous)


def _bytes(array: Any) -> np.ndarray[Any, Any]:
    """Returns a copy of an array's elements, as bytes."""
    if isinstance(array, torch.Tensor):
        return array.contiguous().clone().reshape(-1).view(torch.uint8).numpy()
    return np.array(array, order="C", copy=True).reshape(-1).view(np.uint8)


def _ragged(values: Any, lengths: Any) -> Any:
    ends = np.fromiter(itertools.accumulate(lengths, initial=0), np.int64)
    return _lib.Ragged(_column_of(values), _column_of(ends))
