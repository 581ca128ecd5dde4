"""Makes batches in Python in which good samples stand in for bad ones.

Owns the way from torch's fetcher to a batch with its bad samples beside it; runs wherever samples are made: in
workers, in threads, in the training thread. Errors cross processes as text. Where nothing fails, a batch costs
what it costs in torch: samples are made and collated by the same calls.
"""

import copy
import functools
import operator
import time
from collections import UserDict
from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from fastload import _lib
from fastload.bad_samples.policy import OnError
from fastload.bad_samples.sample_files import first_file
from fastload.faults import fault_of, one_line

__all__ = ["Bad", "Fetched", "change_new", "described", "in_workers", "tolerate"]

Save = Callable[[], Callable[[], None]]
"""Saves the generators, and returns the function that restores them."""

_LONGEST = 500
"""Characters of an error that are kept."""


class Bad(NamedTuple):
    """A bad sample, as it crosses from where it is found; its fields are those of a `BadSample`."""

    position: int
    sample: int | str  # its index
    path: str
    reason: str
    error: str


class Fetched(NamedTuple):
    """A batch, and what became of its samples."""

    batch: Any  # None if there is no good sample
    samples: int  # number of planned samples
    retried: int  # number of retries
    bad: list[Bad]  # by position


def tolerate(
    fetcher: Any,
    dataset: Any,
    policy: OnError,
    *,
    repeat: Callable[[Any], None] | None = None,
    save: Save | None = None,
) -> Any:
    """Has one of torch's fetchers return `Fetched`, with good samples in place of bad ones.

    Args:
        fetcher: The fetcher of a map-style dataset.
        dataset: The dataset itself.
        policy: The replacement of a bad sample.
        repeat: Keys the generators again for the sample of the index taken last; given the indices.
        save: Saves the generators; returns the function that restores them. None if samples draw nothing.
    """
    fetcher.fetch = _Tolerant(fetcher, dataset, policy, repeat, save).fetch
    return fetcher


def in_workers(policy: OnError, save: Save, worker_init_fn: Any, number: int) -> None:
    """Has all fetchers of a worker process tolerate bad samples; takes the place of its `worker_init_fn`."""
    change_new(functools.partial(tolerate, policy=policy, save=save))
    if worker_init_fn is not None:
        worker_init_fn(number)


def change_new(
    change: Callable[[Any, Any], None],
    kind: type[_MapDatasetFetcher] = _MapDatasetFetcher,
) -> None:
    """Has this process call `change` with each new fetcher and its dataset, after earlier changes."""
    begin = kind.__init__

    def begun(self: Any, dataset: Any, *args: Any, **named: Any) -> None:
        begin(self, dataset, *args, **named)
        change(self, dataset)

    kind.__init__ = begun  # type: ignore[method-assign]


class _Tolerant:
    """Makes the batches of a fetcher."""

    def __init__(
        self,
        fetcher: Any,
        dataset: Any,
        policy: OnError,
        repeat: Callable[[Any], None] | None,
        save: Save | None,
    ) -> None:
        self._dataset = fetcher.dataset
        self._collate_fn = fetcher.collate_fn
        self._is_batched = fetcher.auto_collation
        self._origin = dataset
        self._policy = policy
        self._repeat = repeat or _repeat
        self._save = save or _saved_nothing
        self._retried = 0
        self._bad: list[Bad] = []

    def fetch(self, indices: Any) -> Fetched:
        """Returns a batch, or with `batch_size=None` a sample.

        Raises:
            Exception: What collation raises, and what a sample raises that is not bad.
        """
        self._retried, self._bad = 0, []
        lists = getattr(self._dataset, "__getitems__", None) if self._is_batched else None
        if not self._is_batched:
            [sample] = self._each((indices,))
            batch = self._collate_fn(_copied(self._policy.substitute) if self._bad else sample)
            return Fetched(batch, 1, self._retried, self._bad)
        samples = self._listed(lists, indices) if lists else self._each(indices)
        batch = None
        if not self._bad:
            batch = self._collate_fn(samples)
        elif chosen := _chosen(samples, {bad.position for bad in self._bad}, self._policy):
            batch = self._collate_fn(chosen)
        return Fetched(batch, len(samples), self._retried, self._bad)

    def _each(self, indices: Any) -> list[Any]:
        """Makes the samples one by one."""
        samples: list[Any] = []
        dataset = self._dataset
        for index in indices:
            try:
                samples.append(dataset[index])  # a name for it would cost 5 ns
            except Exception as error:
                again = functools.partial(self._again, indices)
                samples.append(self._failed(error, again, index, len(samples)))
        return samples

    def _again(self, indices: Any, index: Any) -> Any:
        """Makes a sample again, from the same draws if they are keyed."""
        self._repeat(indices)
        return self._dataset[index]

    def _listed(self, lists: Any, indices: Any) -> list[Any]:
        """Makes the samples together; one by one, from the same generators, if that fails."""
        restore = self._save()
        try:
            return lists(indices)  # type: ignore[no-any-return]
        except Exception as error:
            if fault_of(error, self._policy.only) == "fatal":
                raise _not_the_end(error)  # noqa: B904 (the cause is its own)
        restore()
        return [self._alone(lists, index, position) for position, index in enumerate(indices)]

    def _alone(self, lists: Any, index: Any, position: int) -> Any:
        """Makes a sample by a list of its index."""
        restore = self._save()
        try:
            return lists([index])[0]
        except Exception as error:

            def again(index: Any) -> Any:
                restore()
                return lists([index])[0]

            return self._failed(error, again, index, position)

    def _failed(
        self, error: Exception, again: Callable[[Any], Any], index: Any, position: int
    ) -> Any:
        """Returns the sample if a retry makes it; otherwise notes it as bad and returns None.

        Raises:
            Exception: One that is neither the sample's nor passes.
        """
        fault = fault_of(error, self._policy.only)
        for pause_s in self._policy.pauses:
            if fault != "passing":
                break
            time.sleep(pause_s)
            self._retried += 1
            try:
                return again(index)
            except Exception as other:
                error, fault = other, fault_of(other, self._policy.only)
        if fault == "passing":
            error.add_note(f"the storage failed {self._policy.retries + 1} times")
        if fault in ("passing", "fatal"):
            raise _not_the_end(error)
        path = _path(error) or first_file(self._origin, index)
        self._bad.append(Bad(position, _number(index), path, fault, described(error)))
        return None


def _chosen(samples: list[Any], bad: set[int], policy: OnError) -> list[Any]:
    """Returns the samples that are collated; none if that needs a good sample and there is none."""
    good = [position for position in range(len(samples)) if position not in bad]
    if policy.action == "substitute":
        for position in bad:
            samples[position] = _copied(policy.substitute)
        return samples
    if policy.action == "skip" or not good:
        return [samples[position] for position in good]
    donor = good[0]  # of those behind the last good one
    for position in reversed(range(len(samples))):
        if position in bad:
            samples[position] = _copied(samples[donor])
        else:
            donor = position
    return samples


def _copied(sample: Any) -> Any:
    """Returns a sample that shares no memory with the given one, which a collate function may change.

    Containers, tensors and arrays are copied; other objects are the same.
    """
    if isinstance(sample, dict | UserDict):
        made = copy.copy(sample)  # of its own class
        made.update((key, _copied(value)) for key, value in sample.items())
        return made
    if isinstance(sample, list):
        entries = copy.copy(sample)
        entries[:] = map(_copied, sample)
        return entries
    if type(sample) is tuple:
        return tuple(map(_copied, sample))
    if isinstance(sample, tuple) and hasattr(sample, "_make"):  # a named one
        return sample._make(map(_copied, sample))
    if isinstance(sample, torch.Tensor):
        return sample.clone()
    if isinstance(sample, np.ndarray | bytearray):
        return sample.copy()
    return sample


def described(error: BaseException) -> str:
    """Returns an exception in words: its class and the first line of its message."""
    return one_line(error)[:_LONGEST]


def _not_the_end(error: Exception) -> Exception:
    """Returns the error to raise: in place of StopIteration, which would end the epoch, what a generator raises."""
    if not isinstance(error, StopIteration):
        return error
    instead = RuntimeError("a sample raised StopIteration")
    instead.__cause__ = error
    return instead


def _repeat(indices: Any) -> None:
    if isinstance(indices, _lib.Followed):
        indices.repeat()


def _saved_nothing() -> Callable[[], None]:
    return lambda: None


def _number(index: Any) -> int | str:
    try:
        return operator.index(index)
    except TypeError:
        return str(index)[:_LONGEST]


def _path(error: Exception) -> str:
    """Returns the file that an error of the system names."""
    name = error.filename if isinstance(error, OSError) else None
    return str(name) if isinstance(name, str | PathLike) else ""
