"""Reads every sample of a dataset once, each as a task of its own, so that an error is that of one sample.

Owns the order, which is that of the dataset, and what follows the death of a worker process.
"""

import os
import re
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from fastload import lanes
from fastload.bad_samples.sample_files import listed_files, stamp
from fastload.check.describe import describe
from fastload.check.report import FailedSample, Report
from fastload.draws.sampler import picks_batches
from fastload.faults import one_line
from fastload.loader import Loader
from fastload.machine.auto import AUTO
from fastload.tune.target import restored_generators

_AHEAD = 16  # samples in flight for each worker
_ERRORS = 1_000  # errors in a row that end the check of a stream
_QUOTED = re.compile(r"""(['"])(.+?)\1""")

Tell = Callable[[FailedSample | None], None]


def check(target: Any) -> Report:
    """Reads every sample of a dataset once, and returns what was found.

    A dataset that can be read natively is read by native threads; any other by worker processes, as `Loader`
    would. The dataset's own order, batch size and `collate_fn` do not matter.

    Args:
        target: A dataset, or a loader of it: a `Loader` or a torch `DataLoader`.

    Raises:
        TypeError: The dataset has no length, and is not iterable either.
        ValueError: The loader insists on a lane that its dataset cannot take.

    Examples:
        >>> report = check(dataset)
        >>> [bad.path for bad in report.bad]
        ['photographs/0017.jpg']
        >>> report.fields["sample[0]"].dtypes
        Counter({'float32': 9999})
    """
    report = Report()
    read(target, report, lambda _: None)
    return report


def read(target: Any, report: Report, tell: Tell) -> None:
    """Fills a report; calls `tell` for each sample, with the sample if it is bad and None if it is good."""
    loader = target if isinstance(target, DataLoader) else Loader(target)
    began = time.perf_counter()
    try:
        with restored_generators(loader):
            if isinstance(loader.dataset, IterableDataset):
                _read_stream(loader, report, tell)
            else:
                _read_indices(loader, report, tell)
    finally:
        report.seconds = time.perf_counter() - began


def _read_indices(loader: Any, report: Report, tell: Tell) -> None:
    """Reads a map-style dataset; where a worker dies, one worker finds the sample that it died of."""
    try:
        total = report.total = len(loader.dataset)
    except (TypeError, NotImplementedError) as error:
        msg = f"{type(loader.dataset).__qualname__} has no length, so its indices are unknown: give it a __len__"
        raise TypeError(msg) from error
    except Exception as error:
        msg = f"the length of {type(loader.dataset).__qualname__} is not known: {one_line(error)}"
        raise TypeError(msg) from error
    if _takes_lists(loader):
        report.notes.append(
            "The loader's sampler yields lists of indices: each sample was read as a batch of one."
        )
    while report.samples < total:
        death = _read_range(loader, report, tell, range(report.samples, total))
        if death is None:
            return
        window = range(report.samples, min(total, report.samples + _AHEAD * AUTO))
        death = _read_range(loader, report, tell, window, num_workers=1, prefetch_factor=1)
        if death is not None:
            _add_bad(loader.dataset, report, tell, death)


def _read_stream(loader: Any, report: Report, tell: Tell) -> None:
    death = _read_range(loader, report, tell, None)
    if death is not None:
        _add_bad(loader.dataset, report, tell, death)
    if report.bad:
        report.notes.append(
            "The dataset is iterable, and an error ends its generator: samples that it would have yielded "
            "afterwards were not read."
        )


def _read_range(
    loader: Any, report: Report, tell: Tell, indices: range | None, **changes: Any
) -> BaseException | None:
    """Reads some samples; returns the error with which a worker process ended, or None."""
    reader, report.lane = _reader(loader, indices, changes)
    is_described = reader.collate_fn is describe
    iterator, in_a_row = iter(reader), 0
    try:
        while True:
            try:
                sample = next(iterator)
                described = sample if is_described else describe(sample)
            except (Exception, SystemExit) as error:
                if isinstance(error, StopIteration) and not _is_raised_by_sample(report, indices):
                    return None
                if getattr(iterator, "_shutdown", False):  # torch's, true after a worker's death
                    return error
                _add_bad(loader.dataset, report, tell, error)
                in_a_row += 1
                if indices is None and in_a_row == _ERRORS:
                    report.notes.append(f"The check ended after {_ERRORS:,} errors in a row.")
                    return None
            else:
                in_a_row = 0
                report.add(described)
                tell(None)
    finally:
        if (read_bytes := reader.stats().get("read_bytes")) is not None:
            report.read_bytes = (report.read_bytes or 0) + int(read_bytes)


def _takes_lists(loader: Any) -> bool:
    """Returns true if a loader indexes its dataset with lists, of which the dataset makes batches."""
    return not loader._auto_collation and picks_batches(loader.sampler)


def _is_raised_by_sample(report: Report, indices: range | None) -> bool:
    """Returns true if a `StopIteration` is the error of a sample, and not the end: samples are to come."""
    return indices is not None and report.samples < indices.stop


def _reader(loader: Any, indices: range | None, changes: dict[str, Any]) -> tuple[Any, str]:
    """Returns the loader of single samples, which Python workers describe; and its lane in words."""
    options: dict[str, Any] = {"tune": False, "worker_init_fn": loader.worker_init_fn}
    is_ours = isinstance(loader, Loader)
    if is_ours and loader.num_workers == 0:
        options["num_workers"] = 0
    else:
        # an iterable dataset divides its samples among as many workers as the loader has
        options["num_workers"] = AUTO if indices is not None else loader.num_workers or AUTO
        options["prefetch_factor"] = _AHEAD
        options["multiprocessing_context"] = loader.multiprocessing_context
    if is_ours:
        options |= {"lazy_images": loader.lazy_images, "memory_budget": loader.memory_budget}
        if loader.lane != "native":  # which a dataset of single samples may not be
            options["lane"] = loader.lane
    if indices is not None and _takes_lists(loader):
        options["sampler"] = BatchSampler(indices, 1, drop_last=False)
    elif indices is not None and len(indices) < len(loader.dataset):
        options["sampler"] = indices
    options |= changes
    reader = Loader(loader.dataset, None, **options)
    choice = lanes.choose_if_long(reader)
    # samples that are cheap are read by workers all the same
    why = choice.why.removesuffix(f", and {choice.here}")
    if choice.lane != "native":
        reader = Loader(loader.dataset, None, collate_fn=describe, **options)
    return reader, f"{lanes.choose(reader).lane}: {why}"


def _add_bad(dataset: Any, report: Report, tell: Tell, error: BaseException) -> None:
    words = one_line(error)
    has_indices = report.total is not None
    listed = listed_files(dataset, report.samples) if has_indices else []
    path = _path(error, words, listed)
    bad = FailedSample(report.samples, path, *stamp(path), words)
    report.add_bad(bad)
    tell(bad)


def _path(error: BaseException, words: str, listed: list[str]) -> str | None:
    """Returns the file that an error names, or else the first that the dataset lists for the sample."""
    if isinstance(name := getattr(error, "filename", None), str):
        return name
    quoted = (match[2] for match in _QUOTED.finditer(words))
    named = [path for path in listed if path in words]
    named += [path for path in quoted if os.sep in path and os.path.lexists(path)]
    return next(iter(named + listed), None)
