"""`gather_masked`: the rows of all ranks that count, for metrics."""

import math
import zlib
from typing import Any

import torch
import torch.distributed as dist
from torch.utils import _pytree as pytree

__all__ = ["gather_masked"]


def gather_masked(
    values: Any, mask: torch.Tensor, *, group: "dist.ProcessGroup | None" = None
) -> Any:
    """Returns the rows of all ranks that a `sample_mask` marks as samples of their own.

    Each rank gets the same rows: those of rank 0, then those of rank 1, and so on. Ranks may have different
    numbers of rows, or none. All ranks of the group call it equally often. Without a process group, the rows of
    this process are returned.

    Which rank has a sample depends on the number of ranks, so the order of the rows does, too, and the last bits
    of a float sum over them. `math.fsum` rounds once, whatever the order.

    Args:
        values: A tensor `(B, ...)`, or dicts, lists and tuples of such tensors. Their further dimensions and
            dtypes are the same on all ranks.
        mask: The `sample_mask` of the batch, bool `(B,)`.
        group: The ranks that take different samples; all ranks unless given. In a mesh with tensor-parallel
            ranks, `mesh["dp"].get_group()`.

    Returns:
        `values` with tensors `(N, ...)`, where N is the number of samples that count on all ranks.

    Raises:
        TypeError: A value that is not a tensor, or a mask that is not bool `(B,)`.
        ValueError: Tensors that do not have B rows, or are not alike on all ranks.

    Examples:
        >>> for batch in loader:
        ...     mask = batch.pop("sample_mask")
        ...     right = model(batch["inputs"]).argmax(1) == batch["labels"]
        ...     counted.append(gather_masked(right, mask))
        >>> accuracy = torch.cat(counted).sum().item() / len(dataset)
    """
    tensors, form = pytree.tree_flatten(values)
    _check(tensors, mask)
    rows = [tensor[mask] for tensor in tensors]
    if rows and dist.is_available() and dist.is_initialized():
        counts = _counts(rows, group)
        rows = [_gathered(each, counts, group) for each in rows]
    return pytree.tree_unflatten(rows, form)


def _check(tensors: list[Any], mask: Any) -> None:
    if not isinstance(mask, torch.Tensor) or mask.dtype is not torch.bool or mask.ndim != 1:
        what = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, torch.Tensor) else repr(mask)
        msg = f"gather_masked: mask should be the batch's sample_mask, bool (B,), but got {what}"
        raise TypeError(msg)
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            msg = f"gather_masked: values should be tensors, but got {type(tensor).__qualname__}"
            raise TypeError(msg)
        if tensor.ndim == 0 or len(tensor) != len(mask):
            msg = (
                f"gather_masked: a tensor of shape {tuple(tensor.shape)} does not have a row for each of the "
                f"{len(mask)} samples of the mask"
            )
            raise ValueError(msg)


def _counts(rows: list[torch.Tensor], group: "dist.ProcessGroup | None") -> list[int]:
    """Returns how many rows each rank has.

    Raises:
        ValueError: On all ranks alike, if their rows differ in shape or dtype.
    """
    kinds = [f"{each.dtype} {tuple(each.shape[1:])}" for each in rows]
    own = torch.tensor([len(rows[0]), zlib.crc32(repr(kinds).encode())], device=rows[0].device)
    all_ranks = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_ranks, own, group=group)
    counts, sums = zip(*(each.tolist() for each in all_ranks), strict=True)
    if len(set(sums)) > 1:
        msg = (
            "gather_masked: the rows of the ranks have different shapes or dtypes; here they are "
            f"{', '.join(kinds)}: pad them to one shape"
        )
        raise ValueError(msg)
    return list(counts)


def _gathered(
    rows: torch.Tensor, counts: list[int], group: "dist.ProcessGroup | None"
) -> torch.Tensor:
    """Returns the rows of all ranks; sent as bytes, because no backend takes all dtypes."""
    shape = rows.shape[1:]
    size = math.prod(shape) * rows.element_size()
    own = torch.zeros(max(counts) * size, dtype=torch.uint8, device=rows.device)
    own[: len(rows) * size] = rows.detach().contiguous().reshape(-1).view(torch.uint8)
    all_ranks = [torch.empty_like(own) for _ in counts]
    dist.all_gather(all_ranks, own, group=group)
    parts = zip(all_ranks, counts, strict=True)
    gathered = torch.cat([part[: count * size] for part, count in parts])
    return gathered.view(rows.dtype).reshape(sum(counts), *shape)
