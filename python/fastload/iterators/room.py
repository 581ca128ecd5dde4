"""`Room`: refuses a batch for which there is no memory, before any of it is allocated.

Without that, the system ends the process, or another one, while the batch is written.
"""

from pathlib import Path

from fastload import _lib
from fastload.machine import memory
from fastload.machine.budget import budget_bytes
from fastload.machine.memory import Memory, shown

__all__ = ["Room"]

_LARGE = 256 << 20  # bytes; beside the making of a larger batch, reading the account costs nothing


class Room:
    """Compares large batches of known size with the memory that can still be allocated.

    Swap space counts as memory, and so does all memory that batches hold now: it may be given back until then.

    Attributes:
        checked: The `check` of a native stream.
        refused: The reason why the first batch was refused; empty if it was not.
    """

    def __init__(self) -> None:
        self.checked = min(_LARGE, budget_bytes(None)), self._check
        self.begin(0)

    def begin(self, first: int) -> None:
        """Begins an epoch whose first sample has this position in the stream of samples."""
        self._first, self.refused = first, ""

    def _check(self, size: int, samples: int, first: int, path: Path | None) -> None:
        account, ours = memory.read(), _lib.memory_stats()
        room = account.room_bytes + int(ours["leased_bytes"]) + int(ours["idle_bytes"])
        if size > room:
            msg = refusal(size, samples, room, account, path)
            if first == self._first:
                self.refused = msg
            raise MemoryError(msg)


def refusal(size: int, samples: int, room: int, account: Memory, path: Path | None = None) -> str:
    """Returns why a batch is not made.

    Args:
        size: Its bytes.
        samples: Its samples.
        room: The bytes that there are for it.
        account: The memory that can still be allocated.
        path: The file of the only sample; None if there are several samples, or no file.
    """
    one = "a sample takes" if path is None else f"the sample of {path} takes"
    what = f"a batch of {samples:,} samples takes" if samples > 1 else one
    advice = "use smaller samples"
    if fitting := samples * room // size:
        advice = f"use batches of {fitting:,} samples at most"
    return (
        f"{what} {shown(size)}, but only {shown(room)} can be allocated "
        f"({shown(account.available_bytes)} of memory and {shown(account.swap_bytes)} of swap space are free; the limit is "
        f"{account.limit}): {advice}, or give the process more memory"
    )
