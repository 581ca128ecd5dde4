"""The part of `_lib` between a process and its workers; Linux and macOS only. There is no such module."""

from typing import final

import torch

@final
class Links:
    """The parent's ends of the links to the workers of one iterator.

    In a forked child they are inherited, and do nothing.
    """

    def __new__(cls) -> Links: ...
    def open(self) -> tuple[int, int]:
        """Opens a link; returns its number, the lowest that is free, and its worker's descriptor."""

    def watch(self, number: int, sentinel: int) -> None:
        """Takes the descriptor, owned from now on, that is readable once a worker has ended."""

    def send(self, number: int, message: bytes) -> None:
        """Sends a message to a worker, or keeps it until there is room; never waits.

        Raises:
            OSError: The system refuses.
        """

    def receive(
        self, timeout_s: float | None = None
    ) -> tuple[int, tuple[bytes, list[torch.Tensor]] | None] | None:
        """Waits for a message of any worker, with a look for signals; None if there was none in time.

        Args:
            timeout_s: Longest wait, in seconds; None waits for ever.

        Returns:
            The worker's number, and the payload with its parts: `uint8` tensors, whose slots the
            worker has again when they are dropped. In place of both None, once, if the worker is gone;
            what it sent before comes first, and half a message never.

        Raises:
            OSError: No memory can be shared, as with too many open files.
            RuntimeError: In a forked child.
        """

    def ready(self) -> int:
        """Returns how many messages have come that are not received yet.

        Raises:
            OSError: No memory can be shared.
        """

    def release(self, number: int) -> None:
        """Closes the link to a worker that is gone; another may have its number. Tensors stay."""

    def finish(self) -> None:
        """Tells the workers that what they send from now on is not read."""

    def close(self) -> None:
        """Closes the links to workers that are gone; tensors stay as they are."""

    def stats(self) -> dict[str, int]:
        """Returns `arenas`, their `arena_bytes` of address space, and `held_bytes` in use."""

@final
class WorkerLink:
    """A worker's end of the link to its parent.

    Args:
        descriptor: The descriptor that `Links.open` returned; owned from now on.
    """

    def __new__(cls, descriptor: int) -> WorkerLink: ...
    def watch(self) -> None:
        """Starts the thread that ends this process when its parent is gone."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Waits for a message, with a look for signals; None if there was none in time.

        Raises:
            EOFError: The parent has finished.
        """

    def is_over(self) -> bool:
        """Tells whether the parent has finished."""

    def take(self, len: int) -> torch.Tensor | None:
        """Returns a `uint8` tensor of that many bytes in a slot; None in a process forked from the worker.

        Raises:
            MemoryError: There is no memory.
        """

    def part(self, address: int, len: int) -> Part | None:
        """Returns the bytes of a live tensor in a slot, to be sent; None if they lie elsewhere."""

    def send(self, payload: bytes, parts: list[Part]) -> None:
        """Sends a message; waits for room, unless the parent has finished, who reads nothing then."""

    def trim(self, idle_s: float = 0.0) -> int:
        """Gives slots that were free for so long back to the system; returns how many bytes.

        On Linux their pages, one slot by one; on macOS arenas without any other slot.
        """

@final
class Part:
    """Some bytes of a slot, on their way to the parent."""

def own(data: bytes) -> torch.Tensor:
    """Returns a `uint8` tensor of its own with these bytes."""
