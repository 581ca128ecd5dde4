"""Which tasks worker processes have, so that batches made ahead stay within a memory budget.

Owns the tasks that torch has given to a worker and that the worker has not been sent. Refuses to change whose
they are, or their order: they are sent in the order of their batches. Invariant: the oldest batch that is
not taken has been sent, so that its consumer does not wait for ever.
"""

from collections import deque
from collections.abc import Callable

__all__ = ["Admission"]

_RECENT = 16


class Admission:
    """Lets tasks in.

    Args:
        budget_bytes: Most bytes of batches that are at work or wait to be taken. One is always let in.
        first_bytes: The assumed bytes of a batch before there is one.

    Attributes:
        oversize: Number of batches that alone were larger than the budget.
    """

    def __init__(self, budget_bytes: int, first_bytes: int) -> None:
        self._budget = budget_bytes
        self._recent = deque([first_bytes], _RECENT)
        self._is_first = True
        self._held: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._at_work: dict[int, int] = {}
        self._waiting = 0
        self.oversize = 0

    @property
    def held(self) -> int:
        """Number of tasks that are held back."""
        return len(self._held)

    @property
    def ahead_bytes(self) -> int:
        """Bytes of batches that are at work, by the largest of the last few, or wait to be taken."""
        return len(self._at_work) * max(self._recent) + self._waiting

    def add(self, seq: int, worker: int, send: Callable[[], None]) -> None:
        """Has a task sent as soon as its batch fits.

        Raises:
            Exception: What sending raises, of this task or of one before.
        """
        self._held.append((seq, worker, send))
        self._send()

    def came(self, seq: int, size: int) -> bool:
        """Counts a batch that begins to wait; returns False if it is no longer needed."""
        if self._at_work.pop(seq, None) is None:
            return False
        if self._is_first:
            self._recent.clear()
            self._is_first = False
        self._recent.append(size)
        self._waiting += size
        self.oversize += size > self._budget
        self._send()
        return True

    def taken(self, size: int) -> None:
        """Counts a batch as the user's."""
        self._waiting -= size
        self._send()

    def drop(self, worker: int) -> None:
        """Forgets the tasks of a worker that makes no more batches."""
        self._at_work = {seq: of for seq, of in self._at_work.items() if of != worker}
        self._held = deque(each for each in self._held if each[1] != worker)
        self._send()

    def flush(self) -> None:
        """Sends everything, and forgets it: whatever comes of it is not kept."""
        while self._held:
            self._held.popleft()[2]()
        self._at_work.clear()
        self._waiting = 0

    def _send(self) -> None:
        while self._held and self._fits():
            seq, worker, send = self._held.popleft()
            self._at_work[seq] = worker
            send()

    def _fits(self) -> bool:
        """Returns true if one more batch fits, or there is none."""
        is_alone = not self._at_work and not self._waiting
        return is_alone or self.ahead_bytes + max(self._recent) <= self._budget
