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

__all__ = ["Logged", "Record", "goes_to_workers", "is_others", "record_of", "stays_here"]

_log = logging.getLogger("fastload")

_DEPTH = 8


class Record:
    """The record of one dataset, or of one loader.

    Attributes:
        why_here: The reason why its samples are made in this process; None as long as they are not.
        is_measured: True if the reason is what its epochs took, and nothing that it holds.
        repeats: False if an iteration of it was not like another one.
        unfinished: Epochs of workers in a row that did not come to their ends, the running one included.
        log: What a loader has logged.
        around: The datasets that hold it, or it itself, that worker processes were given.
    """

    why_here: str | None = None
    is_measured = False
    unfinished = 0
    repeats = True

    def __init__(self) -> None:
        self.log = Logged()
        self.around: list[weakref.ref[Any]] = []


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
    for record in _records_in(dataset):
        record.why_here = record.why_here or why


def goes_to_workers(dataset: Any) -> None:
    """Notes that worker processes are given a dataset, and so those behind it."""
    for record in _records_in(dataset):
        if all(each() is not dataset for each in record.around):
            with contextlib.suppress(TypeError):
                record.around.append(weakref.ref(dataset, record.around.remove))


def is_others(dataset: Any) -> bool:
    """Returns true if worker processes were given another dataset that holds the same, as parts of a split do.

    It would open its files in this process too, which could fork no workers for the other one any more.
    """
    records = _records_in(dataset)
    return any(each() is not dataset for record in records for each in record.around)


def _records_in(dataset: Any) -> list[Record]:
    """Returns the records of a dataset and of those behind it."""
    records, waiting = [], [(dataset, 0)]
    while waiting:
        each, depth = waiting.pop()
        records.append(record_of(each))
        if depth < _DEPTH:
            waiting.extend((part, depth + 1) for part in _datasets_in(each))
    return records


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
