"""`Cursor`: where an iterator is in its epoch; `Draws`: what the order of the epoch is drawn from.

Owns what `Loader.state_dict` tells of an iterator, also after it is gone, and which generator a sampler draws from. It
counts batches that were taken, not those that were asked for ahead. The source of the draws is noted right before the first
one. Invariant: to look at it moves no generator.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import _InfiniteConstantSampler

from fastload.batching import PlannedBatchSampler
from fastload.batching.layers import attribute, layers
from fastload.batching.planned import draw_seed
from fastload.draws.sampler import resumable
from fastload.resume.restored import Restored
from fastload.resume.stateful import is_stateful, kept

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Cursor", "Draws", "epoch_of", "own_generator", "seed_from"]

_FIXED = (PlannedBatchSampler, _InfiniteConstantSampler, list, tuple, range)
"""Samplers that draw from no generator."""


class Draws:
    """The source of the order of one epoch: seeds, generators and the epoch of the sampler.

    Args:
        index_sampler: The sampler that a loader iterates.
        batched: True if it gives lists of indices.

    Attributes:
        order: The order, if it is that of torch's own samplers.
        sampler: The sampler that decides on it.
        follows: The outermost sampler that has an epoch; `sampler` if none has.
        generator: The generator of the outermost sampler that has its own; None if none has.
        epoch: The epoch of `follows` when the order began; None if it has none.
        is_noted: True if the order has begun.
        is_drawn: True if it was drawn, in this run or the one that is continued.
        is_eager: True if the sampler drew when its iterator was made.
    """

    def __init__(self, index_sampler: Any, *, batched: bool) -> None:
        self.order = resumable(index_sampler, batched=batched)
        self.is_noted = self.is_drawn = self.is_eager = False
        self._state: torch.Tensor | None = None
        self._seed: int | None = None
        if self.order is None:
            within = list(layers(index_sampler))
            self.sampler = within[-1]
            epochs = (each for each in within if epoch_of(each) is not None)
            self.follows = next(epochs, self.sampler)
            self._may_draw = not all(
                type(each) is BatchSampler or isinstance(each, _FIXED) for each in within
            )
        else:
            self.sampler = self.follows = self.order.sampler
            within = [self.sampler]
            self._may_draw = type(self.sampler) not in (DistributedSampler, SequentialSampler)
        self.generator = own_generator(within)
        self.epoch = epoch_of(self.follows)

    @property
    def is_seed(self) -> bool:
        """True if the sampler draws one seed from the global generator, and no more."""
        is_random = self.order is not None and type(self.sampler) is RandomSampler
        return is_random and self.sampler.generator is None

    def opened(self, before: torch.Tensor | None) -> None:
        """Notes the source of what the sampler drew when its iterator was made.

        Args:
            before: The state of its generator before that; None if the sampler is one that draws later.
        """
        if before is None or not self._may_draw:
            return
        now = (self.generator or torch.default_generator).get_state()
        self.is_eager = not torch.equal(now, before)
        self._state = before if self.is_eager else None

    def note(self) -> None:
        """Notes the source of the order's draws; called right before the first draw."""
        self.epoch, self.is_noted, self.is_drawn = epoch_of(self.follows), True, True
        if self._may_draw and self._state is None and self._seed is None:
            self._state = (self.generator or torch.default_generator).get_state()

    def settle(self) -> None:
        """Forgets the source of a sampler that did not draw from the global generator."""
        if self._state is None or self.generator is not None or self.order is not None:
            return
        if torch.equal(self._state, torch.default_generator.get_state()):
            self._state = None

    def put(self, restored: Restored) -> None:
        """Takes the source from a state."""
        self._seed = restored.start.seed
        self.is_drawn = restored.is_drawn
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


class Cursor:
    """The position of an iterator.

    Args:
        draws: The source of its epoch's order.
        restored: The position where it continues; None at the start of an epoch.

    Attributes:
        draws: The same.
        base_seed: The iterator's.
        epoch: Number of times that it was reset.
        first: Number of its first batch.
        before: Number of batches of the epoch that it does not make.
        left_out: Numbers of later batches that were handed over before, and the samples that their indices ask for.
        place: Samples before its first.
        taken: Batches of the epoch that were handed over, or failed, with those of earlier runs.
        overtaken: Batches that are still to come although later ones were handed over; None where they come in order.
        from_workers: Number of batches of each worker that were handed over, where that is not the order of the workers.
        is_finished: True if it has said that the epoch is over.
        origin: Batches and samples before the first one that this number of ranks took.
        draws_from: The source of the samples' draws: "keys", "workers" or "caller".
        workers: The generators of workers that have drawn, after `kept_at` batches, by their numbers.
        texts: The generators that were written into a state, with their texts.
        datasets: The states that the datasets of workers returned then, pickled.
        kept_at: The same.
        rewinds: True if a run goes on from `kept_at`, and drops what was taken since.
        next_worker: The worker that makes the first batch.
        last_worker: The one that made the batch that was taken last; None if none did.
        said: Returns the state of a sampler that has one, before the first batch is asked for; None for no such sampler.
        pack: Returns the generators of an iterable dataset that this process iterates, if it has a state.
        fetcher: The fetcher that makes the samples, if this process does, of a dataset that has a state.
        pulled: The states of a sampler that has one, before and after each batch that was asked for, from `pulled_from` on.
        kept: The results that `state_dict` reuses.
    """

    base_seed = 0
    epoch = 0
    first = 0
    before = 0
    place = 0
    taken = 0
    is_finished = False
    origin = (0, 0)
    kept_at = 0
    rewinds = False
    next_worker = 0
    last_worker: int | None = None
    said: "Callable[[], Any] | None" = None
    pack: "Callable[[], bytes | None] | None" = None
    fetcher: Any = None
    pulled_from = 0
    kept: dict[str, Any] | None = None

    def __init__(self, draws: Draws, restored: Restored | None, draws_from: str) -> None:
        self.draws = draws
        self.draws_from = draws_from
        self.workers: dict[int, bytes] = {}
        self.texts: dict[int, tuple[bytes, str]] = {}
        self.datasets: dict[int, bytes] = {}
        self.pulled: deque[Any] = deque()
        self.left_out: dict[int, int] = {}
        self.overtaken: list[int] | None = None
        self._missing: list[int] = []
        self.from_workers: list[int] = []
        if restored is not None:
            draws.put(restored)
            self.base_seed, self.epoch = restored.base_seed, restored.epoch
            self.first = self.kept_at = restored.taken
            self.taken, self.before = restored.handed_over, restored.taken + len(restored.left_out)
            self.left_out = dict.fromkeys(restored.left_out, 0)
            self.from_workers = list(restored.from_workers)
            self._missing = [
                each for each in range(self.first, self.next) if each not in self.left_out
            ]
            self.origin = restored.origin
            self.workers, self.datasets = dict(restored.workers), dict(restored.datasets)
            self.next_worker = restored.next_worker
            self.pulled_from = restored.taken
            if restored.sampler_state is not None:
                self.said = kept(restored.sampler_state)
            order = draws.order
            if order is not None:
                ranks = getattr(order.sampler, "num_replicas", 1)
                self.place = restored.start.skip // ranks

    def ask(self, dataset: Any, fetcher: Any) -> None:
        """Has a dataset and its iterator asked for their states, if they have any; no other is kept alive."""
        iterator = getattr(fetcher, "dataset_iter", None)
        if is_stateful(dataset) or (iterator is not None and is_stateful(iterator)):
            self.fetcher = fetcher

    def keep(self, workers: dict[int, bytes], datasets: dict[int, bytes]) -> None:
        """Keeps the states that workers sent with the batches that were taken."""
        self.workers, self.datasets, self.kept_at = dict(workers), dict(datasets), self.taken

    def pull(self, state: "Callable[[], Any]") -> None:
        """Keeps a sampler's state after each request of a batch, until no run can continue from there.

        Args:
            state: Returns a copy of the state.
        """
        self.pulled.append(state)
        while self.pulled and self.pulled_from < self._resumed_at:
            self.pulled.popleft()
            self.pulled_from += 1

    @property
    def next(self) -> int:
        """The first batch that no batch of an earlier run had overtaken."""
        return max(self.left_out, default=self.first - 1) + 1

    def note_overtaken(self, asked: int, in_flight: Iterable[int]) -> None:
        """Notes which batches later ones have overtaken.

        Args:
            asked: Number of batches that were asked for.
            in_flight: Which of them, counted from 0, were not handed over; in ascending order.
        """
        waiting, behind = list(in_flight), asked
        for place in reversed(waiting):
            if place != behind - 1:
                break
            behind -= 1
        missing = self._missing
        numbers = [
            missing[place] if place < len(missing) else self.next + place - len(missing)
            for place in waiting
            if place < max(behind, len(missing))
        ]
        self.overtaken = numbers + missing[asked:]

    def to_come(self) -> list[int]:
        """Returns the batches that later ones have overtaken, and behind them the first that none has."""
        overtaken = self.overtaken
        if overtaken is None:
            overtaken = self._missing[self.taken - self.before :]
        return [*overtaken, self.taken + len(overtaken)]

    @property
    def _resumed_at(self) -> int:
        """The batches after which a run continues."""
        return self.kept_at if self.rewinds else self.to_come()[0]

    def sampler_state(self) -> Any:
        """Returns the sampler's state after the last batch that is not made again; None where it has none.

        After the end of the epoch it is the state after the last batch, and `ended` in it is true.
        """
        at = -1 if self.is_finished else self._resumed_at - self.pulled_from
        say = self.pulled[at] if self.pulled else self.said
        state = None if say is None else say()
        return {**state, "ended": True} if state is not None and self.is_finished else state


def own_generator(samplers: Iterable[Any]) -> torch.Generator | None:
    """Returns the generator of the first of some samplers that has its own."""
    for sampler in samplers:
        generator = attribute(sampler, "generator")
        if generator is not None and isinstance(generator, torch.Generator):  # whose check is slow
            return generator
    return None


def epoch_of(sampler: Any) -> int | None:
    """Returns the epoch that a sampler was set to; None if it has no `set_epoch`."""
    if attribute(sampler, "set_epoch") is None:
        return None
    epoch = attribute(sampler, "epoch")
    return epoch if isinstance(epoch, int) else None


def seed_from(source: torch.Generator | torch.Tensor) -> int:
    """Returns the seed that is drawn next from a generator, or from its state; it is left as it is."""
    state = source.get_state() if isinstance(source, torch.Generator) else source
    scratch = torch.Generator()
    scratch.set_state(state)
    return draw_seed(scratch)
