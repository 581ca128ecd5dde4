"""`KeptReading`: whether a dataset is cheap, for loaders that ask at each epoch.

Owns when code must be read again. A reading of the code of one class is kept as long as that class, the attributes
of the dataset and the globals that the code names are the same objects; what lies within lists and other
objects is read each time.
"""

import operator
import types
from collections.abc import Iterable
from itertools import chain
from typing import Any

from fastload.lowering.cheap import global_of, read_shallowly
from fastload.lowering.code_names import names_of

__all__ = ["KeptReading"]

_VALUES = operator.methodcaller("values")


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
        # views, which follow later changes
        self._attributes = [vars(each) for each in (dataset, *self._classes[:-1])]
        self._names = list(chain.from_iterable(self._attributes))
        self._values = list(chain.from_iterable(map(_VALUES, self._attributes)))
        self._codes = [(each, each.__code__) for each in functions]
        self._globals = [
            (each, path, global_of(each, path)[0])
            for each, code in self._codes
            if (names := names_of(code)) is not None
            for path in names.of_module
        ]

    def are_same(self) -> bool:
        """Returns true if nothing has changed. Asked at each epoch: loops take half the time of generators."""
        now = self._attributes
        if type(self._dataset).__mro__ is not self._classes or vars(self._dataset) is not now[0]:
            return False
        if list(chain.from_iterable(now)) != self._names:
            return False
        if not all(map(operator.is_, chain.from_iterable(map(_VALUES, now)), self._values)):
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


def _has_slots(dataset: Any) -> bool:
    """Returns true if a dataset has attributes outside of its dict."""
    return any(vars(each).get("__slots__") for each in type(dataset).__mro__)
