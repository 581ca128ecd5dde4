"""The states that `Loader.state_dict` returns.

Owns the layout of a state: the same keys, with plain values, on all ranks and at all times. Those that begin with an underscore are the ones that
Accelerate reads and changes. Invariant: nothing is drawn and nothing is started.
"""

import copy
import pickle
from typing import Any

import torch
from torch.utils.data.dataloader import _DatasetKind

from fastload.batching.device_mesh import base_seed_of
from fastload.batching.layers import layers
from fastload.batching.planned import draw_seed
from fastload.resume.cursor import Cursor, Draws, epoch_of, own_generator, seed_from
from fastload.resume.facts import VERSION, checksum, facts_of, number_of
from fastload.resume.restored import pack, text_of
from fastload.resume.stateful import boxed, of_next_epoch, starts_anew, state_of_dataset

__all__ = ["state_of"]


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
    of_sampler = None if cursor is None else cursor.sampler_state()
    return {
        **known,
        "_num_yielded": taken,
        "_sampler_iter_yielded": taken,
        # Accelerate multiplies by the batch size where it finds the samples
        "_index_sampler_state": {}
        if loader.batch_size is None
        else {"samples_yielded": taken * (size or 1)},
        "_iterator_finished": cursor is not None and cursor.is_finished,
        "to_come": _to_come(loader, cursor, is_coming=known["is_coming"]),
        "from_workers": [] if cursor is None or known["is_coming"] else list(cursor.from_workers),
        "bad_samples": _bad_samples(loader, is_coming=known["is_coming"]),
        "workers": _workers(loader, cursor),
        "next_worker": _next_worker(loader, cursor),
        "loader_generator": _loader_generator(loader),
        "sampler_state": boxed(of_sampler),
        "dataset_state": boxed(_datasets(loader, cursor, is_coming=known["is_coming"])),
    }


def _loader_generator(loader: Any) -> str | None:
    """Returns the state of the loader's own generator, as text; None where `sampler_generator` leads to it."""
    generator = loader.generator
    if generator is None or generator is torch.default_generator:
        return None
    if generator is own_generator(layers(loader._index_sampler)):
        return None
    return text_of(generator.get_state())


def _bad_samples(loader: Any, *, is_coming: bool) -> list[list[int | None]]:
    """Returns the indices of the first bad samples of the epoch, and the sizes of their files."""
    ledger = loader._ledger
    return [] if ledger is None or is_coming else [list(each) for each in ledger.sizes]


def _to_come(loader: Any, cursor: Cursor | None, *, is_coming: bool) -> list[int] | None:
    """Returns the batches that others have overtaken, and behind them the first that none has; None in order."""
    to_come = [0] if cursor is None or is_coming else cursor.to_come()
    return None if loader.in_order and len(to_come) == 1 else to_come


def _workers(loader: Any, cursor: Cursor | None) -> str | None:
    """Returns the states of the workers' generators, as text; None where they have not drawn, or are gone."""
    if cursor is None or cursor.draws_from != "workers":
        return None
    if cursor.pack is not None and not cursor.is_finished:
        return pack({0: cursor.pack()}, cursor.taken, cursor.texts)
    if not cursor.workers and cursor.kept_at == cursor.taken:
        return None
    if cursor.is_finished and (loader._iterator is None or cursor.kept_at != cursor.taken):
        return None
    return pack(cursor.workers, cursor.kept_at, cursor.texts)


def _next_worker(loader: Any, cursor: Cursor | None) -> int:
    """Returns the worker that makes the next batch of an iterable dataset."""
    if loader._dataset_kind == _DatasetKind.Map or loader.num_workers == 0:
        return 0
    if cursor is None or cursor.is_finished:
        return 0
    last = cursor.last_worker
    return cursor.next_worker if last is None else (last + 1) % int(loader.num_workers)


def _datasets(loader: Any, cursor: Cursor | None, *, is_coming: bool) -> dict[str, Any] | None:
    """Returns the states of datasets, by the numbers of their workers; None where they have none."""
    if is_coming and starts_anew(loader.dataset):
        return None
    fetcher = None if cursor is None else cursor.fetcher
    is_loaded = cursor is not None and bool(cursor.datasets) and cursor.taken == cursor.before
    if is_loaded and not is_coming:  # what one says that has not gone on may be older
        fetcher = None
    if fetcher is not None or (cursor is None and loader.num_workers == 0):
        state = state_of_dataset(loader.dataset, None if is_coming else fetcher)
        return None if state is None else {"0": copy.deepcopy(state)}
    if cursor is None or not cursor.datasets or (is_coming and loader._iterator is None):
        return None
    said = {str(each): pickle.loads(state) for each, state in sorted(cursor.datasets.items())}
    return {each: of_next_epoch(state) for each, state in said.items()} if is_coming else said


def _begun(loader: Any, cursor: Cursor) -> dict[str, Any]:
    """Returns the entries of a state for an epoch that has begun, whatever was taken of it."""
    draws = cursor.draws
    known = _known(
        loader,
        is_coming=False,
        is_drawn=draws.is_drawn,
        base_seed=cursor.base_seed,
        epoch=cursor.epoch,
        sampler_epoch=draws.epoch if draws.is_noted else epoch_of(draws.follows),
        sampler_seed=draws.seed(),
        sampler_generator=text_of(draws.state()),
        origin_batches=cursor.origin[0],
        origin_samples=cursor.origin[1],
        draws_from=cursor.draws_from,
    )
    if draws.is_drawn:
        cursor.kept = known
    return known


def _coming(loader: Any, cursor: Cursor | None) -> dict[str, Any]:
    """Returns the entries of a state for an epoch that has not begun; its draws are made beforehand on a copy."""
    source = loader.generator or torch.default_generator
    ahead = torch.Generator(source.device)
    ahead.set_state(source.get_state())
    if cursor is not None and loader._iterator is not None:  # workers that persist keep their seed
        base_seed, epoch = cursor.base_seed, cursor.epoch + 1
    else:
        drawn, agreed, epoch = draw_seed(ahead), base_seed_of(loader), 0
        base_seed = drawn if agreed is None else agreed
    after = ahead if source is torch.default_generator else torch.default_generator
    draws = Draws(loader._index_sampler, batched=loader._auto_collation)
    seed = generator = None
    if draws.is_seed:
        seed = draw_seed(after) if after is ahead else seed_from(after)
    elif draws.generator is not None:
        generator = draws.generator.get_state()
    elif draws.state() is not None and not (cursor is not None and cursor.draws.is_eager):
        generator = after.get_state()
    return _known(
        loader,
        is_coming=True,
        is_drawn=False,
        base_seed=base_seed,
        epoch=epoch,
        sampler_epoch=draws.epoch,
        sampler_seed=seed,
        sampler_generator=text_of(generator),
        origin_batches=0,
        origin_samples=0,
        draws_from=None,
    )


def _known(loader: Any, *, is_coming: bool, **values: Any) -> dict[str, Any]:
    """Returns all of a state that does not change while an epoch runs, with its checksum."""
    known = {
        "version": VERSION,
        "is_coming": is_coming,
        **values,
        **facts_of(loader, is_coming=is_coming),
        "num_workers": number_of(loader),
        "snapshot_every_n_steps": int(loader.snapshot_every_n_steps or 0),
    }
    return {**known, "checksum": checksum(known)}
