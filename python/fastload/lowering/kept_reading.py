"""`KeptReading`: whether a dataset is cheap, for loaders that ask at each epoch.

Owns when code must be read again. A reading of the code of one class is kept as long as that class, the attributes
of the dataset and the globals that the code names are the same objects; what lies within lists and other
objects is read each time.
"""

import operator
import types
from collections.abc import Iterable
from typing import Any

from fastload.lowering.cheap import global_of, read_shallowly
from fastload.lowering.code_names import names_of

__all__ = ["KeptReading"]


class KeptReading:
    """The code of a dataset, read again when it has changed.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._sources: _Sources | None = None

    def is_cheap(self) -> bool:
        """Returns true if the code shows that making a sample costs next to nothing."""
        if self._sources is not None and self._sources.are_same():
            return True
        code, functions = read_shallowly(self._dataset)
        self._sources = None
        if code.is_cheap and functions is not None and not _has_slots(self._dataset):
            self._sources = _Sources(self._dataset, functions)
        return code.is_cheap


class _Sources:
    """All that a reading of a dataset's code depends on.

    Args:
        dataset: The dataset.
        functions: The functions that were read.
    """

    def __init__(self, dataset: Any, functions: Iterable[types.FunctionType]) -> None:
        self._dataset = dataset
        self._classes = type(dataset).__mro__
        self._stored = [_Stored(each) for each in (dataset, *self._classes[:-1])]
        self._codes = [(each, each.__code__) for each in functions]
        self._globals = [
            (each, chain, global_of(each, chain)[0])
            for each, code in self._codes
            if (names := names_of(code)) is not None
            for chain in names.of_module
        ]

    def are_same(self) -> bool:
        """Returns true if nothing has changed. Asked at each epoch: loops take half the time of generators."""
        if type(self._dataset).__mro__ is not self._classes:
            return False
        for stored in self._stored:
            if not stored.is_same():
                return False
        for function, code in self._codes:
            if function.__code__ is not code:
                return False
            if function.__defaults__ or function.__kwdefaults__:
                return False
        for function, chain, value in self._globals:
            if global_of(function, chain)[0] is not value:
                return False
        return True


class _Stored:
    """The attributes that an object or a class had.

    Args:
        owner: The object or the class.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        stored = vars(owner)
        self._names, self._values = tuple(stored), tuple(stored.values())

    def is_same(self) -> bool:
        """Returns true if it has the same attributes still."""
        now = vars(self._owner)
        return tuple(now) == self._names and all(map(operator.is_, now.values(), self._values))


def _has_slots(dataset: Any) -> bool:
    """Returns true if a dataset has attributes outside of its dict."""
    return any(vars(each).get("__slots__") for each in type(dataset).__mro__)
