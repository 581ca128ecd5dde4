"""`Cursor`: where an iterator is in its epoch, and what the epoch's order was drawn from.

Owns what `Loader.state_dict` tells of an iterator, and how an iterator of any lane continues from there. The cursor
counts batches that were taken, not those that were asked for ahead. What the sampler draws from is noted right
before its first draw. Invariant: neither noting nor continuing moves a global generator.
"""

import contextlib
import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

from fastload.batching import PlannedBatchSampler
from fastload.keyed import count_of
from fastload.sampler import Order, Start, draw_seed, picks_batches, resumable

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
            isinstance(self.sampler, PlannedBatchSampler | list | tuple | range)
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
        kept_at: The same.
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
        self.kept_at = 0
        self.kept: dict[str, Any] | None = None
        if restored is not None:
            draws.put(restored)
            self.base_seed, self.epoch = restored.base_seed, restored.epoch
            self.first = self.kept_at = restored.taken
            self.taken = restored.taken + restored.to_drop
            self.origin = restored.origin
            self.workers = dict(restored.workers)
            order = draws.order
            if order is not None:
                ranks = getattr(order.sampler, "num_replicas", 1)
                self.place = restored.start.skip // ranks

    def keep(self, workers: dict[int, bytes]) -> None:
        """Keeps the generators of workers as they are after what was taken."""
        self.workers, self.kept_at = dict(workers), self.taken


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

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._is_begun:
            self._is_begun = True
            if self._restored is not None:
                self.begin()
            else:
                draws = self._cursor.draws
                draws.note()
                try:
                    return next(self._iterator)
                finally:
                    draws.settle()
        return next(self._iterator)

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
            else:
                for batch in islice(self._iterator, restored.taken):
                    self._cursor.place += count_of(batch, batched=self._batched)
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
    _pulls: Pulls
    _generator: tuple[torch.Generator, torch.Tensor] | None = None
    _is_first = False
    _draws_from = "keys"

    def _continue(self, loader: Any) -> None:
        """Has the first epoch begin where the state says that a loader was given; before torch's `__init__`."""
        self._num_wanted = int(loader.num_workers)
        self._restored = restored = loader._restored
        if restored is not None:
            self._compare(restored)
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
        self._num_yielded = self._cursor.first
        self._restored = None

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
    def _sampler_iter(self) -> Pulls:
        return self._pulls

    @_sampler_iter.setter
    def _sampler_iter(self, iterator: Iterator[Any]) -> None:
        restored = self._restored
        if not self._is_first:  # torch sets it twice before the first epoch
            draws = Draws(self._index_sampler, batched=self._auto_collation)
            self._cursor = Cursor(draws, restored, self._draws_from)
            self._cursor.base_seed = self.__dict__.get("_seed", self._cursor.base_seed)
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
        super().__init__(loader)
        self._num_yielded = self._cursor.first

    def _next_data(self) -> Any:
        try:
            batch: Any = super()._next_data()  # type: ignore[no-untyped-call]
        except StopIteration:
            self._cursor.is_finished = True
            raise
        except Exception:
            self._cursor.taken += 1  # an error takes the place of its batch
            raise
        self._cursor.taken += 1
        return batch
