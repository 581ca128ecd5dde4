"""What `Loader.state_dict` returns and `Loader.load_state_dict` takes.

Owns the layout of a state, and the comparison of a loaded one with the loader. A state has the same keys, with plain
values, on all ranks and at all times. Those that begin with an underscore are the ones that Accelerate reads and
changes; all others are covered by a checksum. Invariant: `state_dict` draws nothing and starts nothing.
"""

import base64
import copy
import json
import logging
import pickle
import sys
import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.dataloader import _DatasetKind

from fastload.batching import PlannedBatchSampler
from fastload.draws.generators import is_packed
from fastload.draws.sampler import Start, distributed_total, draw_seed
from fastload.machine.auto import Auto
from fastload.resume.cursor import Cursor, Draws, Restored, epoch_of, innermost, seed_from
from fastload.resume.stateful import state_of_dataset

__all__ = ["StateError", "restored", "state_of"]

_log = logging.getLogger("fastload")

_VERSION = 1
_CHANGED = ("_num_yielded", "_sampler_iter_yielded", "_index_sampler_state", "_iterator_finished")
"""What Accelerate changes."""
_LATER = (*_CHANGED, "workers", "next_worker", "sampler_state", "dataset_state", "checksum")
"""What the checksum does not cover."""


class StateError(ValueError, AssertionError):
    """A state that is not of this loader; torchdata raises an AssertionError there."""


def state_of(loader: Any, cursor: Cursor | None) -> dict[str, Any]:
    """Returns where a loader is, in plain values.

    Args:
        loader: The loader.
        cursor: That of the iterator that was started last; None where there was none.
    """
    if cursor is None or cursor.is_finished:
        known, taken = _coming(loader, cursor), 0 if cursor is None else cursor.taken
    else:
        known, taken = cursor.kept or _begun(loader, cursor), cursor.taken
    size = known["batch_size"]
    return {
        **known,
        "_num_yielded": taken,
        "_sampler_iter_yielded": taken,
        "_index_sampler_state": {"samples_yielded": taken * (size or 1)},
        "_iterator_finished": cursor is not None and cursor.is_finished,
        "workers": _workers(loader, cursor),
        "next_worker": _next_worker(loader, cursor),
        "sampler_state": None if cursor is None or known["is_coming"] else cursor.sampler_state(),
        "dataset_state": _datasets(loader, cursor, is_coming=known["is_coming"]),
    }


def _workers(loader: Any, cursor: Cursor | None) -> str | None:
    """Returns where the generators of workers are, as text; None where they have not drawn, or are gone."""
    if cursor is None or cursor.draws_from != "workers":
        return None
    if cursor.pack is not None and not cursor.is_finished:
        return _packed({0: cursor.pack()}, cursor.taken)
    if not cursor.workers and cursor.kept_at == cursor.taken:
        return None
    if cursor.is_finished and (loader._iterator is None or cursor.kept_at != cursor.taken):
        return None
    return _packed(cursor.workers, cursor.kept_at)


def _packed(workers: Mapping[int, bytes | None], at: int) -> str:
    streams = {
        str(worker): base64.b64encode(saved).decode()
        for worker, saved in sorted(workers.items())
        if saved is not None
    }
    return json.dumps({"at": at, "streams": streams})


def _next_worker(loader: Any, cursor: Cursor | None) -> int:
    """Returns the worker that makes the next batch of an iterable dataset."""
    if loader._dataset_kind == _DatasetKind.Map or loader.num_workers == 0:
        return 0
    if cursor is None or cursor.is_finished:
        return 0
    last = cursor.last_worker
    return cursor.next_worker if last is None else (last + 1) % int(loader.num_workers)


def _datasets(loader: Any, cursor: Cursor | None, *, is_coming: bool) -> dict[str, Any] | None:
    """Returns what datasets say of themselves, by the numbers of their workers; None where they say nothing."""
    fetcher = None if cursor is None else cursor.fetcher
    if fetcher is not None or (cursor is None and loader.num_workers == 0):
        state = state_of_dataset(loader.dataset, None if is_coming else fetcher)
        return None if state is None else {"0": copy.deepcopy(state)}
    if cursor is None or not cursor.datasets or (is_coming and loader._iterator is None):
        return None
    said = {str(each): pickle.loads(state) for each, state in sorted(cursor.datasets.items())}
    return (
        {each: {**state, "iterator": None, "ended": False} for each, state in said.items()}
        if is_coming
        else said
    )


def _begun(loader: Any, cursor: Cursor) -> dict[str, Any]:
    """Returns what a state says of an epoch that has begun, whatever was taken of it."""
    draws = cursor.draws
    known = _known(
        loader,
        is_coming=False,
        base_seed=cursor.base_seed,
        epoch=cursor.epoch,
        sampler_epoch=draws.epoch if draws.is_noted else epoch_of(draws.sampler),
        sampler_seed=draws.seed(),
        sampler_generator=_text(draws.state()),
        origin_batches=cursor.origin[0],
        origin_samples=cursor.origin[1],
        draws_from=cursor.draws_from,
    )
    if draws.is_noted:
        cursor.kept = known
    return known


def _coming(loader: Any, cursor: Cursor | None) -> dict[str, Any]:
    """Returns what a state says of an epoch that has not begun; its draws are looked at beforehand."""
    source = loader.generator or torch.default_generator
    ahead = torch.Generator()
    ahead.set_state(source.get_state())
    if cursor is not None and loader._iterator is not None:  # workers that persist keep their seed
        base_seed, epoch = cursor.base_seed, cursor.epoch + 1
    else:
        base_seed, epoch = draw_seed(ahead), 0
    after = ahead if source is torch.default_generator else torch.default_generator
    draws = Draws(loader._index_sampler, batched=loader._auto_collation)
    generator = None
    if draws.generator is not None:
        generator = draws.generator.get_state()
    elif draws.state() is not None:
        generator = after.get_state()
    return _known(
        loader,
        is_coming=True,
        base_seed=base_seed,
        epoch=epoch,
        sampler_epoch=draws.epoch,
        sampler_seed=seed_from(after) if draws.is_seed else None,
        sampler_generator=_text(generator),
        origin_batches=0,
        origin_samples=0,
        draws_from=None,
    )


def _known(loader: Any, **values: Any) -> dict[str, Any]:
    """Returns all of a state that does not change while an epoch runs, with its checksum."""
    known = {
        "version": _VERSION,
        **values,
        **_facts(loader),
        "num_workers": _number(loader),
        "snapshot_every_n_steps": int(loader.snapshot_every_n_steps or 0),
    }
    return {**known, "checksum": _checksum(known)}


def _number(loader: Any) -> int | None:
    """Returns the number of workers, as far as samples depend on it."""
    is_any = isinstance(loader.num_workers, Auto) and loader._dataset_kind == _DatasetKind.Map
    return None if is_any else int(loader.num_workers)


def _facts(loader: Any) -> dict[str, Any]:
    """Returns what has to be the same where a state is loaded."""
    index_sampler = loader._index_sampler
    is_batches = loader._auto_collation and type(index_sampler) is BatchSampler
    world, rank = _world(innermost(index_sampler))
    try:
        length = len(loader.dataset)
    except TypeError:  # an iterable dataset has none
        length = None
    return {
        "batch_size": index_sampler.batch_size if is_batches else loader.batch_size,
        "drop_last": bool(index_sampler.drop_last if is_batches else loader.drop_last),
        "length": length,
        "sampler": _described(innermost(index_sampler)),
        "world_size": world,
        "rank": rank,
    }


def _world(sampler: Any) -> tuple[int, int | None]:
    """Returns for how many ranks a sampler is, and of which one its order is; None where all have the same."""
    if isinstance(sampler, DistributedSampler):
        return int(sampler.num_replicas), None
    if isinstance(sampler, PlannedBatchSampler):
        return sampler._world.part().world, None
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1, None
    world = distributed.get_world_size()
    is_own = world > 1 and isinstance(
        sampler, RandomSampler | SubsetRandomSampler | WeightedRandomSampler
    )
    return world, distributed.get_rank() if is_own else None


def _described(sampler: Any) -> str:
    """Returns the class of a sampler, with what decides on its order."""
    options: dict[str, Any] = {}
    if isinstance(sampler, RandomSampler):
        options = {"replacement": sampler.replacement, "num_samples": sampler._num_samples}
    elif isinstance(sampler, DistributedSampler):
        names = ("shuffle", "seed", "drop_last")
        options = {name: getattr(sampler, name, None) for name in names}
    elif isinstance(sampler, WeightedRandomSampler):
        weights = zlib.crc32(sampler.weights.contiguous().numpy().data)
        options = {
            "weights": f"{weights:08x}",
            "num_samples": sampler.num_samples,
            "replacement": sampler.replacement,
        }
    elif isinstance(sampler, SubsetRandomSampler):
        options = {"indices": len(sampler.indices)}
    elif isinstance(sampler, PlannedBatchSampler):
        plain = {name: value for name, value in vars(sampler).items() if name[0] != "_"}
        options = {**plain, "drop_last": sampler._drop_last}
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{type(sampler).__qualname__}({words})"


def restored(loader: Any, state: Any) -> Restored | None:
    """Returns where the next iterator begins; None for an epoch as it comes.

    Args:
        loader: The loader.
        state: What `state_dict` returned, of this loader or of one that is made alike.

    Raises:
        TypeError: No mapping.
        ValueError: A state of another loader, of another version, or one that was changed.
    """
    if not isinstance(state, Mapping):
        msg = f"load_state_dict takes what state_dict returned, found {type(state).__qualname__}"
        raise TypeError(msg)
    if not state:
        return None
    _check_layout(state)
    facts = _facts(loader)
    _compare(state, facts | {"num_workers": _number(loader)})
    if state["checksum"] != _checksum(state):
        msg = "load_state_dict: the state was changed after it was saved; its checksum is another"
        raise StateError(msg)
    if not state["is_coming"] and (state["_iterator_finished"] or _is_ended(loader, state)):
        return None
    if not (loader.in_order or state["is_coming"]):
        msg = (
            "load_state_dict: with in_order=False a state says how many batches came, and not which; leave in_order "
            "at True for runs that are to be resumed, or begin with a new epoch"
        )
        raise StateError(msg)
    wanted = taken = 0 if state["is_coming"] else state["_num_yielded"]
    workers: dict[int, bytes] = {}
    number = _kept_workers(state)
    if number and number == _number(loader):
        workers, at = _unpacked(state["workers"])
        taken = min(at, taken)
    if taken and loader._dataset_kind == _DatasetKind.Iterable and state["dataset_state"] is None:
        _log.warning(
            "resuming: %d batches are read again, for neither the dataset nor its iterator has state_dict and "
            "load_state_dict",
            taken,
        )
        workers, taken = {}, 0
    dropped = wanted - taken
    start, taken, origin = _place(loader, state, facts, taken)
    return Restored(
        is_coming=state["is_coming"],
        base_seed=state["base_seed"],
        epoch=state["epoch"],
        taken=taken,
        start=start,
        origin=origin,
        sampler_epoch=state["sampler_epoch"],
        generator=_generator(state["sampler_generator"]),
        sampler_state=copy.deepcopy(state["sampler_state"]),
        workers=workers,
        datasets={
            int(worker): pickle.dumps(said)
            for worker, said in (state["dataset_state"] or {}).items()
        },
        next_worker=_first_worker(loader, state, taken),
        to_drop=dropped,
        draws_from=state["draws_from"],
        number=number,
    )


def _is_ended(loader: Any, state: Mapping[str, Any]) -> bool:
    """Returns whether nothing is left of an epoch for Lightning, which goes on with the next one then.

    It asks for no batch beyond the length, so that its iterators never say that they are at their end. Whoever
    else loads such a state is given the empty rest of the epoch.
    """
    frame: Any = sys._getframe(1)
    names = ("lightning.pytorch.", "pytorch_lightning.")
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(names):
        frame = frame.f_back
    if frame is None:
        return False
    try:
        return bool(state["_num_yielded"] >= len(loader))
    except TypeError:  # it has no length
        return False


def _first_worker(loader: Any, state: Mapping[str, Any], taken: int) -> int:
    """Returns the worker that makes the next batch."""
    if loader._dataset_kind == _DatasetKind.Iterable:
        return int(state["next_worker"]) if taken else 0
    return taken % max(1, int(loader.num_workers))


def _kept_workers(state: Mapping[str, Any]) -> int:
    """Returns how many workers kept their generators."""
    return int(state["num_workers"] or 0) if state["snapshot_every_n_steps"] else 0


def _check_layout(state: Mapping[str, Any]) -> None:
    """Refuses what is no state of this version."""
    version = state.get("version")
    if version is None and not {"_snapshot", "fetcher_state"}.isdisjoint(state):
        msg = (
            "load_state_dict: this is a state of torchdata's StatefulDataLoader, which does not say what the "
            "order was drawn from; begin with a new epoch"
        )
        raise StateError(msg)
    if type(version) is not int or version != _VERSION:
        msg = (
            f"load_state_dict: the state has version {version!r}, and this fastload reads version "
            f"{_VERSION}; load it with the version that saved it, and begin with a new epoch here"
        )
        raise StateError(msg)
    missing = sorted(_KEYS.keys() - state.keys())
    if missing:
        msg = f"load_state_dict: the state has no {', '.join(map(repr, missing))}"
        raise StateError(msg)
    for name, kinds in _KEYS.items():
        if not isinstance(state[name], kinds) or (type(state[name]) is bool and bool not in kinds):
            msg = f"load_state_dict: {name}={state[name]!r} is no value that state_dict gives it"
            raise StateError(msg)
    if state["_num_yielded"] < 0:
        msg = f"load_state_dict: _num_yielded={state['_num_yielded']} is less than 0"
        raise StateError(msg)


_NONE = type(None)
_KEYS: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "is_coming": (bool,),
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
    "sampler_state": (object,),
    "dataset_state": (Mapping, _NONE),
    "workers": (str, _NONE),
    "next_worker": (int,),
    "checksum": (int,),
    "_num_yielded": (int,),
    "_sampler_iter_yielded": (int,),
    "_index_sampler_state": (Mapping,),
    "_iterator_finished": (bool,),
}


def _compare(state: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
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
    is_own = facts["length"] is None or state["dataset_state"] is not None
    number = state["num_workers"] or 0
    if is_own and number != (facts["num_workers"] or 0):
        msg = (
            f"load_state_dict: the state was saved with num_workers={number}, each with a part of the dataset's state, "
            f"and this loader has num_workers={facts['num_workers'] or 0}; use the same number"
        )
        raise StateError(msg)
    if state["is_coming"]:
        return
    if state["world_size"] != facts["world_size"] and not _may_change_world(facts["sampler"]):
        msg = (
            f"load_state_dict: the state was saved with world_size={state['world_size']}, and there are now "
            f"world_size={facts['world_size']} ranks; {facts['sampler'].partition('(')[0]} deals its samples out "
            "anew for each number of ranks: use the same number, or begin with a new epoch"
        )
        raise StateError(msg)
    if state["rank"] != facts["rank"]:
        msg = (
            f"load_state_dict: the state is that of rank={state['rank']}, whose order is its own, and this is "
            f"rank={facts['rank']}; save a state on each rank, or use a DistributedSampler"
        )
        raise StateError(msg)


def _may_change_world(sampler: str) -> bool:
    """Returns whether an order does not depend on the number of ranks."""
    return sampler.startswith(("DistributedSampler(", "SequentialSampler("))


def _place(
    loader: Any, state: Mapping[str, Any], facts: Mapping[str, Any], taken: int
) -> tuple[Start, int, tuple[int, int]]:
    """Returns where the order continues, the number of the next batch, and where these ranks began."""
    seed, epoch = state["sampler_seed"], state["sampler_epoch"]
    if state["is_coming"]:
        return Start(0, seed, None), 0, (0, 0)
    size = facts["batch_size"] or 1
    sampler = innermost(loader._index_sampler)
    if not isinstance(sampler, DistributedSampler):
        return Start(taken * size, seed, epoch), taken, (0, 0)
    before, first = state["origin_batches"], state["origin_samples"]
    ranks = state["world_size"]
    theirs = copy.copy(sampler)
    theirs.num_replicas = ranks
    own = (distributed_total(theirs, facts["length"], first) - first) // ranks
    skip = first + min((taken - before) * size, own) * ranks
    if ranks == facts["world_size"]:
        return Start(skip, seed, epoch), taken, (before, first)
    taken = skip // (size * facts["world_size"])
    return Start(skip, seed, epoch), taken, (taken, skip)


def _checksum(state: Mapping[str, Any]) -> int:
    covered = {name: value for name, value in state.items() if name not in _LATER}
    return zlib.crc32(json.dumps(covered, sort_keys=True).encode())


def _text(generator: torch.Tensor | None) -> str | None:
    """Returns the state of a generator as text."""
    if generator is None:
        return None
    return base64.b64encode(zlib.compress(generator.numpy().tobytes(), 1)).decode()


def _generator(text: str | None) -> torch.Tensor | None:
    if text is None:
        return None
    return torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(text))), dtype=torch.uint8)


def _unpacked(text: str | None) -> tuple[dict[int, bytes], int]:
    """Returns the generators of workers, and after how many batches they were kept."""
    if text is None:
        return {}, sys.maxsize
    try:
        kept = json.loads(text)
        streams = {int(worker): base64.b64decode(each) for worker, each in kept["streams"].items()}
        at = int(kept["at"])
    except (KeyError, TypeError, ValueError):
        streams, at = {0: b""}, 0
    if at < 0 or not all(map(is_packed, streams.values())):
        msg = (
            "load_state_dict: the state was changed after it was saved: workers says no generators"
        )
        raise StateError(msg)
    return streams, at
