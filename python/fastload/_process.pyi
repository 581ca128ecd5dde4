"""The part of `_lib` that is of the whole process: its threads and memory, and the links to its workers. There is no such module."""

from typing import final

import torch

def pool_threads() -> int:
    """Returns how many native threads are alive now."""

def pool_thread_ids() -> list[int]:
    """Returns the system's numbers of the native threads that run now; zeros on other systems than Linux."""

def park() -> None:
    """Ends idle native threads now and waits until they are gone (before a fork)."""

def shutdown() -> None:
    """Stops the native threads for good, with a time limit; for interpreter exit."""

def memory_stats() -> dict[str, int]:
    """Returns bytes leased to tensors (`leased_bytes`) and kept for reuse (`idle_bytes`).

    And how many blocks were mapped so far, because none was there for reuse: `mapped_blocks`.
    """

def trim_memory() -> int:
    """Gives memory kept for reuse back to the system; returns how many bytes."""

@final
class Copying:
    """Copies tensors into others on the threads of the pool; the tensors are kept until it is gone.

    Args:
        targets: Contiguous CPU tensors that no other code uses.
        sources: As many, of the same sizes in bytes.

    Raises:
        TypeError: A tensor of another kind.
        ValueError: Other sizes, or numbers.
    """

    def __new__(cls, targets: list[torch.Tensor], sources: list[torch.Tensor]) -> Copying: ...
    def wait(self) -> None:
        """Waits until everything is copied, detached, and helps."""

def make_file(name: str) -> int:
    """Makes an empty file that processes can map privately; Linux and macOS only.

    Args:
        name: Its name where memory is listed (Linux: it is of `memfd_create`; elsewhere it lies among
            the temporary files, unlinked).

    Returns:
        Its descriptor, which is the caller's.

    Raises:
        OSError: There is no memory, no descriptor, or no room.
    """

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
