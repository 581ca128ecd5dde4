"""`Room`: refuses a batch for which there is no memory, before any of it is allocated.

Without that, the system ends the process, or another one, while the batch is written.
"""

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
        checked: What a native stream takes as `check`.
        refused: Why the last batch was refused; empty for none.
    """

    def __init__(self) -> None:
        self.checked = min(_LARGE, budget_bytes(None)), self._check
        self.refused = ""

    def _check(self, size: int, samples: int) -> None:
        account, ours = memory.read(), _lib.memory_stats()
        room = account.room_bytes + int(ours["leased_bytes"]) + int(ours["idle_bytes"])
        if size > room:
            self.refused = refusal(size, samples, room, account)
            raise MemoryError(self.refused)


def refusal(size: int, samples: int, room: int, account: Memory) -> str:
    """Returns why a batch is not made.

    Args:
        size: Its bytes.
        samples: Its samples.
        room: The bytes that there are for it.
        account: What can still be allocated.
    """
    what = f"a batch of {samples:,} samples takes" if samples > 1 else "a sample takes"
    advice = "use smaller samples"
    if fitting := samples * room // size:
        advice = f"use batches of {fitting:,} samples at most"
    return (
        f"{what} {shown(size)}, but only {shown(room)} can be allocated "
        f"({shown(account.available_bytes)} of memory and {shown(account.swap_bytes)} of swap space are free; the limit is "
        f"{account.limit}): {advice}, or give the process more memory"
    )
