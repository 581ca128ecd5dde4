"""`Cursor`: where an iterator is in its epoch.

Owns what `Loader.state_dict` tells of an iterator, also after it is gone. It counts batches that were taken, not those that
were asked for ahead.
"""

import copy
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastload.resume.draws import Draws
from fastload.resume.restored import Restored
from fastload.resume.stateful import is_stateful

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Cursor"]


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
        said: The state of a sampler that has one, before the first batch is asked for.
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
    said: Any = None
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
            self.said = restored.sampler_state
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
        state = self.pulled[at]() if self.pulled else copy.deepcopy(self.said)
        return {**state, "ended": True} if state is not None and self.is_finished else state
