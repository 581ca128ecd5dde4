"""The state of a worker, kept for a run that goes on elsewhere: its generators, and what its dataset says.

Where a number of workers was chosen, samples draw from the streams of their workers, as torch's do; and the dataset of
each worker may have a state of its own. So a worker tells with its batches what has changed. Owns when it looks,
and what it tells.
"""

import contextlib
import pickle
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from fastload.draws.generators import Generators
from fastload.faults import one_line
from fastload.resume.stateful import load_dataset, load_iterator, start_anew, state_of_dataset

__all__ = ["Keeping", "Moved", "WorkerState"]


class Keeping(NamedTuple):
    """The arguments of a worker that concern states, given when it starts.

    Attributes:
        every: Interval between states, in batches of the loader; 0 for no states.
        first: Batches of the epoch that were made before it started.
        total: Batches of each epoch, after whose last one a state is sent, too; None for no such state.
        generators: The states in which its generators begin, by the numbers of the workers; as seeded where there are none.
        datasets: The state in which its dataset begins, likewise.
    """

    every: int
    first: int
    total: int | None
    generators: dict[int, bytes]
    datasets: dict[int, Any]


class Moved(NamedTuple):
    """The state that a worker sends with a batch; None for a part that has not changed.

    Attributes:
        generators: The states of its generators.
        dataset: The state of its dataset, pickled.
        error: The error because of which it sends no state of its dataset from now on.
    """

    generators: bytes | None
    dataset: bytes | None
    error: str | None = None


class WorkerState:
    """Looks after the state of one worker.

    Args:
        keeping: The states to keep.
        worker: Its number.
        workers: Number of workers.
        generators: Returns its generators.
    """

    def __init__(
        self, keeping: Keeping, worker: int, workers: int, generators: Callable[[], Generators]
    ) -> None:
        self._keeping = keeping
        self._worker = worker
        self._workers = workers
        self._generators = generators
        self._seeded: bytes | None = None
        self._sent = Moved(None, None)
        self._is_begun = self._is_opened = self._has_failed = False
        self._dataset: Any = None
        self._fetcher: Callable[[], Any] = lambda: None

    def open(self, make: Callable[..., Any], kind: int, dataset: Any, *rest: Any) -> Any:
        """Returns torch's fetcher of a dataset, which continues from its state; from the start in later epochs."""
        saved, keeping = None, self._keeping
        is_first, self._is_opened = not self._is_opened, True
        if is_first:
            self._seeded = self._generators().pack() if keeping.every else None
            saved = keeping.datasets.get(self._worker)
        start_anew(dataset)
        load_dataset(dataset, saved)
        if is_first and keeping.first == 0 and self._worker in keeping.generators:
            self.begin()  # its iterator may draw
        fetcher = make(kind, dataset, *rest)
        load_iterator(fetcher, dataset, saved)
        # torch's loop closes it at its end
        self._dataset, self._fetcher = dataset, weakref.ref(fetcher)
        return fetcher

    def begin(self) -> None:
        """Puts the generators where they were; called when the first batch is asked for."""
        if self._is_begun or not self._keeping.every:
            return
        self._is_begun = True
        saved = self._keeping.generators.get(self._worker)
        if saved is not None:
            self._generators().unpack(saved)
        self._sent = Moved(self._generators().pack(), None)

    def next_epoch(self) -> Moved | None:
        """Counts batches from the start again; returns the state in which the epoch begins, where states are kept.

        Its generators are None if they are still as seeded.
        """
        self._keeping = self._keeping._replace(first=0)
        if not self._keeping.every:
            return None
        self.begin()
        generators, state = self._generators().pack(), None
        with contextlib.suppress(Exception):  # which is sent with the next batch
            state = self._pickled_state(None)
        self._sent = Moved(generators, state)
        return self._sent._replace(generators=None if generators == self._seeded else generators)

    def moved(self, seq: int) -> Moved | None:
        """Returns the state that has changed with a batch; None where nothing has, or no state is requested.

        Args:
            seq: The number of the batch among those that the iterator asked for.
        """
        every, total = self._keeping.every, self._keeping.total
        made = self._keeping.first + seq + 1
        is_late = total is not None and made > total - self._workers
        if not every or (-made % every >= self._workers and not is_late):
            return None
        sent = self._sent
        state, error = self._state_of_dataset()
        now = Moved(self._generators().pack(), state)
        if now == sent and error is None:
            return None
        self._sent = now
        return Moved(
            None if now.generators == sent.generators else now.generators,
            None if now.dataset == sent.dataset else now.dataset,
            error,
        )

    def _state_of_dataset(self) -> tuple[bytes | None, str | None]:
        """Returns the state of the dataset, pickled, or the error by which it failed; it is not asked again then."""
        if self._has_failed:
            return None, None
        try:
            return self._pickled_state(self._fetcher()), None
        except Exception as error:
            self._has_failed = True
            return None, one_line(error)

    def _pickled_state(self, fetcher: Any) -> bytes | None:
        state = state_of_dataset(self._dataset, fetcher)
        return None if state is None else pickle.dumps(state)
