"""Memory of batches that are made in worker processes of torch's.

A worker hands a batch over in shared memory. Made there in the first place, as torch's `default_collate`
does, it need not be copied again.
"""

from collections.abc import Callable

import torch
from torch.utils.data import get_worker_info

__all__ = ["allocator"]


def allocator() -> Callable[[tuple[int, ...], str], torch.Tensor] | None:
    """Returns what makes tensors in shared memory, or None outside of worker processes."""
    return None if get_worker_info() is None else _shared


def _shared(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    tensor = torch.empty(0, dtype=kind)
    numbers = 1
    for size in shape:
        numbers *= size
    storage = torch.UntypedStorage._new_shared(numbers * tensor.element_size(), device="cpu")  # type: ignore[no-untyped-call]
    strides = [1] * len(shape)
    for dim in range(len(shape) - 1, 0, -1):
        strides[dim - 1] = strides[dim] * shape[dim]
    return tensor.set_(storage, 0, shape, strides)
