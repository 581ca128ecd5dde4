"""Datasets and samplers that have a state of their own: `state_dict` and `load_state_dict`.

Owns where their states are looked for: on a dataset, on its iterator, on a sampler, and on its iterator. What is its
own iterator is stored once. In the loader's state each is in a tuple of its own: torch.distributed.checkpoint takes
dictionaries and lists apart, and could not load what a new loader does not have yet.
"""

import copy
import functools
import logging
import pickle
import weakref
from collections.abc import Callable
from typing import Any

from fastload import registry
from fastload.batching.layers import attribute

__all__ = [
    "boxed",
    "is_stateful",
    "kept",
    "load_dataset",
    "load_iterator",
    "of_next_epoch",
    "report_unkept",
    "start_anew",
    "starts_anew",
    "state_of_dataset",
    "unboxed",
]

_log = logging.getLogger("fastload")
_reported: "weakref.WeakSet[type]" = weakref.WeakSet()
_given: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
"""The states that streams of Hugging Face were given last."""


def is_stateful(thing: Any) -> bool:
    """Returns true if an object has `state_dict` and `load_state_dict`."""
    return callable(attribute(thing, "state_dict")) and callable(
        attribute(thing, "load_state_dict")
    )


def state_of_dataset(dataset: Any, fetcher: Any) -> dict[str, Any] | None:
    """Returns the states of a dataset and its iterator; None where neither has one.

    Args:
        dataset: The dataset.
        fetcher: Torch's, which iterates it; None before there is one.
    """
    iterator: Any = getattr(fetcher, "dataset_iter", None)
    is_iterator = iterator is dataset
    iterator = None if is_iterator else iterator
    if not is_stateful(dataset) and not is_stateful(iterator):
        return None
    said = [each.state_dict() if is_stateful(each) else None for each in (dataset, iterator)]
    return {
        "dataset": said[0],
        "iterator": said[1],
        "is_iterator": is_iterator,
        "ended": bool(getattr(fetcher, "ended", False)),
    }


def kept(state: Any) -> Callable[[], Any]:
    """Returns a function that returns a state as it is now, each time a copy.

    Of lists pickle makes a copy in a tenth of the time that `copy.deepcopy` takes.
    """
    try:
        return functools.partial(pickle.loads, pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
    except Exception:  # whatever an object of the user's raises
        return functools.partial(copy.deepcopy, copy.deepcopy(state))


def report_unkept(kind: type, error: str, then: str) -> None:
    """Logs that the state of a dataset or sampler cannot be kept; once for each class.

    Args:
        kind: Its class.
        error: The error of its `state_dict`, or of pickling what that returned.
        then: The consequence for a resumed run.
    """
    if kind not in _reported:
        _reported.add(kind)
        _log.warning(
            "the state of %s is not kept, because its state_dict() failed (%s): a resumed run %s",
            kind.__qualname__,
            error,
            then,
        )


def boxed(state: Any) -> tuple[Any] | None:
    """Returns a state as it is stored: in a tuple, which torch.distributed.checkpoint stores as a whole."""
    return None if state is None else (state,)


def unboxed(stored: Any) -> Any:
    """Returns the state from what `boxed` returned; JSON makes a list of a tuple."""
    return None if stored is None else stored[0]


def of_next_epoch(said: dict[str, Any]) -> dict[str, Any]:
    """Returns the states of a dataset at the end of an epoch, for the next one, which makes a new iterator."""
    return {**said, "iterator": None, "is_iterator": False, "ended": False}


def load_dataset(dataset: Any, saved: dict[str, Any] | None) -> None:
    """Restores a dataset before it is iterated; not one that is its own iterator."""
    if saved is None or saved["dataset"] is None or saved["is_iterator"]:
        return
    if is_stateful(dataset):
        state = copy.deepcopy(saved["dataset"])
        dataset.load_state_dict(state)
        if starts_anew(dataset):
            _given[dataset] = state


def starts_anew(dataset: Any) -> bool:
    """Returns true for a stream of Hugging Face, whose state is a position within one epoch."""
    return registry.name(type(dataset)) == "datasets.iterable_dataset.IterableDataset"


def start_anew(dataset: Any) -> None:
    """Takes back the state that a stream was given for an earlier epoch: it begins each epoch there."""
    if not _given or not starts_anew(dataset):
        return
    state = _given.pop(dataset, None)
    if state is not None and dataset._starting_state_dict is state:
        dataset.load_state_dict(None)


def load_iterator(fetcher: Any, dataset: Any, saved: dict[str, Any] | None) -> None:
    """Puts the iterator of a dataset where it was, or at its end; its `__iter__` may have reset it."""
    iterator = getattr(fetcher, "dataset_iter", None)
    if saved is None or iterator is None:
        return
    state = saved["dataset"] if saved["is_iterator"] and iterator is dataset else saved["iterator"]
    if state is not None and is_stateful(iterator):
        iterator.load_state_dict(copy.deepcopy(state))
    fetcher.ended = saved["ended"]
