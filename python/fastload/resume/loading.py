"""The states that `Loader.load_state_dict` takes: compared with the loader before an iterator continues from them."""

import copy
import operator
import pickle
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler
from torch.utils.data.dataloader import _DatasetKind

from fastload.draws.sampler import Start, distributed_total, resumable
from fastload.resume.facts import VERSION, checksum, facts_of, number_of, world_of
from fastload.resume.pulls import PARTS
from fastload.resume.restored import Restored, StateError, generator_of, unpack
from fastload.resume.stateful import boxed, is_stateful, unboxed
from fastload.sizes import length_of

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["as_saved", "ends_first", "restored"]


def restored(loader: Any, state: Any, *, starts: bool = False) -> Restored | None:
    """Returns where the next iterator begins; None for an epoch without a state.

    Lightning loads the state of each loader in a checkpoint, also where the user continues with another loader, so a
    state that does not fit is left out there, with a warning.

    Args:
        loader: The loader.
        state: The state that `state_dict` returned, of this loader or of one that is made alike.
        starts: True if the iterator starts now, for which the number of workers must fit, too.

    Raises:
        TypeError: No mapping.
        ValueError: A state of another loader, of another version, or one that was changed.
    """
    try:
        if starts:
            _check_workers(loader, state)
        return _restored(loader, state)
    except StateError as error:
        if not _is_in_lightning():
            raise
        msg = f"the epoch begins at its first batch, because the checkpoint's state does not fit: {error}"
        warnings.warn(msg, stacklevel=3)
        return None


def _restored(loader: Any, state: Any) -> Restored | None:
    if not isinstance(state, Mapping):
        msg = f"load_state_dict takes what state_dict returned, found {type(state).__qualname__}"
        raise TypeError(msg)
    if not state:
        return None
    _check_layout(state)
    facts = facts_of(loader, is_coming=state["is_coming"])
    _compare(state, facts | {"rank": world_of(loader)[1]}, loader)
    if state["checksum"] != checksum(state):
        msg = "load_state_dict: the state was changed after it was saved; its checksum differs"
        raise StateError(msg)
    if state["_iterator_finished"] and not state["is_coming"]:
        return None
    if _is_lightnings(loader, state) and not _has_own(state):
        return None  # Lightning goes on with the epoch behind this one, of which nothing is needed
    first, left_out = _out_of_order(state)
    wanted = taken = 0 if state["is_coming"] else state["_num_yielded"]
    workers: dict[int, bytes] = {}
    keeps = bool(state["snapshot_every_n_steps"])
    number = int(state["num_workers"] or 0) if keeps else 0
    is_same = number == number_of(loader)
    if number and (is_same or state["sampler_state"] is not None):  # which is that of the snapshot
        workers, at = unpack(state["workers"])
        workers, taken = workers if is_same else {}, min(at, taken)
    is_map = loader._dataset_kind == _DatasetKind.Map
    if not is_map and state["dataset_state"] is None:
        workers, taken = {} if taken else workers, 0  # which is read again
    dropped = wanted - taken
    if is_map and state["to_come"] is not None:
        taken, dropped = first, 0
    start, first_taken, origin = _place(loader, state, facts, taken)
    where = Restored(
        is_coming=state["is_coming"],
        is_drawn=state["is_drawn"] or wanted > 0,
        base_seed=state["base_seed"],
        epoch=state["epoch"],
        taken=first_taken,
        left_out=left_out,
        start=start,
        origin=origin,
        sampler_epoch=state["sampler_epoch"],
        generator=generator_of(state["sampler_generator"]),
        loader_generator=generator_of(state["loader_generator"]),
        sampler_state=copy.deepcopy(unboxed(state["sampler_state"])),
        workers=workers,
        datasets={
            int(worker): pickle.dumps(said)
            for worker, said in (unboxed(state["dataset_state"]) or {}).items()
        },
        next_worker=_first_worker(loader, state, first_taken),
        to_drop=dropped,
        from_workers=tuple(state["from_workers"]),
        bad_samples=() if state["is_coming"] else _bad_samples(state),
        draws_from=state["draws_from"],
        number=number,
    )
    if dropped and is_map and state["sampler_state"] is None:
        start, taken, origin = _place(loader, state, facts, wanted)
        behind = where._replace(start=start, taken=taken, origin=origin, to_drop=0)
        return where._replace(unrepeated=behind)
    return where


def as_saved(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a loaded state as `state_dict` made it, before a file changed tuples to lists."""
    return copy.deepcopy({**state, **{name: boxed(unboxed(state[name])) for name in _BOXED}})


def _bad_samples(state: Mapping[str, Any]) -> tuple[tuple[int, int | None], ...]:
    """Returns the bad samples of a state: their indices, and the sizes of their files."""
    try:
        return tuple(
            (operator.index(index), None if size is None else operator.index(size))
            for index, size in state["bad_samples"]
        )
    except (TypeError, ValueError) as error:
        msg = (
            f"load_state_dict: bad_samples={state['bad_samples']!r} are no pairs of index and size"
        )
        raise StateError(msg) from error


def ends_first(loader: Any, state: Mapping[str, Any]) -> bool:
    """Returns true if the epoch of a state, of which nothing is left, is ended before the next one begins.

    That is for Lightning, where the dataset or the sampler has a state, which goes on.
    """
    return _has_own(state) and _is_lightnings(loader, state)


def _has_own(state: Mapping[str, Any]) -> bool:
    return state["sampler_state"] is not None or state["dataset_state"] is not None


def _is_lightnings(loader: Any, state: Mapping[str, Any]) -> bool:
    """Returns true if nothing is left of an epoch, and Lightning asks.

    It asks for no batch beyond the length, so that its iterators never say that they are at their end. A plain
    loop is given the empty rest of the epoch.
    """
    if state["is_coming"] or state["_iterator_finished"]:
        return False
    length = length_of(loader)
    return length is not None and state["_num_yielded"] >= length and _is_in_lightning()


def _is_in_lightning() -> bool:
    """Returns true if Lightning's trainer is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    names = ("lightning.pytorch.", "pytorch_lightning.")
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(names):
        frame = frame.f_back
    return frame is not None


def _first_worker(loader: Any, state: Mapping[str, Any], taken: int) -> int:
    """Returns the worker that makes the next batch."""
    if loader._dataset_kind == _DatasetKind.Iterable:
        return int(state["next_worker"]) if taken else 0
    return taken % max(1, int(loader.num_workers))


def _check_layout(state: Mapping[str, Any]) -> None:
    """Refuses anything but a state of this version."""
    version = state.get("version")
    if version is None and not {"_snapshot", "fetcher_state"}.isdisjoint(state):
        msg = (
            "load_state_dict: this is a state of torchdata's StatefulDataLoader, which does not say what the "
            "order was drawn from; begin with a new epoch"
        )
        raise StateError(msg)
    if type(version) is not int or version != VERSION:
        msg = (
            f"load_state_dict: the state has version {version!r}, and this fastload reads version "
            f"{VERSION}; load it with the version that saved it, and begin with a new epoch here"
        )
        raise StateError(msg)
    missing = sorted(_KEYS.keys() - state.keys())
    if missing:
        msg = f"load_state_dict: the state has no {', '.join(map(repr, missing))}"
        raise StateError(msg)
    for name, kinds in _KEYS.items():
        value = state[name]
        if not _may_be(name, value, kinds):
            msg = (
                f"load_state_dict: {name}={value!r} is not valid in a state; was the state edited?"
            )
            raise StateError(msg)
    counts = state["from_workers"]
    if counts and (len(counts) != state["num_workers"] or not all(type(n) is int for n in counts)):
        msg = f"load_state_dict: from_workers={counts!r} does not count the batches of each worker"
        raise StateError(msg)
    if state["_num_yielded"] < 0:
        msg = f"load_state_dict: _num_yielded={state['_num_yielded']} is less than 0"
        raise StateError(msg)


def _may_be(name: str, value: Any, kinds: tuple[type, ...]) -> bool:
    """Returns true if `state_dict` may give a key such a value."""
    is_of_kind = isinstance(value, kinds) and (type(value) is not bool or bool in kinds)
    if not is_of_kind or name not in _BOXED or value is None:
        return is_of_kind
    is_boxed = len(value) == 1 and isinstance(value[0], Mapping)
    return is_boxed and (name != "sampler_state" or value[0].keys() >= PARTS)


_NONE = type(None)
_BOXED = ("sampler_state", "dataset_state")
_KEYS: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "is_coming": (bool,),
    "is_drawn": (bool,),
    "base_seed": (int,),
    "epoch": (int,),
    "sampler_epoch": (int, _NONE),
    "sampler_seed": (int, _NONE),
    "sampler_generator": (str, _NONE),
    "origin_batches": (int,),
    "origin_samples": (int,),
    "batch_size": (int, _NONE),
    "drop_last": (bool,),
    "length": (int, _NONE),
    "sampler": (str,),
    "world_size": (int,),
    "rank": (int, _NONE),
    "num_workers": (int, _NONE),
    "snapshot_every_n_steps": (int,),
    "draws_from": (str, _NONE),
    "loader_generator": (str, _NONE),
    "sampler_state": (tuple, list, _NONE),
    "dataset_state": (tuple, list, _NONE),
    "workers": (str, _NONE),
    "next_worker": (int,),
    "checksum": (int,),
    "bad_samples": (list,),
    "to_come": (list, _NONE),
    "from_workers": (list,),
    "_num_yielded": (int,),
    "_sampler_iter_yielded": (int,),
    "_index_sampler_state": (Mapping,),
    "_iterator_finished": (bool,),
}


def _compare(state: Mapping[str, Any], facts: Mapping[str, Any], loader: Any) -> None:
    """Refuses a state of a loader that has another order."""
    advice = {
        "length": "give the dataset that was saved with it",
        "sampler": "make the sampler with the same arguments",
    }
    for name in ("length", "batch_size", "drop_last", "sampler"):
        if state[name] != facts[name]:
            then = advice.get(name, f"make the loader with {name}={state[name]!r}")
            msg = (
                f"load_state_dict: the state is of a loader with {name}={state[name]!r}, and this one has "
                f"{name}={facts[name]!r}; {then}, or begin with a new epoch"
            )
            raise StateError(msg)
    if state["is_coming"]:
        return
    in_order = state["to_come"] is None
    if state["world_size"] != facts["world_size"] and not (in_order and _may_change_world(loader)):
        cuts = type(loader._index_sampler)
        name = facts["sampler"].partition("(")[0] if cuts is BatchSampler else cuts.__qualname__
        why = (
            f"{name} deals its samples out anew for each number of ranks"
            if in_order
            else "with in_order=False the batches that are still to come are those of each rank"
        )
        msg = (
            f"load_state_dict: the state was saved with world_size={state['world_size']}, and there are now "
            f"world_size={facts['world_size']} ranks; {why}: use the same number, or begin with a new epoch"
        )
        raise StateError(msg)
    if state["rank"] not in (None, facts["rank"]):
        other = "or use a DistributedSampler" if in_order else "or use in_order=True"
        msg = (
            f"load_state_dict: the state is of rank={state['rank']} and this is rank={facts['rank']}, but each "
            f"rank has its own order; save a state on each rank, {other}"
        )
        raise StateError(msg)


def _check_workers(loader: Any, state: Mapping[str, Any]) -> None:
    """Refuses another number of workers, if each of them has a part of the dataset's state.

    As in torchdata this is checked when the iterator starts, not when the state is loaded.

    Raises:
        ValueError: The numbers differ.
    """
    is_divided = (
        loader._dataset_kind == _DatasetKind.Iterable
        or is_stateful(loader.dataset)
        or state["dataset_state"] is not None
        or state["from_workers"]
    )
    saved, now = state["num_workers"] or 0, number_of(loader) or 0
    if is_divided and saved != now:
        msg = (
            f"load_state_dict: the state was saved with num_workers={saved} and this loader has num_workers={now}: which "
            "worker makes which batch depends on it; use the same number"
        )
        raise StateError(msg)


def _may_change_world(loader: Any) -> bool:
    """Returns true if an order does not depend on the number of ranks, and torch's own BatchSampler cuts it, if any."""
    order = resumable(loader._index_sampler, batched=loader._auto_collation)
    return order is not None and type(order.sampler) in (DistributedSampler, SequentialSampler)


def _out_of_order(state: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
    """Returns the first batch that is to come, and the later ones that were handed over.

    Raises:
        ValueError: The state counts other batches than those it says are to come.
    """
    to_come, count = state["to_come"], state["_num_yielded"]
    if to_come is None or state["is_coming"]:
        return (0 if state["is_coming"] else count), ()
    is_ascending = all(type(each) is int for each in to_come) and to_come == sorted(set(to_come))
    if not is_ascending or not to_come or to_come[-1] != count + len(to_come) - 1:
        msg = (
            f"load_state_dict: _num_yielded={count} is not the number of batches that were handed over when the "
            f"state was saved (to_come={to_come}), and with in_order=False a smaller number does not say which "
            "of them to make again; use in_order=True"
        )
        raise StateError(msg)
    left = set(to_come)
    return to_come[0], tuple(each for each in range(to_come[0], to_come[-1]) if each not in left)


def _place(
    loader: Any, state: Mapping[str, Any], facts: Mapping[str, Any], taken: int
) -> tuple[Start, int, tuple[int, int]]:
    """Returns where the order continues, the number of the next batch, and where these ranks began."""
    seed, epoch = state["sampler_seed"], state["sampler_epoch"]
    if state["is_coming"]:
        return Start(0, seed, None), 0, (0, 0)
    size = facts["batch_size"] or 1
    order = resumable(loader._index_sampler, batched=loader._auto_collation)
    sampler = None if order is None else order.sampler
    if not isinstance(sampler, DistributedSampler):
        return Start(taken * size, seed, epoch), taken, (0, 0)
    before, first = state["origin_batches"], state["origin_samples"]
    ranks = state["world_size"]
    theirs = copy.copy(sampler)
    theirs.num_replicas = ranks
    own = (distributed_total(theirs, len(sampler.dataset), first) - first) // ranks  # type: ignore[arg-type]
    skip = first + min((taken - before) * size, own) * ranks
    if ranks == facts["world_size"]:
        return Start(skip, seed, epoch), taken, (before, first)
    taken = skip // (size * facts["world_size"])
    return Start(skip, seed, epoch), taken, (taken, skip)
