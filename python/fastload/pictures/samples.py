"""Makes a user's samples with lazily decoded images.

Owns when they do: while a sample of a map-style dataset is made, in this thread, and until it is done. A file that
proves damaged only once its pixels are made would have failed earlier, perhaps within the user's `try`: the sample is
then made again from the same generators' states, the dataset's own ones included, with pictures that do not wait.
"""

import dataclasses
import functools
import operator
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from fastload import _lib
from fastload.bad_samples.fetching import change_new
from fastload.draws import keyed
from fastload.lowering.reading.attributes import stored

__all__ = ["ready", "waited", "waits_in"]

_HERE = str(Path(__file__).parent)

_FEW, _SELDOM = 4, 64
"""After so few samples without a picture in a row, only every so many-th is looked at."""

_PLAIN = {bool, int, float, complex, str, bytes, type(None), torch.Tensor, np.ndarray}
"""Classes of values in samples that hold no pictures."""

_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
_GLOBAL = random._inst, np.random.mtrand._rand, torch.default_generator
_LONG, _MANY = 32, 200
"""No generators are looked for in longer containers, and behind so many objects."""


def ready() -> tuple[Any, Any, Any] | None:
    """Imports what waiting pictures need, which forked workers then have, too; returns None without Pillow."""
    if "PIL.Image" not in sys.modules:
        return None
    from fastload.pictures import files, source, tensors

    return files, source, tensors


def waits_in(fetcher: type[_MapDatasetFetcher] = _MapDatasetFetcher) -> None:
    """Has pictures wait in what a process fetches from now on."""
    change_new(_wait, fetcher)


def _wait(fetcher: Any, dataset: Any) -> None:
    fetcher.dataset = waited(dataset)


def waited(dataset: Any) -> _lib.Unframed:
    """Returns a dataset for torch's fetcher, whose pictures wait while its samples are made."""
    make = functools.partial(operator.getitem, dataset)
    return _lib.Unframed(
        _Samples(dataset).made,
        make,
        getattr(dataset, "__getitems__", None) or None,
    )


class _Samples:
    """Makes samples of a dataset, one after the other.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._own = _own_generators(dataset)
        self._has_made = False
        self._files: Any = None
        self._source: Any
        self._tensors: Any
        self._idle = 0

    def made(self, make: Callable[[Any], Any], index: Any) -> tuple[Any, Exception | None, int]:
        """Returns the result of `make` for an index, or its exception without fastload's frames in the traceback.

        And the number of next samples that are not looked at.
        """
        sample = error = None
        try:
            if self._waits():
                sample = self._made(make, index)
            else:
                self._idle += 1
                sample = make(index)
        except Exception as raised:
            error = raised.with_traceback(_without_ours(raised.__traceback__))
        return sample, error, _SELDOM - 1 if self._idle >= _FEW else 0

    def _made(self, make: Callable[[Any], Any], index: Any) -> Any:
        making = self._source.making()
        generators = keyed.current()
        saved, opened = generators.save(), making.opened
        saved_own = [_restoring(each) for each in self._own]
        # the sample may be made for another one, by a loader within it
        outer = making.is_on, making.failed, making.sources
        making.is_on, making.failed, making.sources = True, False, []
        try:
            try:
                sample = make(index)
            finally:
                decoded = {id(source.data) for source in making.sources if source.runs}
                for source in making.sources:
                    if id(source.data) not in decoded:
                        source.check()
            if making.sources or making.opened > opened:
                try:
                    _finish(sample, self._tensors.Waiting)
                except Exception:  # the sample has caught Pillow's own, and keeps the picture
                    making.failed = True
                    raise
        except (Exception, self._source.Late):
            if not making.failed:
                raise
        finally:
            failed = making.failed
            making.is_on, making.failed, making.sources = outer
            self._files.uninstall()
            self._tensors.uninstall()
            if not self._has_made:
                self._has_made = True
                self._own = _own_generators(self._dataset)  # the first sample may make some
        self._idle = 0 if making.opened > opened else self._idle + 1
        if not failed:
            return sample
        generators.restore(saved)
        for restore in saved_own:
            restore()
        return make(index)

    def _waits(self) -> bool:
        """Returns true if pictures wait in the next sample, and installs the stubs; needs Pillow."""
        if self._files is None:
            if (parts := ready()) is None:
                return False
            self._files, self._source, self._tensors = parts
        if not self._files.install():
            return False
        self._tensors.install()
        return True


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Returns a traceback as it would be without the frames of this package."""
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_HERE):
            kept.append(traceback)
        traceback = traceback.tb_next
    for each in reversed(kept):
        traceback = TracebackType(traceback, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return traceback


def _own_generators(dataset: Any) -> list[Any]:
    """Returns the random generators that a dataset holds, other than the global ones."""
    found: list[Any] = []
    waiting, seen = [dataset], {id(each) for each in _GLOBAL}
    for thing in waiting:  # to which others are added meanwhile
        if type(thing) in _PLAIN or id(thing) in seen:
            continue
        seen.add(id(thing))
        if len(seen) > _MANY:
            break
        kind = type(thing)
        if issubclass(kind, _GENERATORS):
            found += [] if issubclass(kind, random.SystemRandom) else [thing]
        elif kind in (dict, list, tuple):
            if len(thing) <= _LONG:
                waiting += thing.values() if kind is dict else thing
        else:
            waiting += stored(thing).values()
    return found


def _restoring(generator: Any) -> Callable[[], Any]:
    """Returns a function that restores the present state of a generator."""
    if isinstance(generator, np.random.Generator):
        return functools.partial(
            setattr, generator.bit_generator, "state", generator.bit_generator.state
        )
    if isinstance(generator, random.Random):
        return functools.partial(generator.setstate, generator.getstate())
    return functools.partial(generator.set_state, generator.get_state())


def _finish(sample: Any, waiting: type) -> None:
    """Has images in a sample be Pillow's own."""
    if isinstance(sample, waiting):
        sample.finish()  # type: ignore[attr-defined]
        return
    values: Any
    if isinstance(sample, dict):
        values = sample.values()
    elif isinstance(sample, list | tuple):
        values = sample
    elif dataclasses.is_dataclass(sample):
        values = [getattr(sample, field.name, None) for field in dataclasses.fields(sample)]
    else:
        return
    if not _PLAIN.issuperset(map(type, values)):
        for value in values:
            if type(value) not in _PLAIN:
                _finish(value, waiting)
