"""Columns of arrays, kept as long as the arrays are what they were.

Owns what is computed ahead of an epoch: numbers of lists, and arithmetic that native code does not have. It is
compared with the last epoch's, so that every change takes effect.
"""

import contextlib
import itertools
import operator
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.lowering.memo import Joined, Memo
from fastload.lowering.reading.arrays import check_array
from fastload.lowering.reading.conversions import SAME, native_steps
from fastload.lowering.reading.values import (
    MOST_BYTES,
    Objects,
    Ragged,
    Rows,
    check_ahead,
    described,
    over,
)
from fastload.memory import layout
from fastload.registry import NotNative, refuse

__all__ = ["NUMBERS", "Stored", "column_of", "is_packed", "memory_of"]

_BYTES = (torch.uint8, np.dtype(np.uint8))
_OWN = (np.int64, np.float64, np.bool_)
_TENSOR, _ARRAY, _CAT, _CONCATENATE = torch.tensor, np.array, torch.cat, np.concatenate
"""The functions as imported: user code may replace them later."""
_DTYPE, _NBYTES, _SHAPE = map(operator.attrgetter, ("dtype", "nbytes", "shape"))
NUMBERS: dict[type, Any] = {int: np.int64, float: np.float64, bool: np.bool_}
"""Python's numbers, with the dtypes that have their values."""
_TORCHS = {np.int64: torch.int64, np.float64: torch.float64, np.bool_: torch.bool}


class Stored:
    """Makes arrays and columns, and keeps those whose values have not changed in a memo."""

    def __init__(self, memo: Memo) -> None:
        self.memo = memo
        self._places = itertools.count()

    def place(self, what: str) -> Hashable:
        """Returns the next place in the memo: the same for the same use at the next `iter()`."""
        return "reading", next(self._places), what

    def array(self, objects: Objects, dtype: Any, *, is_torch: bool) -> Rows | Ragged:
        """Returns Python numbers, or lists of them, as arrays or tensors.

        Args:
            objects: A number for each sample, or a list of numbers.
            dtype: Of the result; None for the library's own choice.
            is_torch: True if torch makes it, else NumPy.
        """
        make: Callable[[Any], Any] = (
            (lambda values: _TENSOR(values, dtype=dtype))
            if is_torch
            else (lambda values: _ARRAY(values, dtype))
        )
        kinds, lists = objects.kinds, objects.values
        if lists and kinds <= NUMBERS.keys():
            return over(self.values(objects, make, dtype, is_torch=is_torch), is_ours=True)
        if kinds not in ({list}, {tuple}):
            refuse(f"an array of {described(objects)} is not known")
        lengths = list(map(len, lists))
        if min(lengths) == 0 and dtype is None:
            refuse("an empty list has no numbers that tell its type")
        array = self._flat(lists, dtype, is_torch=is_torch)
        if array is None:
            flat = list(itertools.chain.from_iterable(lists))
            if is_torch and isinstance(dtype, torch.dtype) and dtype.is_floating_point:
                flat = _floats(flat)
            array = self.values(Objects(flat), make, dtype, is_torch=is_torch)
        return _parted(array, lengths)

    def lists(self, lists: list[Any]) -> Rows | Ragged | None:
        """Returns lists of Python numbers as arrays of the type that has their values; None of anything else."""
        array = self._flat(lists, None, is_torch=False)
        return None if array is None else _parted(array, list(map(len, lists)))

    def _flat(self, lists: list[Any], dtype: Any, *, is_torch: bool) -> Any:
        """Returns the numbers in lists as one array or tensor; None where they have to be looked at one by one.

        They are as torch and NumPy make them where `dtype` holds their values, or is one of torch's for floats.
        """
        found = _lib.numbers_of_lists(lists)
        if found is None:
            return None
        kind, contents = found
        own = NUMBERS[kind]
        if is_torch:
            by_default = torch.get_default_dtype() if kind is float else _TORCHS[own]
            made = dtype or by_default
            fits = made is _TORCHS[own] or (kind is float and made is torch.float32)
        else:
            made = own
            fits = dtype is None or np.dtype(dtype) == own
        if not fits:
            return None
        settings = kind, str(made), is_torch

        def array() -> Any:
            numbers = np.frombuffer(contents, own)
            return torch.from_numpy(numbers).to(made) if is_torch else numbers

        return self.memo.of_bytes(
            self.place("numbers"), np.frombuffer(contents, np.uint8), array, settings
        )

    def stacked(self, arrays: list[Any]) -> Rows | Ragged:
        """Returns arrays, one for each sample, as the rows of one.

        Raises:
            NotNative: Arrays of several classes, dtypes or shapes, or very large ones.
        """
        joined = self.memo.of_arrays(self.place("stacked"), arrays, _joined)
        return _parted(joined.whole, joined.lengths)

    def values(
        self,
        objects: Objects,
        make: Callable[[Any], Any],
        dtype: Any,
        *,
        is_torch: bool = False,
    ) -> Any:
        """Returns what `make` makes of Python numbers of one type."""
        kinds, values = objects.kinds, objects.values
        if len(kinds) > 1 or not kinds <= NUMBERS.keys():
            refuse("numbers of several types", "make them all ints, floats or bools")
        settings = (str(dtype), is_torch, str(torch.get_default_dtype()), kinds)

        def checked() -> Any:
            try:
                array = make(values)
                if not is_torch and dtype is None and array.dtype not in _OWN:
                    msg = "an int has more than 64 bits"
                    raise OverflowError(msg)
                return array
            except (OverflowError, RuntimeError, TypeError, ValueError) as error:
                refuse(f"a sample raises {type(error).__name__}: {error}")

        return self.memo.of_values(self.place("array"), values, checked, settings)

    def texts(self, objects: Objects) -> Any:
        """Returns the column of text."""
        values = objects.values

        def make() -> Any:
            try:
                encoded = [value.encode() for value in values]
            except UnicodeEncodeError as error:
                refuse(f"a text has no bytes: {error}")
            joined = np.frombuffer(b"".join(encoded), np.uint8)
            return _lib.text(_ragged(joined, map(len, encoded)))

        return self.memo.of_values(self.place("texts"), values, make, objects.kinds)

    def ragged(self, value: Ragged) -> Any:
        """Returns the column of arrays of different lengths."""
        return self.memo.of_objects(
            self.place("ragged"),
            (value.values,),  # kept alive: another array at its address is another column
            lambda: _ragged(value.values, value.lengths),
            tuple(value.lengths),
        )

    def picked(self, native: Any, picks: Any) -> Any:
        """Returns the column of some rows of another, by their places."""
        places = self.memo.of_bytes(self.place("picks"), picks, lambda: column_of(picks))
        return self.memo.of_objects(
            "selection", (native, places), lambda: _lib.select(native, places)
        )

    def rows(self, rows: Rows) -> Any:
        """Returns the native column of rows, with what the steps make of them."""
        if all(step.key in SAME for step in rows.steps):
            return self.native(rows.view)
        steps = native_steps(rows)
        if steps is not None:
            with contextlib.suppress(ValueError):  # a cast that is not native, or too many
                return self.native(rows.view, steps)
        if rows.view.dtype in _BYTES and all(step.is_pointwise for step in rows.steps):
            is_torch = isinstance(rows.view, torch.Tensor)
            each = (
                torch.arange(256, dtype=torch.uint8, device="cpu")
                if is_torch
                else np.arange(256, dtype=np.uint8)
            )
            table = layout.dtype_name(rows.dtype), _bytes(rows.run(each)).tobytes()
            return self.native(rows.view, [("table", *table)])
        return self._computed(rows)

    def _computed(self, rows: Rows) -> Any:
        """Returns the column of what the steps make of rows, computed here and now."""
        elements = int(np.prod(rows.shape, dtype=np.int64)) * len(rows.view)
        size = elements * max(rows.probe.itemsize, rows.view.itemsize)
        check_ahead(size, "computing its {} MiB")

        def make() -> Any:
            return column_of(rows.run(rows.view))

        keys = tuple(step.key for step in rows.steps)
        may_raise = np.geterr(), tuple(warnings.filters)
        settings = keys, str(rows.view.dtype), str(rows.dtype), tuple(rows.view.shape), may_raise
        if rows.is_ours:
            place = f"computed {memory_of(rows.view)[:-1]}"
            return self.memo.of_objects(place, (rows.owner,), make, settings)
        return self.memo.of_bytes(self.place("computed"), _bytes(rows.view), make, settings)

    def native(self, array: Any, steps: Sequence[tuple[Any, ...]] = ()) -> Any:
        """Returns the column of an array's rows, kept while it lies where it was.

        Args:
            array: `(N, ...)`.
            steps: Conversions, as `_lib.Rows` takes them.

        Raises:
            NotNative: No array in memory.
            ValueError: The conversions are not native.
        """
        try:
            memory = memory_of(array)
        except TypeError as error:
            raise NotNative(str(error)) from error
        # The column keeps the memory: no other is there.
        place: Any = "rows", memory[:-1], tuple(steps)
        native = self.memo.of_objects(place, (), lambda: _lib.Rows(*memory, *steps))
        return _lib.Rows(*memory, *steps) if native.moved() else native


def _joined(arrays: list[Any]) -> Joined:
    first = arrays[0]
    check_array(first)
    if len(set(map(type, arrays))) > 1 or len(set(map(_DTYPE, arrays))) > 1:
        refuse("arrays of several classes or dtypes")
    try:
        # Before their shapes: objects by the thousand have the garbage collector run.
        if sum(map(_NBYTES, arrays)) > MOST_BYTES or first.ndim == 0:
            refuse("a list of very large arrays, or of scalars", "stack them into one")
        shapes = list(map(_SHAPE, arrays))
        if len({(len(shape), shape[1:]) for shape in set(shapes)}) > 1:
            refuse("arrays of several shapes")
        if type(first) is torch.Tensor:
            with torch.enable_grad():  # so that gradients of any show in the result
                whole: Any = _CAT(arrays)
        else:
            whole = _CONCATENATE(arrays)
    except (RuntimeError, ValueError) as error:
        refuse(f"arrays that do not fit together: {error}")
    check_array(whole)
    return Joined(list(arrays), whole, [shape[0] for shape in shapes])


def _parted(array: Any, lengths: list[int]) -> Rows | Ragged:
    """Returns the parts of an array, one for each sample, as rows where they are of one length."""
    if min(lengths) == max(lengths) > 0:
        rows = array.reshape(len(lengths), lengths[0], *array.shape[1:])
        return over(rows, owner=array, is_ours=True)
    return Ragged(array, lengths)


def _floats(numbers: list[Any]) -> list[Any]:
    """Returns Python numbers as floats, as torch reads them for tensors of floats."""
    kinds = set(map(type, numbers))
    return list(map(float, numbers)) if kinds <= {int, float} and len(kinds) > 1 else numbers


def memory_of(array: Any) -> layout.Memory:
    """Describes an array or a tensor."""
    is_torch = isinstance(array, torch.Tensor)
    return layout.of_tensor(array) if is_torch else layout.of_array(array)


def column_of(array: Any) -> Any:
    """Returns the column of an array's rows, without caching it."""
    return _lib.Rows(*memory_of(array))


def is_packed(view: Any) -> bool:
    """Returns true if each row is one block."""
    if not len(view):
        return True
    row = view[:1]
    return bool(row.is_contiguous() if isinstance(row, torch.Tensor) else row.flags.c_contiguous)


def _bytes(array: Any) -> np.ndarray[Any, Any]:
    """Returns a copy of an array's elements, as bytes."""
    return _byte_view(array.clone() if isinstance(array, torch.Tensor) else array.copy())


def _byte_view(array: Any) -> np.ndarray[Any, Any]:
    """Returns an array's elements as bytes, in their place where they are one block."""
    if isinstance(array, torch.Tensor):
        return array.contiguous().reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _ragged(values: Any, lengths: Any) -> Any:
    ends = np.fromiter(itertools.accumulate(lengths, initial=0), np.int64)
    return _lib.Ragged(column_of(values), column_of(ends))
