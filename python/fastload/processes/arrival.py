"""A batch that has come from a worker process, on its way to the user.

Owns its message until it is opened. With page-locked memory that is when the batch is taken: until then the
threads of the pool copy its parts, while the training goes on. Refuses to know in which order batches are taken.
"""

import sys
from typing import Any

import torch
from torch._utils import ExceptionWrapper

from fastload import _lib
from fastload.iterators.cost import Cost
from fastload.processes.pickling import loads

__all__ = ["Arrival"]


def page_locked(length: int) -> torch.Tensor:
    """Returns page-locked memory of torch's own, which waits for copies to a device when it is freed."""
    return torch.empty(length, dtype=torch.uint8, device="cpu", pin_memory=True)


class Arrival:
    """A batch, or what else a worker says.

    Args:
        worker: The number of the worker that sent it.
        payload: The pickles of what it is about, and of itself.
        parts: The memory beside them.
        pins: True if parts are copied to page-locked memory.

    Attributes:
        worker: The same.
        seq: The number of its batch.
        size: Its bytes.
        cost: Its cost to the worker.
        made_s: The monotonic clock when it was made.
        changed: Which attributes of the dataset have changed while the worker made its first batch.
        filled: One that it put about as many bytes into as the batch has, as into a cache of samples; else empty.
        kept: What was made and kept with its first batch that goes on from sample to sample, as a generator does.
        moved: The changed state of the worker, to be kept.
    """

    def __init__(
        self, worker: int, payload: bytes, parts: list[torch.Tensor], *, pins: bool
    ) -> None:
        self.worker = worker
        self._whose = f"DataLoader worker process {worker}"
        self._copying: _lib.Copying | None = None
        self._message: Any = loads(payload, parts)
        self._data: Any = None
        self.seq, cost, self.made_s, changes, self.moved = self._message.load()
        self.changed, (name, filled_bytes), self.kept = changes
        self.cost = Cost(*cost)
        self.size = sum(part.nbytes for part in parts) + len(payload)
        self.filled = name if 0 < self.size <= 2 * filled_bytes else ""
        if pins and parts:
            self._copy(parts)

    def _copy(self, parts: list[torch.Tensor]) -> None:
        """Begins to copy the parts, and puts the copies in their places, from where the message takes them."""
        try:
            targets = [page_locked(part.nbytes) for part in parts]
            self._copying = _lib.Copying(targets, parts)
            parts[:] = targets
        except Exception:
            self._fail(f"while page-locked memory was made for a batch of {self._whose}")

    def _fail(self, where: str) -> None:
        """Puts the error that is being handled in the place of the batch."""
        self._data = ExceptionWrapper(sys.exc_info(), where)  # type: ignore[no-untyped-call]
        self._message = None

    @property
    def is_copied(self) -> bool:
        """True if parts of it are copied, and it should not be opened before it is taken."""
        return self._copying is not None

    def open(self) -> Any:
        """Returns its content, or an error in place of one that does not unpickle here."""
        if self._message is None:
            return self._data
        if self._copying is not None:
            self._copying.wait()
        try:
            self._data = self._message.load()
        except Exception as error:
            self._fail(f"while a batch of {self._whose} was unpickled")
            self._data.why_here = str(error)
        self._message = self._copying = None
        return self._data
