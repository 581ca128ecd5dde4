"""The generators of a worker, kept for a run that goes on elsewhere.

Where a number of workers was chosen, samples draw from the streams of their workers, as torch's do. So a worker tells with its
batches where its generators are then, if they have moved. Owns when it looks, and what it tells.
"""

from collections.abc import Callable
from typing import NamedTuple

from fastload.generators import Generators

__all__ = ["Keeping", "WorkerStreams"]


class Keeping(NamedTuple):
    """What a worker is told when it starts.

    Attributes:
        every: After so many batches of the loader a state can be told; 0 for never.
        first: Batches of the epoch that were made before it started.
        saved: Where its generators begin, by the numbers of the workers; as seeded where there is none.
    """

    every: int
    first: int
    saved: dict[int, bytes]


class WorkerStreams:
    """Looks after the generators of one worker.

    Args:
        keeping: What is kept.
        worker: Its number.
        workers: How many there are.
        generators: Returns them.
    """

    def __init__(
        self, keeping: Keeping, worker: int, workers: int, generators: Callable[[], Generators]
    ) -> None:
        self._keeping = keeping
        self._worker = worker
        self._workers = workers
        self._generators = generators
        self._told: bytes | None = None
        self._is_begun = False

    def begin(self) -> None:
        """Puts the generators where they were; called when the first batch is asked for."""
        if self._is_begun or not self._keeping.every:
            return
        self._is_begun = True
        saved = self._keeping.saved.get(self._worker)
        if saved is not None:
            self._generators().unpack(saved)
        self._told = self._generators().pack()

    def next_epoch(self) -> None:
        """Counts batches from the start again."""
        self._keeping = self._keeping._replace(first=0)

    def moved(self, seq: int) -> bytes | None:
        """Returns where the generators are after a batch; None where that is known, or not asked for.

        Args:
            seq: The number of the batch among those that the iterator asked for.
        """
        every = self._keeping.every
        if not every or (-(self._keeping.first + seq + 1)) % every >= self._workers:
            return None
        now = self._generators().pack()
        if now == self._told:
            return None
        self._told = now
        return now
