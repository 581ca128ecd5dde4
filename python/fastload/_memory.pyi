"""The part of `_lib` that copies memory: to other tensors, to other processes. There is no such module."""

from typing import final

import torch

@final
class Copying:
    """Copies tensors into others on the threads of the pool; the tensors are kept until it is gone.

    Args:
        targets: Contiguous CPU tensors that nobody else uses.
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
        name: What it is called where memory is listed (Linux: it is of `memfd_create`; elsewhere it lies among
            the temporary files, unlinked).

    Returns:
        Its descriptor, which is the caller's.

    Raises:
        OSError: There is no memory, no descriptor, or no room.
    """

def deposit(
    descriptor: int, at: int, block: tuple[int, int, int], exchange: bool, name: str
) -> int:
    """Writes bytes of a live object to a file of `make_file`; Linux and macOS only.

    Args:
        descriptor: The file.
        at: Where in it; where memory is exchanged, as far into a page as the bytes are.
        block: The address of the bytes, their number, and the address that was returned when the memory was
            allocated that they lie in; 0 where that is not known.
        exchange: Whether the pages of the process may become private mappings of the file's, which nobody
            can tell: those of large blocks that the C library has allocated (Linux; elsewhere none do).
        name: What the file, and others that memory may have been exchanged with, are called.

    Returns:
        How many of the bytes are the file's pages now.

    Raises:
        OSError: The file cannot be written.
    """

def is_deposited(descriptor: int, at: int, block: tuple[int, int, int]) -> bool:
    """Returns whether bytes are pages here of the file, which has them at `at`, and none was changed since.

    Raises:
        OSError: The memory of the process cannot be looked at.
    """

def is_in_heap(block: tuple[int, int, int]) -> bool:
    """Returns whether large bytes lie in the main heap: their pages may stay a file's when they are freed.

    Raises:
        OSError: The memory of the process cannot be looked at.
    """
