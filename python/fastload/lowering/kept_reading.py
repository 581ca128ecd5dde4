"""`KeptReading`: what the code of a dataset shows, and its native form, for loaders that ask at each epoch.

Owns when code must be read again. A reading of the code of one class is kept as long as that class, the attributes
of the dataset, the globals that the code names and the entries of lists, tuples and dicts are the same objects; what
lies within others is read each time.
"""

import operator
from collections.abc import Callable
from itertools import chain
from typing import Any, Generic

import numpy as np
import torch
from torch.utils.data._utils import collate

from fastload import _lib
from fastload.lowering.cheap import Code, Shallow, global_of, read_shallowly
from fastload.lowering.code_names import names_of

__all__ = ["KeptReading"]

_VALUES = operator.methodcaller("values")
_ARRAYS = (np.ndarray, np.memmap, torch.Tensor)
_MOST_BYTES = 1 << 20
"""Largest size of all arrays together, in bytes: to compare them takes a tenth of a millisecond."""


class KeptReading:
    """The code of a dataset, read again when it has changed."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._code = Code(None)
        self._sources: _Sources | None = None
        self._program: _lib.Program | None = None
        self._lowered_at: Any = None
        """The state of all that the program depends on, beside the code."""

    def code(self) -> Code:
        """Returns what the code shows."""
        if self._sources is not None and self._sources.are_same():
            return self._code
        self._code, shallow = read_shallowly(self._dataset)
        self._sources = self._lowered_at = None
        # attributes outside of its dict are not followed
        has_slots = any(vars(each).get("__slots__") for each in type(self._dataset).__mro__)
        if self._code.draws is not None and not has_slots and shallow is not None:
            self._sources = _Sources(self._dataset, shallow)
        return self._code

    def check(self) -> Callable[[], bool]:
        """Returns what tells whether the dataset's attributes are the same objects as now; asked at each batch."""
        attributes = vars(self._dataset)
        names, values = list(attributes), list(attributes.values())

        def are_same() -> bool:
            now = vars(self._dataset)
            return list(now) == names and all(map(operator.is_, now.values(), values))

        return are_same

    def program(
        self, lower: Callable[[Any], _lib.Program | None], loader: Any
    ) -> _lib.Program | None:
        """Returns the program of a loader's batches, made again when what it depends on has changed.

        Only for code that takes from small arrays, which are compared whole: their contents may decide what is taken,
        or be in what was computed. Of numbers, Python makes batches as soon, and lists may change within an epoch.
        """
        arrays = [] if self._sources is None or self._sources.entries else self._sources.arrays
        if not arrays or sum(array.nbytes for array in arrays) > _MOST_BYTES:
            return None
        now = _settings(), len(self._dataset), list(map(_contents, arrays))
        if now != self._lowered_at:
            self._program, self._lowered_at = lower(loader), now
        return self._program


class _Sources:
    """All that a reading of a dataset's code depends on.

    Attributes:
        arrays: The arrays and tensors that the code may take from.
        entries: The containers that it may take from, each with its entries.
    """

    def __init__(self, dataset: Any, shallow: Shallow) -> None:
        self._dataset = dataset
        self._classes = type(dataset).__mro__
        own = [each for each in self._classes if each not in (object, Generic)]
        # views, which follow later changes
        self._attributes = [vars(each) for each in (dataset, *own)]
        self._names = list(chain.from_iterable(self._attributes))
        self._values = list(chain.from_iterable(map(_VALUES, self._attributes)))
        self._codes = [(each, each.__code__) for each in shallow.functions]
        self.entries = [(each, _entries_of(each)) for each in shallow.containers]
        self._globals = [
            (each, path, global_of(each, path)[0])
            for each, code in self._codes
            if (names := names_of(code)) is not None
            for path in names.of_module
        ]
        held = chain(self._values, (value for *_, value in self._globals))
        self.arrays = [each for each in held if type(each) in _ARRAYS and _is_readable(each)]

    def are_same(self) -> bool:
        """Returns true if nothing has changed. Asked at each epoch: loops take half the time of generators."""
        now = self._attributes
        if type(self._dataset).__mro__ is not self._classes or vars(self._dataset) is not now[0]:
            return False
        if list(chain.from_iterable(now)) != self._names:
            return False
        if not all(map(operator.is_, chain.from_iterable(map(_VALUES, now)), self._values)):
            return False
        for container, entries in self.entries:
            same = _entries_of(container)
            if len(same) != len(entries) or not all(map(operator.is_, same, entries)):
                return False
        for function, path, value in self._globals:
            if global_of(function, path)[0] is not value:
                return False
        for function, code in self._codes:
            if function.__code__ is not code:
                return False
            if function.__defaults__ or function.__kwdefaults__:
                return False
        return True


def _entries_of(container: Any) -> list[Any]:
    """Returns the entries of a list, a tuple or a dict."""
    return list(container.values() if type(container) is dict else container)


def _settings() -> tuple[Any, ...]:
    """Returns torch's settings that decide on the tensors of a batch."""
    return (
        torch.get_default_dtype(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        dict(collate.default_collate_fn_map),
    )


def _is_readable(array: Any) -> bool:
    """Returns true if an array or tensor is of a kind that is read."""
    if isinstance(array, np.ndarray):
        return not array.dtype.hasobject
    return array.is_cpu and array.layout is torch.strided and not array.is_nested


def _contents(array: Any) -> Any:
    """Returns where the elements of an array lie, what they are, and their bytes."""
    if isinstance(array, np.ndarray):
        return array.__array_interface__, array.tobytes()
    plain = array.detach().resolve_conj().resolve_neg().contiguous()
    layout = array.data_ptr(), array.shape, array.stride(), array.dtype, array.requires_grad
    return layout, plain.reshape(-1).view(torch.uint8).numpy().tobytes()
