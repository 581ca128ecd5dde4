"""Starts the iterator of a loader's lane.

Owns what takes the place of worker processes that cannot be started, and the one line in the log that says so.
Chooses no lane and tunes nothing.
"""

import errno
import logging
import math
import operator
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data._utils import collate
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind

from fastload import _lib
from fastload.draws.sampler import recognise
from fastload.iterators.adapted import check_order, marked, stand_in
from fastload.iterators.consumer import ConsumerIter
from fastload.iterators.learned import Logged, stays_here
from fastload.iterators.native import Form, NativeIter
from fastload.iterators.worker_init import described, only_seeds
from fastload.lanes.choice import Choice, choose, program_here
from fastload.lowering.collators import settings_of
from fastload.lowering.seam import Seam
from fastload.machine.auto import AUTO, Auto, is_auto
from fastload.processes import UnpicklableError, iterate
from fastload.registry import state_of
from fastload.resume.iterator import InlineIter
from fastload.threads import ThreadIter

__all__ = ["Settled", "current_choice", "start"]

_log = logging.getLogger("fastload")
_EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors of a system that has no process, no memory or no descriptor left."""


@dataclass(slots=True)
class Settled:
    """The results that the next epoch of a loader reuses.

    Attributes:
        choice: The lane: native, or the consumer.
        of: The loader's attributes that decided on it, and on its iterator.
        settings: Those of its collate function, which the user may change in place.
        held: The state of a native dataset; the identities of the attributes of another, if its code was not found to be
            cheap.
        until_s: The time after which it is then chosen again.
        shared: The state that its iterators share; None until one was made.
    """

    choice: Choice
    of: tuple[Any, ...]
    settings: list[Any]
    held: Any
    until_s: float
    shared: dict[str, Any] | None = None


_DECISIVE = operator.attrgetter(
    *("lane", "dataset", "collate_fn", "worker_init_fn", "batch_sampler", "sampler", "generator"),
    *("pin_memory", "pin_memory_device", "prefetch_factor", "persistent_workers", "lazy_images"),
    *("sample_mask", "mesh", "on_error"),
)


_AGAIN = 50
"""How long a choice of the consumer is kept, in multiples of the time that it took: 2 % are spent on choosing."""

_MOST_HELD = 1000
"""Attributes after which no further dataset within a dataset is looked at."""


def current_choice(loader: Any) -> Choice:
    """Returns the lane; reuses the last choice if the dataset has not changed, and for a while if epochs cost less.

    No sample depends on that: what the consumer may draw is read from the code at each epoch.
    """
    if vars(loader)["num_workers"] == 0 and loader.lane == "auto" and loader._profile is None:
        return Choice("inline", "num_workers=0")
    of, settings = _decisive(loader), settings_of(loader.collate_fn)
    settled = loader._settled
    is_same = settled is not None and all(map(operator.is_, of, settled.of))
    if is_same and settings == settled.settings and _holds(settled, loader):
        return settled.choice  # type: ignore[no-any-return]
    vars(loader)["_reading"] = None  # its program is one of the loader as it was
    began_s = time.monotonic()
    choice = choose(loader)
    vars(loader)["_settled"] = None  # torch's __setattr__ takes its time
    held, until_s = None, math.inf
    if choice.lane == "consumer" and not choice.seam:
        now_s = time.monotonic()
        held = _held(loader.dataset) if choice.draws else []
        until_s = now_s + _AGAIN * (now_s - began_s)
    elif choice.lane == "native" and choice.plan is None:
        held = _native_state(loader)
    if held is not None:
        loader._settled = Settled(choice, _decisive(loader), settings, held, until_s)
    return choice


def _decisive(loader: Any) -> tuple[Any, ...]:
    """Returns what decides on the lane of a loader, and on its iterator."""
    return vars(loader)["num_workers"], loader._left_early > 0, *_DECISIVE(loader)


def _holds(settled: Settled, loader: Any) -> bool:
    """Returns true if the dataset has not changed, and a choice that rests on more than its code is not too old."""
    if settled.choice.lane == "native":
        return bool(settled.held == _native_state(loader))
    if not settled.choice.draws:
        return loader._reading.code().is_cheap  # type: ignore[no-any-return]
    return time.monotonic() < settled.until_s and settled.held == _held(loader.dataset)


def _native_state(loader: Any) -> Any:
    """Returns all that the native form of a loader's samples depends on, or None if only lowering them tells that."""
    try:
        state = state_of(loader.dataset, loader._memo)
        return state, dict(collate.default_collate_fn_map)
    except Exception:  # lowering says why
        return None


def _held(dataset: Any) -> list[int]:
    """Returns the identities of the attributes of a dataset, and of the one that it wraps; nothing is kept alive."""
    held: list[int] = []
    while type(attributes := getattr(dataset, "__dict__", None)) is dict and len(held) < _MOST_HELD:
        held += map(id, attributes.values())
        dataset = attributes.get("dataset")
    return held


def start(loader: Any, choice: Choice) -> _BaseDataLoaderIter:
    """Returns a new iterator of a lane, and keeps on the loader where its counters are read."""
    settled = loader._settled
    is_kept = settled is not None and settled.choice is choice and settled.shared is not None
    if is_kept and loader._restored is None:
        program = None if choice.draws else loader._reading.program(program_here, loader)
        again = ConsumerIter(loader, draws=choice.draws, shared=settled.shared, program=program)
        vars(loader)["_counters"] = _counters_of(again)  # torch's __setattr__ takes its time
        return again
    if choice.lane == "native":
        if loader.worker_init_fn is not None:
            _log_worker_init(loader)
        return NativeIter(loader, _form(loader, choice), read=_form_now)
    marks, tolerant = loader._marks, loader._ledger is not None
    if choice.lane == "consumer":
        return _start_here(loader, choice, choice.here, marks=marks, is_news=choice.fallback)
    if choice.fallback:
        _log_threads(loader, choice.why)
    if choice.lane == "inline":
        inline: _BaseDataLoaderIter = marked(InlineIter, wanted=marks, tolerant=tolerant)(
            stand_in(loader)
        )
        loader._counters = _counters_of(inline)
        return inline
    if marks:
        check_order(loader)
    if choice.lane == "process":
        _lib.park()  # a fork then copies a process without idle threads
        generator = loader.generator or torch.default_generator
        drawn = generator.get_state()
        try:
            iterator = iterate(
                loader, seam=choice.seam, marks=marks, may_take_over=choice.may_take_over
            )
        except UnpicklableError as error:
            if loader.lane == "process" and error.__cause__ is not None:
                raise error.__cause__ from None
            why = str(error)
        except OSError as error:
            if not choice.may_take_over or error.errno not in _EXHAUSTED:
                raise
            why = f"no worker process can be started: {error}"
        else:
            loader._counters = _counters_of(iterator)
            return iterator
        generator.set_state(drawn)  # what starts in their place draws from there
        if choice.may_take_over:
            return _start_here(loader, choice, why, marks=marks, is_news=True)
        _log_threads(loader, why)
    kind = marked(ThreadIter, wanted=marks, tolerant=tolerant)
    threads: ThreadIter = kind(loader, seam=choice.seam)
    loader._counters = threads.stats
    return threads


def _form(loader: Any, choice: Choice) -> Form:
    """Returns the native form of a choice, and keeps on the loader what was read for it."""
    vars(loader)["_read"] = choice.read
    below = len(choice.program) if choice.from_zero else None
    return Form(choice.program, below, choice.batched)


def _form_now(loader: Any) -> Form | None:
    """Returns the native form that a loader's samples have now; None if they have none."""
    choice = current_choice(loader)
    return _form(loader, choice) if choice.lane == "native" else None


def _start_here(
    loader: Any, choice: Choice, why: str, *, marks: bool, is_news: bool
) -> _BaseDataLoaderIter:
    """Returns an iterator whose batches the calling thread makes.

    Args:
        loader: The loader.
        choice: The lane, or that of the workers that could not be started.
        why: The reason, for the log.
        marks: True if batches have a `sample_mask`.
        is_news: True to log it: workers would have been started if possible.
    """
    if is_news and Logged.of(loader).first("lane"):
        _log.warning("loading in this process: %s", why)
    if not choice.may_fork:
        stays_here(loader.dataset, why)
        loader._record.why_here = loader._record.why_here or why
    changes: dict[str, Any] = {}
    if choice.seam:
        changes["dataset"] = Seam(loader.dataset, loader._memo)
    is_private = False
    if is_auto(loader) and loader._dataset_kind == _DatasetKind.Map:
        order = recognise(loader._index_sampler, batched=loader._auto_collation)
        is_private = order is not None and order.is_private
    if is_private and vars(loader)["num_workers"] is AUTO:
        changes["num_workers"] = Auto(0)  # saves reading the machine: no index is taken ahead
    elif loader.num_workers == 0:
        changes["num_workers"] = Auto(1)  # of an inline profile; 0 would take no index of a sampler
    kind = marked(ConsumerIter, wanted=marks, tolerant=loader._ledger is not None)
    iterator: ConsumerIter = kind(stand_in(loader, **changes), draws=choice.draws)
    is_fresh = loader._restored is None and loader.mesh is None and iterator._shared_seed is None
    if loader._settled is not None and kind is ConsumerIter and is_private and is_fresh:
        loader._settled.shared = iterator.shared()
    loader._counters = _counters_of(iterator)
    return iterator


def _log_threads(loader: Any, why: str) -> None:
    """Logs once that threads replace worker processes."""
    if Logged.of(loader).first("lane"):
        _log.warning("loading without worker processes: %s", why)


def _log_worker_init(loader: Any) -> None:
    """Logs once that native workers do not call a `worker_init_fn` that may do more than seed."""
    function = loader.worker_init_fn
    if only_seeds(function):
        return
    if Logged.of(loader).first("worker_init_fn"):
        _log.warning(
            "worker_init_fn %s is not called: no Python runs in native workers; "
            "lane='process' starts workers that call it",
            described(function),
        )


def _counters_of(iterator: Any) -> Callable[[], Mapping[str, float]]:
    """Returns a function that reads a torch iterator's counters without keeping it alive."""
    alive = weakref.ref(iterator)

    def counters() -> Mapping[str, float]:
        counted: Any = alive()
        if counted is None:
            return {}
        memory = counted.memory() if hasattr(counted, "memory") else {}
        counts = {"batches": counted._num_yielded}
        if hasattr(counted, "consumer_batches"):
            counts["consumer_batches"] = counted.consumer_batches()
        return {**counts, **memory}

    return counters
