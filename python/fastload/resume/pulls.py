"""`Pulls`: the batches of indices that an iterator asks its sampler for, from where a state says.

Owns how a sampler is continued: torch's at a position of their order, one with a state of its own by that, any other by
iterating it up to there. Invariant: the global generator is left as it was found.
"""

import contextlib
import copy
import functools
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import torch

from fastload.batching import PlannedBatchSampler
from fastload.batching.planned import draw_seed
from fastload.batching.sample_mask import Repeats
from fastload.draws.keyed import count_of
from fastload.draws.sampler import Order, Start, picks_batches
from fastload.faults import one_line
from fastload.resume.cursor import Cursor, epoch_of
from fastload.resume.restored import Restored
from fastload.resume.stateful import is_stateful, kept, report_unkept

__all__ = ["PARTS", "Pulls"]

PARTS = {"sampler", "iterator", "samples"}
"""The keys of the state of a sampler that has one; later states also have `ended`."""


class Pulls:
    """The batches that a loader asks its sampler for, from where a state says.

    Args:
        index_sampler: The sampler.
        iterator: Its iterator.
        cursor: The position where the epoch begins.
        restored: The position that a state says; None for an epoch without a state.
        batched: True if there are lists of indices.
        repeats: The positions of repeats in the order, to be marked; None for none.
        leaves_out: True if batches that were handed over before are left out here.

    Attributes:
        waiting: The batches that were taken from the sampler early.
    """

    def __init__(
        self,
        index_sampler: Any,
        iterator: Iterator[Any],
        cursor: Cursor,
        restored: Restored | None,
        *,
        batched: bool,
        repeats: Repeats | None,
        leaves_out: bool,
    ) -> None:
        self._index_sampler = index_sampler
        self._iterator = iterator
        self._cursor = cursor
        self._restored = restored
        self._batched = batched
        self.waiting: deque[Any] = deque()
        self._raised: Exception | None = None
        """What the sampler raised behind those that wait."""
        self._is_begun = False
        self._stateful: tuple[Any, Any] | None = None
        self._samples = 0  # that a sampler with a state was asked for, with those of earlier runs
        self._repeats = repeats
        if repeats is not None and cursor.draws.order is not None:
            self._repeats = repeats.after(*cursor.origin)
        self._number = cursor.first
        self._left_out = cursor.left_out if leaves_out else {}
        is_known = cursor.draws.order is not None or isinstance(index_sampler, PlannedBatchSampler)
        # torch's own BatchSampler hides the iterator of a sampler of others, and is cut here
        self._is_cut = not is_known and batched and picks_batches(index_sampler)
        self._is_foreign = not (is_known or self._is_cut)
        if restored is None and not is_known and is_stateful(self._source):
            cursor.said = functools.partial(_said, self._source)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.waiting:
            return self.waiting.popleft()
        if self._raised is None:
            return self._pull()
        try:
            raise self._raised
        finally:
            self._raised = None

    def fill(self, count: int) -> None:
        """Takes batches from the sampler until `count` wait; its error waits for its turn behind them."""
        while self._raised is None and len(self.waiting) < count:
            try:
                self.waiting.append(self._pull())
            except Exception as error:  # StopIteration, too
                self._raised = error

    def check(self) -> None:
        """Raises the error of the sampler if its turn has come."""
        if not self.waiting and not isinstance(self._raised, StopIteration | None):
            next(self)

    def _pull(self) -> Any:
        while True:
            task = next(self._iterator) if self._is_begun else self._first()
            if self._stateful is not None:
                self._samples += count_of(task, batched=self._batched)
                ended = self._is_cut and len(task) < self._index_sampler.batch_size
                self._keep_state(ended=ended)
            if self._is_foreign:
                task = _own(task)
            number = self._number
            self._number += 1
            if number not in self._left_out:
                return task if self._repeats is None else self._repeats.marked(task, number)
            self._left_out[number] = count_of(task, batched=self._batched)

    @property
    def _source(self) -> Any:
        """The sampler that is iterated: the one in torch's own BatchSampler, whose batches are cut here."""
        return self._index_sampler.sampler if self._is_cut else self._index_sampler

    def _first(self) -> Any:
        """Returns the sampler's first batch."""
        if self._restored is not None:
            self.begin()
            return next(self._iterator)
        self._is_begun = True
        draws = self._cursor.draws
        draws.note()
        if draws.order is None:
            self._cursor.said = None
            self._open(None)
            self._keep_state(ended=True)
        elif self._repeats is not None or draws.order.is_quicker:
            self._iterator = draws.order.tasks(Start())
        try:
            return next(self._iterator)
        finally:
            draws.settle()

    def _open(self, state: Any) -> bool:
        """Iterates a sampler that is not one of torch's, from the position in its own state.

        Args:
            state: The state that it returned; None where it returned none, and at the start of an epoch.

        Returns:
            Whether it began there.
        """
        sampler, source = self._index_sampler, self._source
        if state is not None and state["sampler"] is not None and is_stateful(source):
            source.load_state_dict(copy.deepcopy(state["sampler"]))
            self._iterator = iter(source)
        elif self._is_cut:
            self._iterator = iter(())  # after an error nothing follows
            try:
                self._iterator = iter(source)
            except StopIteration as error:  # as from torch's BatchSampler, which is a generator
                msg = "generator raised StopIteration"
                raise RuntimeError(msg) from error
        of_iterator: Any = self._iterator if is_stateful(self._iterator) else None
        if state is not None and state["iterator"] is not None and of_iterator is not None:
            of_iterator.load_state_dict(copy.deepcopy(state["iterator"]))
        of_sampler = source if is_stateful(source) and source is not of_iterator else None
        if of_sampler is not None or of_iterator is not None:
            self._stateful = of_sampler, of_iterator
            if state is not None:
                self._samples = self._cursor.place = state["samples"]
        if self._is_cut:
            size, drop_last = sampler.batch_size, sampler.drop_last
            self._iterator = _cut(self._iterator, size, drop_last=drop_last)
        return self._stateful is not None and state is not None

    def _keep_state(self, *, ended: bool = False, loaded: Any = None) -> None:
        """Keeps the state of a sampler that has one; after an error it is not asked again, and has none.

        Args:
            ended: True if the sampler is at the end of an epoch: before the first batch, where it may be that of the
                last one, and after a batch that is not full.
            loaded: The state that it was given just now. A sampler that has not begun may not return it yet.
        """
        if self._stateful is None:
            return
        if loaded is not None:
            self._cursor.pull(kept(loaded))
            return
        sampler, iterator = self._stateful
        try:
            said = _states(sampler, iterator, self._samples, ended=ended)
            self._cursor.pull(kept(said))
        except Exception as error:
            _report_unkept(iterator if sampler is None else sampler, error)
            self._stateful = None
            self._cursor.pulled.clear()
            self._cursor.said = None

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
        """Leaves out the batches that a state lists as handed over; nothing where no state was loaded."""
        restored, self._restored, self._is_begun = self._restored, None, True
        if restored is None:
            self._is_begun = False
            return
        order, sampler = self._cursor.draws.order, self._index_sampler
        state = restored.sampler_state
        if order is None and state is not None and state.get("ended"):
            is_at_end = self._end(state)
            if restored.taken and is_at_end:
                self._open(None)
                self._samples = self._cursor.place = state["samples"]
                self._keep_state(ended=True, loaded=state)
                self._iterator = iter(())
                return
            state = None
        with self._replayed(restored) as sets_epoch:
            if order is not None:
                self._iterator = order.tasks(restored.start)
            elif isinstance(sampler, PlannedBatchSampler) and not restored.is_coming:
                assert restored.sampler_epoch is not None
                self._iterator = sampler.rest(restored.sampler_epoch, restored.taken)
            else:
                if restored.generator is not None and not restored.is_coming:
                    self._iterator = iter(sampler)  # which may draw at once
                is_there = self._open(state)
                if not is_there:
                    for batch in islice(self._iterator, restored.taken):
                        self._cursor.place += count_of(batch, batched=self._batched)
                    self._samples = self._cursor.place
                self._keep_state(ended=restored.taken == 0, loaded=restored.sampler_state)
                is_there = is_there or (restored.is_coming and self._stateful is not None)
                if is_there and not sets_epoch:  # it draws from what it holds itself
                    return
            held = list(islice(self._iterator, 1))
        self._iterator = chain(held, self._iterator)

    def _end(self, state: Any) -> bool:
        """Has a sampler end the epoch that its state is of, as it did in the run that was saved.

        What it draws meanwhile was drawn there before.

        Returns:
            Whether it has taken the state.
        """
        generators = [torch.default_generator]
        if (own := self._cursor.draws.generator) is not None:
            generators.append(own)
        before = [each.get_state() for each in generators]
        is_taken = self._open(state)
        if is_taken and next(self._iterator, None) is not None:
            self._open(state)  # one that gives more begins the next epoch by itself
        self._stateful = None
        self._samples = self._cursor.place = 0
        self._iterator = iter(self._index_sampler)
        for each, saved in zip(generators, before, strict=True):
            each.set_state(saved)
        return is_taken

    def leave_out(self, count: int) -> None:
        """Goes on behind the next batches, which were handed over and are not made again."""
        cursor = self._cursor
        for task in islice(self, count):
            cursor.first += 1
            cursor.before += 1
            cursor.place += count_of(task, batched=self._batched)

    @contextlib.contextmanager
    def _replayed(self, restored: Restored) -> Iterator[bool]:
        """Has the sampler repeat its draws from the same source; the global generator is not changed.

        Yields whether the sampler's epoch is that of the state meanwhile, in place of its own.
        """
        draws = self._cursor.draws
        sampler, state = draws.follows, restored.generator
        epoch = epoch_of(sampler)
        sets_epoch = restored.sampler_epoch not in (None, epoch) and draws.order is None
        sets_epoch = sets_epoch and not restored.is_coming
        sets_epoch = sets_epoch and not isinstance(sampler, PlannedBatchSampler)
        if sets_epoch:
            sampler.set_epoch(restored.sampler_epoch)
        shared = None
        if restored.is_coming:
            draws.note()
        if draws.is_seed and not restored.is_drawn:
            draws.is_drawn = True
            draw_seed()  # which would have been drawn; the state says what it would have been
        if state is not None and draws.generator is not None:
            if not restored.is_coming:
                draws.generator.set_state(state)
        elif state is not None and not torch.equal(state, torch.default_generator.get_state()):
            shared = torch.default_generator.get_state()
            torch.default_generator.set_state(state)
        try:
            yield sets_epoch
        finally:
            if shared is not None:
                torch.default_generator.set_state(shared)
            if sets_epoch:
                sampler.set_epoch(epoch)


def _said(sampler: Any) -> Any:
    """Returns the state of a sampler before the first batch of an epoch; None if its `state_dict` fails."""
    try:
        return copy.deepcopy(_states(sampler, None, 0, ended=True))
    except Exception as error:
        _report_unkept(sampler, error)
        return None


def _states(sampler: Any, iterator: Any, samples: int, *, ended: bool) -> dict[str, Any]:
    """Returns the states of a sampler and of its iterator, each None where there is none, as the loader's has them."""
    return {
        "sampler": None if sampler is None else sampler.state_dict(),
        "iterator": None if iterator is None else iterator.state_dict(),
        "samples": samples,
        "ended": ended,
    }


def _report_unkept(sampler: Any, error: Exception) -> None:
    report_unkept(type(sampler), one_line(error), "iterates it up to its position")


def _own(task: Any) -> Any:
    """Returns indices that a sampler cannot change: it may fill the same list again for its next batch."""
    if isinstance(task, torch.Tensor):
        return task.clone()
    return copy.copy(task) if isinstance(task, list | np.ndarray) else task


def _cut(indices: Iterator[Any], size: int, *, drop_last: bool) -> Iterator[list[Any]]:
    """Yields batches of indices, as torch's BatchSampler does: `islice` makes an iterator for each, `zip` one."""
    if drop_last:
        yield from map(list, zip(*[indices] * size, strict=False))
        return
    while batch := list(islice(indices, size)):
        yield batch
