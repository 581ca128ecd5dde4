"""torch's `default_collate`, faster for what datasets mostly return, and with advice where samples differ in shape.

Owns shortcuts for exact types: tensors and arrays, copied natively into reused memory, lists of Python's numbers, and
containers of those. Leaves everything else to torch's own function, with the same results and errors.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate as _default_collate
from torch.utils.data import get_worker_info
from torch.utils.data._utils import collate

from fastload import _lib
from fastload.collate.fields import Path, title
from fastload.collate.rules import Pad

__all__ = ["advice", "allocator", "default_collate", "promotes"]

_torchs: Callable[[Any], Any] = _default_collate

_LARGE = 1 << 16
"""Bytes from which a batch is written to reused memory."""

_NUMBERS = {float: (_lib.floats, torch.float64), int: (_lib.ints, torch.int64)}

_FNS = dict(collate.default_collate_fn_map)


class _Promotes:
    """Whether tensors of several dtypes get a common one in this process, as in torch's loader without workers.

    Torch's workers stack into memory of the first one's dtype: values wrap around, or it raises.
    """

    is_on = False


promotes = _Promotes()

_STACK = Pad(dim=()).native(named=False)


def default_collate(batch: Sequence[Any]) -> Any:
    """Returns what torch's `default_collate` returns.

    Args:
        batch: Samples: tensors, arrays, numbers, text, and mappings and sequences of those.

    Raises:
        RuntimeError: Samples differ in shape; torch's own error, with a note that says what to write instead.
        TypeError: torch cannot collate samples of this type; torch's own error.
    """
    try:
        if collate.default_collate_fn_map != _FNS:
            return _torchs(batch)  # the user has registered a collate function with torch
        return _collated(batch)
    except RuntimeError as error:
        with contextlib.suppress(Exception):  # whatever a user's class raises
            if note := _note(list(batch), ()):
                error.add_note(note)
        raise


def _collated(batch: Sequence[Any]) -> Any:
    first = batch[0]
    kind = type(first)
    if kind in _NUMBERS:
        return _numbers(batch, kind)
    if kind is torch.Tensor:
        return _stacked(batch)
    if kind is np.ndarray:
        # arrays of text and objects get torch's own error
        is_numeric = all(type(each) is np.ndarray and each.dtype.kind in "biufc" for each in batch)
        return _stacked([torch.as_tensor(each) for each in batch]) if is_numeric else _torchs(batch)
    if kind is dict:
        return {key: _collated(list(map(itemgetter(key), batch))) for key in first}
    if kind is tuple or kind is list:
        size = len(first)
        if all(type(sample) is kind and len(sample) == size for sample in batch):
            return [_collated(values) for values in zip(*batch, strict=True)]
    return _torchs(batch)


def _numbers(batch: Sequence[Any], kind: type) -> Any:
    """Returns a tensor of Python numbers."""
    read, dtype = _NUMBERS[kind]
    numbers = read(batch if type(batch) is list else list(batch))
    # a mode, such as that of `set_default_device`, changes what torch makes
    if numbers is None or torch._C._len_torch_function_stack():
        return _torchs(batch)
    return torch.frombuffer(numbers, dtype=dtype).clone()


def _stacked(batch: Sequence[torch.Tensor]) -> Any:
    """Returns the tensors of a batch, stacked."""
    first = batch[0]
    if first.layout is not torch.strided or first.is_nested:
        return _torchs(batch)
    if promotes.is_on and _is_mixed(batch, first):
        return torch.stack(batch)  # type: ignore[arg-type]
    if first.nbytes * len(batch) < _LARGE:
        if get_worker_info() is not None:
            return _torchs(batch)  # which stacks them in shared memory
        return torch.stack(batch)  # type: ignore[arg-type]
    if not all(type(each) is torch.Tensor and each.is_contiguous() for each in batch):
        return _torchs(batch)
    try:
        return _STACK.collate(list(batch), "", allocate=allocator())[0]
    except (TypeError, ValueError):
        return _torchs(batch)


def _is_mixed(batch: Sequence[torch.Tensor], first: torch.Tensor) -> bool:
    try:
        return first.is_quantized or any(each.dtype != first.dtype for each in batch)
    except AttributeError:  # of None, or anything else that is no tensor
        return True


def allocator() -> Callable[[tuple[int, ...], str], torch.Tensor] | None:
    """Returns the allocator of tensors in shared memory, or None outside of worker processes.

    A worker hands a batch over in shared memory. A batch that is collated there, as by torch's `default_collate`,
    needs no second copy.
    """
    return None if get_worker_info() is None else _shared


def _shared(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    size = math.prod(shape) * kind.itemsize
    storage = torch.UntypedStorage._new_shared(size, device="cpu")  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=kind).set_(storage).resize_(shape)


def advice(path: Path, first: object, other: object) -> str:
    """Returns advice for a field whose samples cannot be stacked."""
    field = f"field {title(path)}" if path else "a sample"
    rule = f"{{{(path[0] if len(path) == 1 else path)!r}: Unpadded()}}" if path else "Unpadded()"
    return (
        f"{field} has shape {first} in one sample and {other} in another: pass "
        f"collate_fn=fastload.PadCollate() to pad it, or PadCollate({rule}) to keep its samples separate"
    )


def _note(values: list[Any], path: Path) -> str | None:
    """Returns the advice for the first field whose samples differ in shape."""
    first = values[0]
    if isinstance(first, torch.Tensor | np.ndarray):
        if getattr(first, "is_nested", False):
            return None
        shapes = [tuple(getattr(value, "shape", ())) for value in values]
        other = next((shape for shape in shapes if shape != shapes[0]), None)
        return None if other is None else advice(path, shapes[0], other)
    parts: Iterable[tuple[Any, list[Any]]]
    if isinstance(first, Mapping):
        parts = ((key, [value[key] for value in values]) for key in first)
    elif isinstance(first, tuple | list):
        sizes = [len(value) for value in values]
        other_size = next((size for size in sizes if size != sizes[0]), None)
        if other_size is not None:
            return advice(path, f"({sizes[0]},)", f"({other_size},)")
        names = getattr(type(first), "_fields", range(len(first)))
        parts = zip(names, map(list, zip(*values, strict=True)), strict=True)
    else:
        return None
    notes = (_note(part, (*path, key)) for key, part in parts)
    return next(filter(None, notes), None)
