"""A batch that has come from a worker process, on its way to the user.

Owns its letter until it is opened. With page-locked memory that is when the batch is taken: until then the
threads of the pool copy its parts, while the training goes on. Refuses to know in which order batches are taken.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._utils import ExceptionWrapper

from fastload import _lib
from fastload.processes.pickling import loads

__all__ = ["Allocate", "Arrival", "page_locked"]

Allocate = Callable[[int], torch.Tensor]


def page_locked(length: int) -> torch.Tensor:
    """Returns page-locked memory of torch's own, which waits for copies to a device when it is freed."""
    return torch.empty(length, dtype=torch.uint8, pin_memory=True)


class Arrival:
    """A batch, or what else a worker says.

    Args:
        worker: Who says it.
        payload: The pickles of what it is about, and of itself.
        parts: The memory beside them.
        allocate: Makes the memory that parts are copied to; None where they stay.

    Attributes:
        seq: What it is about.
        size: Its bytes.
        cost: What it took its worker.
    """

    def __init__(
        self, worker: int, payload: bytes, parts: list[torch.Tensor], allocate: Allocate | None
    ) -> None:
        self._whose = f"DataLoader worker process {worker}"
        self._copying: _lib.Copying | None = None
        self._letter: Any = loads(payload, parts)
        self._data: Any = None
        self.seq, self.cost = self._letter.load()
        self.size = sum(part.nbytes for part in parts) + len(payload)
        if allocate is not None and parts:
            self._copy(parts, allocate)

    def _copy(self, parts: list[torch.Tensor], allocate: Allocate) -> None:
        """Begins to copy the parts, and puts the copies in their places, from where the letter takes them."""
        try:
            targets = [allocate(part.nbytes) for part in parts]
            self._copying = _lib.Copying(targets, parts)
            parts[:] = targets
        except Exception:
            self._fail(f"while page-locked memory was made for a batch of {self._whose}")

    def _fail(self, where: str) -> None:
        """Puts the error that is being handled in the place of the batch."""
        self._data = ExceptionWrapper(sys.exc_info(), where)  # type: ignore[no-untyped-call]
        self._letter = None

    @property
    def is_copied(self) -> bool:
        """True if parts of it are copied, and it should not be opened before it is taken."""
        return self._copying is not None

    def open(self) -> Any:
        """Returns what it says, or an error in the place of what does not unpickle here."""
        if self._letter is None:
            return self._data
        if self._copying is not None:
            self._copying.wait()
        try:
            self._data = self._letter.load()
        except Exception as error:
            self._fail(f"while a batch of {self._whose} was unpickled")
            self._data.why_return = str(error)
        self._letter = self._copying = None
        return self._data
