"""`Cursor`: where an iterator is in its epoch, and what the epoch's order was drawn from.

Owns what `Loader.state_dict` tells of an iterator, and how an iterator of any lane continues from there. The cursor
counts batches that were taken, not those that were asked for ahead. What the sampler draws from is noted right
before its first draw. Invariant: neither noting nor continuing moves a global generator.
"""

import contextlib
import copy
import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _InfiniteConstantSampler,
    _SingleProcessDataLoaderIter,
)

from fastload.batching import PlannedBatchSampler
from fastload.draws.keyed import count_of
from fastload.draws.sampler import Order, Start, draw_seed, picks_batches, resumable
from fastload.resume.stateful import is_stateful, load_dataset, load_iterator

__all__ = ["Cursor", "Draws", "InlineIter", "Pulls", "Restored", "Resumable", "innermost"]


_log = logging.getLogger("fastload")


class Restored(NamedTuple):
    """Where the next iterator begins, as a state says.

    Attributes:
        is_coming: Whether the epoch has not begun; its draws are then made anew, with the values of the state.
        base_seed: That of the iterator.
        epoch: Of the iterator.
        taken: Batches before.
        start: Where the order of one of torch's samplers continues.
        origin: Batches and samples before the first one that this number of ranks took.
        sampler_epoch: The epoch of the sampler; None if it has none.
        generator: The state of the generator that the order is drawn from; None if there is none.
        sampler_state: What the sampler's own `state_dict` gave; None if it has none.
        workers: The generators of the workers, by their numbers.
        datasets: What the datasets of workers say, pickled, by the numbers of the workers.
        next_worker: The one that makes the next batch.
        to_drop: Batches that are made again and dropped, from where the generators were kept.
        draws_from: What samples drew from: "keys", "workers" or "caller"; None if none was made.
        number: Of workers whose generators these are; 0 where they were not kept.
    """

    is_coming: bool
    base_seed: int
    epoch: int
    taken: int
    start: Start
    origin: tuple[int, int]
    sampler_epoch: int | None
    generator: torch.Tensor | None
    sampler_state: Any
    workers: dict[int, bytes]
    datasets: dict[int, bytes]
    next_worker: int
    to_drop: int
    draws_from: str | None
    number: int


class Draws:
    """What the order of one epoch is drawn from.

    Args:
        index_sampler: What a loader iterates.
        batched: Whether it gives lists of indices.

    Attributes:
        order: The order, if it is that of torch's own samplers.
        sampler: The sampler that decides on it.
        generator: The sampler's own generator; None if it has none.
        epoch: The sampler's epoch when the order began; None if it has none.
        is_noted: Whether the order has begun.
    """

    def __init__(self, index_sampler: Any, *, batched: bool) -> None:
        self.order = resumable(index_sampler, batched=batched)
        self.sampler = innermost(index_sampler)
        self.generator = own_generator(self.sampler)
        self.epoch = epoch_of(self.sampler)
        self.is_noted = False
        self._state: torch.Tensor | None = None
        self._seed: int | None = None
        self._may_draw = not (
            isinstance(
                self.sampler, PlannedBatchSampler | _InfiniteConstantSampler | list | tuple | range
            )
            or (
                self.order is not None
                and type(self.sampler) in (DistributedSampler, SequentialSampler)
            )
        )

    @property
    def is_seed(self) -> bool:
        """Whether all that is drawn from a generator of others is one seed."""
        return self.order is not None and is_seed(self.sampler)

    def note(self) -> None:
        """Notes what the order is drawn from; called right before the first draw."""
        self.epoch, self.is_noted = epoch_of(self.sampler), True
        if self._may_draw and self._state is None and self._seed is None:
            self._state = (self.generator or torch.default_generator).get_state()

    def settle(self) -> None:
        """Forgets what was noted of a sampler that did not draw from the global generator."""
        if self._state is None or self.generator is not None or self.order is not None:
            return
        if torch.equal(self._state, torch.default_generator.get_state()):
            self._state = None

    def put(self, restored: Restored) -> None:
        """Takes what a state says in place of what would be noted."""
        self._seed = restored.start.seed
        if not restored.is_coming:
            self._may_draw, self.is_noted = False, True
            self.epoch = restored.sampler_epoch
        if not restored.is_coming or self.generator is None:
            self._state = restored.generator

    def seed(self) -> int | None:
        """Returns the seed that was drawn, if one was."""
        if self._seed is not None or not self.is_seed:
            return self._seed
        if self._state is None:
            return seed_from(torch.default_generator)
        self._seed = seed_from(self._state)
        return self._seed

    def state(self) -> torch.Tensor | None:
        """Returns the generator's state before the first draw; None where nothing or a seed was drawn."""
        if self.is_seed:
            return None
        if self._state is None and self._may_draw and not self.is_noted:
            return (self.generator or torch.default_generator).get_state()
        return self._state


def innermost(index_sampler: Any) -> Any:
    """Returns the sampler that decides on the order: the one in a batch sampler, and in samplers around it."""
    sampler = index_sampler
    for _ in range(4):
        if isinstance(sampler, PlannedBatchSampler):
            break
        inner = getattr(sampler, "batch_sampler", None)
        inner = getattr(sampler, "sampler", None) if inner is None else inner
        if inner is None:
            break
        sampler = inner
    return sampler


def own_generator(sampler: Any) -> torch.Generator | None:
    """Returns a sampler's own generator."""
    generator = getattr(sampler, "generator", None)
    return generator if isinstance(generator, torch.Generator) else None


def is_seed(sampler: Any) -> bool:
    """Returns whether a sampler draws one seed from the global generator, and no more."""
    return type(sampler) is RandomSampler and sampler.generator is None


def epoch_of(sampler: Any) -> int | None:
    """Returns the epoch that a sampler was told of; None if it takes none."""
    if not hasattr(sampler, "set_epoch"):
        return None
    epoch = getattr(sampler, "epoch", None)
    return epoch if isinstance(epoch, int) else None


def seed_from(source: torch.Generator | torch.Tensor) -> int:
    """Returns the seed that is drawn next from a generator, or from its state; it is left as it is."""
    state = source.get_state() if isinstance(source, torch.Generator) else source
    scratch = torch.Generator()
    scratch.set_state(state)
    return draw_seed(scratch)


class Cursor:
    """Where an iterator is.

    Args:
        draws: What its epoch's order is drawn from.
        restored: Where it continues; None at the start of an epoch.

    Attributes:
        draws: The same.
        base_seed: The iterator's.
        epoch: How often it was reset.
        first: Batches before its first.
        place: Samples before its first.
        taken: Batches of the epoch that were handed over, or failed, with those before its first.
        is_finished: Whether it has said that the epoch is over.
        origin: Batches and samples before the first one that this number of ranks took.
        draws_from: What samples draw from: "keys", "workers" or "caller".
        workers: The generators of workers that have drawn, after `kept_at` batches, by their numbers.
        datasets: What the datasets of workers said then, pickled.
        kept_at: The same.
        next_worker: The worker that makes the first batch.
        last_worker: The one that made the batch that was taken last; None if none did.
        said: What a sampler with a state says before the first batch is asked for.
        pack: Returns the generators of an iterable dataset that this process iterates.
        fetcher: What makes the samples, if that is done by the process that iterates.
        pulled: What a sampler with a state said before and after each batch that was asked for, and not taken before `pulled_from`.
        kept: What `state_dict` need not find out again.
    """

    def __init__(self, draws: Draws, restored: Restored | None, draws_from: str) -> None:
        self.draws = draws
        self.draws_from = draws_from
        self.base_seed = 0
        self.epoch = 0
        self.taken = self.first = 0
        self.place = 0
        self.is_finished = False
        self.origin = (0, 0)
        self.workers: dict[int, bytes] = {}
        self.datasets: dict[int, bytes] = {}
        self.kept_at = self.next_worker = 0
        self.last_worker: int | None = None
        self.fetcher: Any = None
        self.pulled: deque[Any] = deque()
        self.pulled_from = 0
        self.said: Any = None
        self.pack: Callable[[], bytes | None] | None = None
        self.kept: dict[str, Any] | None = None
        if restored is not None:
            draws.put(restored)
            self.base_seed, self.epoch = restored.base_seed, restored.epoch
            self.first = self.kept_at = restored.taken
            self.taken = restored.taken + restored.to_drop
            self.origin = restored.origin
            self.workers, self.datasets = dict(restored.workers), dict(restored.datasets)
            self.next_worker = restored.next_worker
            self.pulled_from = restored.taken
            self.said = restored.sampler_state
            order = draws.order
            if order is not None:
                ranks = getattr(order.sampler, "num_replicas", 1)
                self.place = restored.start.skip // ranks

    def keep(self, workers: dict[int, bytes], datasets: dict[int, bytes]) -> None:
        """Keeps what workers have said up to what was taken."""
        self.workers, self.datasets, self.kept_at = dict(workers), dict(datasets), self.taken

    def pull(self, state: Any) -> None:
        """Keeps what a sampler says after a batch was asked for, until further ones are taken."""
        self.pulled.append(state)
        while self.pulled_from < self.taken:
            self.pulled.popleft()
            self.pulled_from += 1

    def sampler_state(self) -> Any:
        """Returns what the sampler said after the batch that was taken last; None where it has no state."""
        said = self.pulled[self.taken - self.pulled_from] if self.pulled else self.said
        return copy.deepcopy(said)


class Pulls:
    """What a loader iterates: the sampler's batches, from where a state says.

    Args:
        index_sampler: The sampler.
        iterator: Its iterator.
        cursor: Where the epoch begins.
        restored: What a state says; None for an epoch as it comes.
        batched: Whether there are lists of indices.
    """

    def __init__(
        self,
        index_sampler: Any,
        iterator: Iterator[Any],
        cursor: Cursor,
        restored: Restored | None,
        *,
        batched: bool,
    ) -> None:
        self._index_sampler = index_sampler
        self._iterator = iterator
        self._cursor = cursor
        self._restored = restored
        self._batched = batched
        self._is_begun = False
        self._stateful: tuple[Any, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_begun:
            task = next(self._iterator)
        elif self._restored is not None:
            self.begin()
            task = next(self._iterator)
        else:
            self._is_begun = True
            draws = self._cursor.draws
            if draws.order is None:
                self._open(None)
            draws.note()
            try:
                task = next(self._iterator)
            finally:
                draws.settle()
        if self._stateful is not None:
            self._cursor.pull(self._said(self._stateful))
        return task

    def _open(self, state: Any) -> bool:
        """Iterates a sampler that is none of torch's, from where its own state says.

        Args:
            state: What it said; None where it said nothing, and at the start of an epoch.

        Returns:
            Whether it began there.
        """
        sampler: Any = self._index_sampler
        # torch's own BatchSampler hides the iterator
        is_cut = self._batched and picks_batches(sampler)
        source = sampler.sampler if is_cut else sampler
        if state is not None and state["sampler"] is not None and is_stateful(source):
            source.load_state_dict(copy.deepcopy(state["sampler"]))
            self._iterator = iter(source)
        elif is_cut:
            self._iterator = iter(source)
        of_iterator: Any = self._iterator if is_stateful(self._iterator) else None
        if state is not None and state["iterator"] is not None and of_iterator is not None:
            of_iterator.load_state_dict(copy.deepcopy(state["iterator"]))
        of_sampler = source if is_stateful(source) and source is not of_iterator else None
        if of_sampler is not None or of_iterator is not None:
            self._stateful = of_sampler, of_iterator
            self._cursor.pull(self._said(self._stateful))
        if is_cut:
            size, drop_last = sampler.batch_size, sampler.drop_last
            self._iterator = _cut(self._iterator, size, drop_last=drop_last)
        return self._stateful is not None and state is not None

    def _said(self, stateful: tuple[Any, Any]) -> dict[str, Any]:
        """Returns what the sampler and its iterator say."""
        sampler, iterator = stateful
        return {
            "sampler": None if sampler is None else copy.deepcopy(sampler.state_dict()),
            "iterator": None if iterator is None else copy.deepcopy(iterator.state_dict()),
        }

    def chunks(self, order: Order) -> Iterator[Any]:
        """Yields the order as arrays and ranges, in place of batches."""
        self._is_begun = True
        restored, draws = self._restored, self._cursor.draws
        if restored is None:
            draws.note()
            yield from order.chunks()
        else:
            with self._replayed(restored):
                chunks = order.chunks(restored.start)
                first = next(chunks, None)
            if first is not None:
                yield first
                yield from chunks

    def begin(self) -> None:
        """Leaves out what a state says was given out; nothing where no state was loaded."""
        restored, self._restored, self._is_begun = self._restored, None, True
        if restored is None:
            self._is_begun = False
            return
        order, sampler = self._cursor.draws.order, self._index_sampler
        with self._replayed(restored):
            if order is not None:
                self._iterator = order.tasks(restored.start)
            elif isinstance(sampler, PlannedBatchSampler) and not restored.is_coming:
                assert restored.sampler_epoch is not None
                self._iterator = sampler.rest(restored.sampler_epoch, restored.taken)
            elif not self._open(restored.sampler_state):
                for batch in islice(self._iterator, restored.taken):
                    self._cursor.place += count_of(batch, batched=self._batched)
            if self._stateful is not None:  # which draws from what it holds itself
                return
            held = list(islice(self._iterator, 1))
        self._iterator = _after(held, self._iterator)

    @contextlib.contextmanager
    def _replayed(self, restored: Restored) -> Iterator[None]:
        """Has the sampler draw what it drew, from what it drew it; the global generator is left as it is."""
        draws = self._cursor.draws
        sampler, state = draws.sampler, restored.generator
        epoch = epoch_of(sampler)
        is_told = restored.sampler_epoch not in (None, epoch) and draws.order is None
        is_told = is_told and not restored.is_coming
        if is_told and not isinstance(sampler, PlannedBatchSampler):
            sampler.set_epoch(restored.sampler_epoch)
        shared = None
        if restored.is_coming:
            draws.note()
            if draws.is_seed:
                draw_seed()  # which would have been drawn; the state says what it would have been
        if state is not None and draws.generator is not None:
            if not restored.is_coming:
                draws.generator.set_state(state)
        elif state is not None and not torch.equal(state, torch.default_generator.get_state()):
            shared = torch.default_generator.get_state()
            torch.default_generator.set_state(state)
        try:
            yield
        finally:
            if shared is not None:
                torch.default_generator.set_state(shared)
            if is_told and not isinstance(sampler, PlannedBatchSampler):
                sampler.set_epoch(epoch)


def _cut(indices: Iterator[Any], size: int, *, drop_last: bool) -> Iterator[list[Any]]:
    """Yields batches of indices, as torch's BatchSampler does."""
    while batch := list(islice(indices, size)):
        if len(batch) < size and drop_last:
            return
        yield batch


def _after(held: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    yield from held
    yield from rest


_SOURCES = {
    "keys": "keys of their own (num_workers=AUTO)",
    "workers": "the generators of their workers",
    "caller": "the generators of the process that iterates",
}


class Resumable(_BaseDataLoaderIter):
    """One of torch's iterators, with a cursor.

    Before torch's `__init__`, `_restored` says where its first epoch begins. Torch sets two attributes that are
    properties here: the iterator of the sampler, where an epoch begins, and the seed, once it is drawn.
    """

    _restored: Restored | None = None
    _cursor: Cursor
    _pulls: Any
    _generator: tuple[torch.Generator, torch.Tensor] | None = None
    _is_first = False
    _draws_from = "keys"

    def _continue(self, loader: Any) -> None:
        """Has the first epoch begin where the state says that a loader was given; before torch's `__init__`."""
        self._num_wanted = int(loader.num_workers)
        self._to_drop = 0
        self._restored = restored = loader._restored
        if restored is not None:
            self._compare(restored)
            self._to_drop = restored.to_drop
            generator = loader.generator or torch.default_generator
            own = own_generator(innermost(loader._index_sampler))
            if restored.is_coming and restored.generator is not None and own is not None:
                own.set_state(restored.generator)  # from which `base_seed` may be drawn, too
            if not restored.is_coming or restored.epoch:  # an iterator that persists draws it once
                self._generator = generator, generator.get_state()

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._is_first = first_iter
        super()._reset(loader, first_iter)
        self._is_first = False
        self._num_yielded = self._cursor.taken
        self._restored = None

    def _saved_here(self) -> Any:
        """Returns where a dataset goes on whose samples this process makes."""
        saved = None if self._restored is None else self._restored.datasets.get(0)
        return None if saved is None else pickle.loads(saved)

    def _compare(self, restored: Restored) -> None:
        """Logs that samples will draw other numbers than the run that a state is of."""
        if restored.taken + restored.to_drop == 0 or restored.draws_from is None:
            return
        if restored.draws_from != self._draws_from:
            _log.warning(
                "resuming: samples drew from %s, and draw from %s now: random numbers will be others",
                _SOURCES[restored.draws_from],
                _SOURCES[self._draws_from],
            )
        elif self._draws_from == "workers" and restored.number != self._num_wanted:
            _log.warning(
                "resuming: the generators of the workers start anew: %s",
                f"there were {restored.number} workers, and are {self._num_wanted}"
                if restored.number
                else "they were not kept (snapshot_every_n_steps=0)",
            )

    @property
    def _sampler_iter(self) -> Any:
        return self._pulls

    @_sampler_iter.setter
    def _sampler_iter(self, iterator: Iterator[Any]) -> None:
        restored = self._restored
        if not self._is_first:  # torch sets it twice before the first epoch
            draws = Draws(self._index_sampler, batched=self._auto_collation)
            self._cursor = Cursor(draws, restored, self._draws_from)
            self._cursor.base_seed = self.__dict__.get("_seed", self._cursor.base_seed)
        if self._dataset_kind == _DatasetKind.Iterable:
            self._pulls = iterator  # which gives nothing, for ever
            self._cursor.draws.is_noted = True
            return
        self._pulls = Pulls(
            self._index_sampler, iterator, self._cursor, restored, batched=self._auto_collation
        )

    @property
    def _base_seed(self) -> int:
        return self._seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        if self._restored is not None:
            drawn = self._restored.base_seed
        if self._generator is not None:
            generator, state = self._generator
            generator.set_state(state)
            self._generator = None
        self._seed = self._cursor.base_seed = drawn


class InlineIter(Resumable, _SingleProcessDataLoaderIter):
    """Torch's iterator in the thread that asks, with a cursor.

    Args:
        loader: The loader.
    """

    _draws_from = "caller"

    def __init__(self, loader: Any) -> None:
        self._continue(loader)
        saved = self._saved_here()
        load_dataset(loader.dataset, saved)
        super().__init__(loader)
        load_iterator(self._dataset_fetcher, saved)
        self._cursor.fetcher = self._dataset_fetcher
        self._num_yielded = self._cursor.taken

    def _next_data(self) -> Any:
        try:
            while self._to_drop > 0:
                self._to_drop -= 1
                super()._next_data()  # type: ignore[no-untyped-call]
            batch: Any = super()._next_data()  # type: ignore[no-untyped-call]
        except StopIteration:
            self._cursor.is_finished = True
            raise
        except Exception:
            self._cursor.taken += 1  # an error takes the place of its batch
            raise
        self._cursor.taken += 1
        return batch
