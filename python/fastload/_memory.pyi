"""The part of `_lib` that copies memory: to other tensors, to other processes. There is no such module."""

from typing import final

import torch

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
