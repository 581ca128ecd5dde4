"""Makes a user's samples with lazily decoded images.

Owns when they do: while a sample of a map-style dataset is made, in this thread, and until it is done. A file that
proves damaged only once its pixels are made would have failed earlier, perhaps within the user's `try`: the sample is
then made again from the same generators' states, with pictures that do not wait.
"""

import dataclasses
import functools
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.utils.data._utils.fetch import _MapDatasetFetcher

from fastload import _lib
from fastload.bad_samples.fetching import change_new
from fastload.draws import keyed

__all__ = ["ready", "waited", "waits_in"]

_HERE = str(Path(__file__).parent)

_FEW, _SELDOM = 4, 64
"""After so few samples without a picture in a row, only every so many-th is looked at."""


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
    return _lib.Unframed(_Samples().made, make, getattr(dataset, "__getitems__", None) or None)


class _Samples:
    """Makes samples of a dataset, one after the other."""

    def __init__(self) -> None:
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
        # the sample may be made for another one, by a loader within it
        outer = making.is_on, making.failed, making.sources
        making.is_on, making.failed, making.sources = True, False, []
        try:
            try:
                sample = make(index)
            finally:
                for source in making.sources:
                    if not source.runs:
                        source.check()
            if making.sources or making.opened > opened:
                try:
                    _finish(sample)
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
        self._idle = 0 if making.opened > opened else self._idle + 1
        if not failed:
            return sample
        generators.restore(saved)
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


def _finish(sample: Any) -> None:
    """Has images in a sample be Pillow's own."""
    from fastload.pictures.waiting import Waiting

    if isinstance(sample, Waiting):
        sample.finish()
    elif isinstance(sample, dict):
        for value in sample.values():
            _finish(value)
    elif isinstance(sample, list | tuple):
        for value in sample:
            _finish(value)
    elif dataclasses.is_dataclass(sample):
        for field in dataclasses.fields(sample):
            _finish(getattr(sample, field.name, None))
