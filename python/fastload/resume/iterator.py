"""`Resumable`: one of torch's iterators, with a cursor.

Owns what all lanes share when they resume: the seed, the sampler, and the warning where random numbers will differ.
"""

import logging
import pickle
from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd import profiler
from torch.utils.data import Dataset
from torch.utils.data._utils import pin_memory
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _SingleProcessDataLoaderIter,
)

from fastload import _lib
from fastload.batching import PlannedBatchSampler
from fastload.batching.device_mesh import base_seed_of
from fastload.batching.layers import layers
from fastload.batching.planned import draw_seed
from fastload.batching.sample_mask import repeats_of
from fastload.draws import keyed
from fastload.draws.sampler import picks_batches, resumable
from fastload.machine.auto import is_auto
from fastload.resume.cursor import Cursor, Draws, own_generator
from fastload.resume.pulls import Pulls
from fastload.resume.restored import Restored
from fastload.resume.stateful import load_dataset, load_iterator, start_anew

__all__ = ["InlineIter", "Resumable"]

_log = logging.getLogger("fastload")

_SOURCES = {
    "keys": "keys of their own (num_workers=AUTO)",
    "workers": "the generators of their workers",
    "caller": "the generators of the process that iterates",
}


class Resumable(_lib.WholeSteps, _BaseDataLoaderIter):
    """One of torch's iterators, with a cursor, whose steps Ctrl-C does not divide.

    Before torch's `__init__`, `_restored` says where its first epoch begins, and `_replaced` has the last epoch of a
    persistent iterator that it takes the place of. Torch sets two attributes that are properties here: the iterator of
    the sampler, where an epoch begins, and the seed, once it is drawn.
    """

    _restored: Restored | None = None
    _replaced: Cursor | None = None
    _cursor: Cursor
    _pulls: Any
    _generator: tuple[torch.Generator, torch.Tensor] | None = None
    _is_first = False
    _draws_from = "keys"
    _rewinds = False
    _makes_again = True
    """Whether batches behind the generators that a state holds are made again and dropped."""
    _of_epochs = frozenset(("_cursor", "_pulls", "_seed", "_generator", "_unopened"))
    _leaves_out = True

    def _continue(self, loader: Any) -> None:
        """Has the first epoch begin where the state says that a loader was given; before torch's `__init__`."""
        start_anew(loader.dataset)
        self._is_iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._to_drop = 0
        self._repeats = repeats_of(loader.batch_sampler) if loader.sample_mask else None
        self._agreed_seed = None if loader.mesh is None else base_seed_of(loader)
        restored = loader._restored
        if restored is not None and restored.unrepeated is not None and not self._makes_again:
            restored = restored.unrepeated
        self._restored = restored
        if restored is not None:
            self._compare(restored, loader)
            self._to_drop = restored.to_drop
            generator = loader.generator or torch.default_generator
            own = own_generator(layers(loader._index_sampler))
            if restored.is_coming and restored.generator is not None and own is not None:
                own.set_state(restored.generator)  # from which `base_seed` may be drawn, too
            kept = None if loader.generator is None else restored.loader_generator
            if not restored.is_coming or restored.epoch:  # an iterator that persists draws it once
                self._generator = generator, generator.get_state() if kept is None else kept
            elif kept is not None:
                generator.set_state(kept)  # from which `base_seed` is drawn
        self._replaced = loader._replaced
        if self._replaced is not None:  # torch's would persist, and draw no other seed
            generator = loader.generator or torch.default_generator
            self._generator = generator, generator.get_state()
        self._unopened = self._before_draws(loader)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        # torch iterates the sampler, and seeds a datapipe, twice with workers, and once without: so once under AUTO
        opened = vars(self).get("_pulls") if first_iter and is_auto(loader) else None
        self._is_first = first_iter
        if opened is None:
            self._unopened = self._before_draws(loader)
            super()._reset(loader, first_iter)
        elif self._num_workers:  # else torch does nothing more
            sampler, self._index_sampler = self._index_sampler, opened
            dataset, self._dataset = self._dataset, Dataset()
            super()._reset(loader, first_iter)
            self._index_sampler, self._dataset = sampler, dataset
        self._is_first = False
        self._num_yielded = self._cursor.taken
        self._restored = None

    def _before_draws(self, of: Any) -> torch.Tensor | None:
        """Returns the state of the generator of a sampler that may draw when its iterator is made.

        Args:
            of: The loader, or an iterator of it.
        """
        sampler = of._index_sampler
        if picks_batches(sampler) or isinstance(sampler, PlannedBatchSampler):
            return None
        if self._is_iterable or resumable(sampler, batched=of._auto_collation) is not None:
            return None
        return (own_generator(layers(sampler)) or torch.default_generator).get_state()

    def shared(self) -> dict[str, Any]:
        """Returns the attributes that do not differ between epochs, for `_share`; called before the first batch."""
        return vars(self) | dict.fromkeys(self._of_epochs)

    def _share(self, shared: dict[str, Any], loader: Any) -> None:
        """Replaces torch's `__init__` and `_reset`, for a loader that has not changed since another iterator was made.

        Of a map-style dataset that is no data pipe, where no state and no seed that ranks agree on is to be met.
        """
        vars(self).update(shared)
        self._unopened = self._before_draws(self)
        self._open(iter(self._index_sampler))
        self._seed = self._cursor.base_seed = draw_seed(loader.generator)

    def _saved_here(self) -> Any:
        """Returns the state from which a dataset continues whose samples this process makes."""
        saved = None if self._restored is None else self._restored.datasets.get(0)
        return None if saved is None else pickle.loads(saved)

    def _compare(self, restored: Restored, loader: Any) -> None:
        """Logs the differences from the run that the state was saved in."""
        if restored.to_drop and self._is_iterable:
            _log.warning(
                "resuming: %d batches are read again, for neither the dataset nor its iterator has state_dict "
                "and load_state_dict",
                restored.to_drop,
            )
        if restored.handed_over == 0 or restored.draws_from is None:
            return
        if restored.draws_from != self._draws_from:
            _log.warning(
                "resuming: samples drew from %s, and draw from %s now: random numbers will differ",
                _SOURCES[restored.draws_from],
                _SOURCES[self._draws_from],
            )
        elif self._draws_from == "workers" and restored.number != loader.num_workers:
            _log.warning(
                "resuming: the generators of the workers are seeded again: %s",
                f"there were {restored.number} workers, and are {int(loader.num_workers)}"
                if restored.number
                else "they were not kept (snapshot_every_n_steps=0)",
            )

    @property
    def _sampler_iter(self) -> Any:
        return self._pulls

    @_sampler_iter.setter
    def _sampler_iter(self, iterator: Iterator[Any]) -> None:
        if iterator is not vars(self).get("_pulls"):
            self._open(iterator)

    def _open(self, iterator: Iterator[Any]) -> None:
        """Takes the iterator of the sampler for an epoch."""
        restored = self._restored
        if not self._is_first:  # torch sets it twice before the first epoch
            self._begin_cursor()
        if restored is None or restored.is_coming:
            self._cursor.draws.opened(self._unopened)
        elif self._unopened is not None:  # its draws are made again, from where they were made
            source = self._cursor.draws.generator or torch.default_generator
            source.set_state(self._unopened)
        if self._is_iterable:
            self._pulls = iterator  # torch's endless one, which has no position
            self._cursor.draws.is_noted = self._cursor.draws.is_drawn = True
            return
        self._pulls = Pulls(
            self._index_sampler,
            iterator,
            self._cursor,
            restored,
            batched=self._auto_collation,
            repeats=self._repeats,
            leaves_out=self._leaves_out,
        )

    def _leave_out_taken(self) -> None:
        """Goes on behind the batches that were taken behind a snapshot; those of an iterable dataset are made again."""
        if self._to_drop and not self._is_iterable:
            self._pulls.leave_out(self._to_drop)
            self._to_drop = 0

    def _begin_cursor(self) -> None:
        draws = Draws(self._index_sampler, batched=self._auto_collation)
        cursor = Cursor(draws, self._restored, self._draws_from)
        cursor.base_seed = vars(self).get("_seed", cursor.base_seed)
        if self._replaced is not None:
            cursor.epoch = self._replaced.epoch + 1
        cursor.rewinds = self._rewinds
        self._cursor = cursor

    @property
    def _base_seed(self) -> int:
        return self._seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        restored = self._restored
        if self._agreed_seed is not None and (restored is None or restored.is_coming):
            drawn = self._agreed_seed
        elif restored is not None:
            drawn = restored.base_seed
        elif self._replaced is not None:
            drawn = self._replaced.base_seed
        if self._generator is not None:
            generator, state = self._generator
            generator.set_state(state)
            self._generator = None
        self._replaced = None
        self._seed = self._cursor.base_seed = drawn
        self._seeded()

    def _next_index(self) -> Any:
        """Returns the next indices, as torch does, which looks at a property of the loader first."""
        return next(self._pulls)

    def _step(self) -> Any:
        """Returns the next batch, as torch does; skips torch's code for profilers, which costs 3 µs, while none runs."""
        is_counted = self._IterableDataset_len_called is not None
        if is_counted or self._pulls is None or profiler._is_profiler_enabled:
            return _BaseDataLoaderIter.__next__(self)
        batch: Any = self._next_data()
        self._num_yielded += 1
        return batch

    def _seeded(self) -> None:
        """Called when the seed is drawn, before the dataset is iterated."""


class InlineIter(Resumable, _SingleProcessDataLoaderIter):
    """Torch's iterator in the thread that asks, with a cursor.

    Args:
        loader: The loader.
    """

    _draws_from = "caller"
    _makes_again = False
    _pending: tuple[Any] | None = None
    """The indices of a batch that Ctrl-C stopped."""

    def __init__(self, loader: Any) -> None:
        self._continue(loader)
        saved = self._saved_here()
        if self._restored is not None and self._restored.is_coming:
            load_dataset(loader.dataset, saved)
        super().__init__(loader)
        load_iterator(self._dataset_fetcher, self._dataset, saved)
        self._cursor.ask(self._dataset, self._dataset_fetcher)
        self._leave_out_taken()
        self._num_yielded = self._cursor.taken

    def _seeded(self) -> None:
        """Loads the dataset of an epoch that has begun: it may set the generator from which the seed was drawn."""
        if self._restored is not None and not self._restored.is_coming:
            load_dataset(self._dataset, self._saved_here())

    def _next_data(self) -> Any:
        try:
            while self._to_drop > 0:
                self._to_drop -= 1
                with keyed.borrowed():  # the caller has put the generators where the run had them
                    self._made()
            batch = self._made()
        except StopIteration:
            self._cursor.is_finished = True
            raise
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._cursor.taken += 1  # an error takes the place of its batch
            raise
        self._cursor.taken += 1
        return batch

    def _made(self) -> Any:
        """Makes the next batch; one that Ctrl-C stops is made at the next call."""
        pending, self._pending = self._pending or (self._next_index(),), None
        try:
            batch = _lib.interruptibly(self._dataset_fetcher.fetch, *pending)
        except KeyboardInterrupt:
            self._pending = pending
            raise
        if self._pin_memory:
            batch = pin_memory.pin_memory(batch, self._pin_memory_device)  # type: ignore[no-untyped-call]
        return batch
