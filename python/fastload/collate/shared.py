"""Shared memory for batches made in worker processes.

A worker hands a batch over in shared memory. A batch that is collated there directly, as by torch's
`default_collate`, needs no second copy.
"""

from collections.abc import Callable

import torch
from torch.utils.data import get_worker_info

__all__ = ["allocator"]


def allocator() -> Callable[[tuple[int, ...], str], torch.Tensor] | None:
    """Returns the allocator of tensors in shared memory, or None outside of worker processes."""
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
