"""What is remembered of datasets and loaders: why samples are made in this process, and what was logged.

Owns one record for each dataset and each loader, found by its identity, without calling anything of the user's.
Invariant: once samples of a dataset were made in this process, the record says so for good, also of the datasets that
it holds: they may have opened files by then, and are not forked any more.
"""

import contextlib
import logging
import weakref
from typing import Any

from torch.utils.data import Dataset

__all__ = ["Logged", "Record", "record_of", "stays_here"]

_log = logging.getLogger("fastload")

_DEPTH = 8


class Record:
    """The record of one dataset, or of one loader.

    Attributes:
        why_here: The reason why its samples are made in this process; None as long as they are not.
        repeats: False if an iteration of it was not like another one.
        unfinished: Epochs of workers in a row that did not come to their ends, the running one included.
        log: What a loader has logged.
    """

    why_here: str | None = None
    unfinished = 0
    repeats = True

    def __init__(self) -> None:
        self.log = Logged()


_records: dict[int, tuple[Any, Record]] = {}
"""By the identity of the dataset, with a weak reference that drops the entry."""


def record_of(dataset: Any) -> Record:
    """Returns the record of a dataset or loader; each time a new one of what cannot be referred to weakly."""
    key = id(dataset)
    known = _records.get(key)
    if known is not None and known[0]() is dataset:
        return known[1]
    record = Record()
    with contextlib.suppress(TypeError):
        _records[key] = weakref.ref(dataset, lambda _: _records.pop(key, None)), record
    return record


def stays_here(dataset: Any, why: str) -> None:
    """Notes that samples of a dataset are made in this process, and so those of the datasets behind it."""
    if record_of(dataset).why_here is not None:
        return
    waiting = [(dataset, 0)]
    while waiting:
        each, depth = waiting.pop()
        record = record_of(each)
        record.why_here = record.why_here or why
        if depth < _DEPTH:
            waiting.extend((part, depth + 1) for part in _datasets_in(each))


def _datasets_in(dataset: Any) -> list[Any]:
    """Returns the datasets that a dataset has as attributes, alone or in lists."""
    attributes = getattr(dataset, "__dict__", None)
    if type(attributes) is not dict:
        return []
    values = list(attributes.values())
    listed = [each for value in values if type(value) in (list, tuple) for each in value[:1000]]
    return [each for each in values + listed if issubclass(type(each), Dataset)]


class Logged:
    """Logs each thing once for a loader and all of its iterators."""

    def __init__(self) -> None:
        self._things: set[str] = set()

    @staticmethod
    def of(loader: Any) -> "Logged":
        """Returns the log of a loader."""
        return record_of(loader).log

    def first(self, what: str) -> bool:
        """Returns true if a thing was not logged before; it counts as logged from now on."""
        new = what not in self._things
        self._things.add(what)
        return new

    def __call__(self, what: str) -> None:
        """Logs a clause, with the way out of it."""
        if self.first(what):
            _log.warning("%s; lane='process' gives each worker its own copy", what)
