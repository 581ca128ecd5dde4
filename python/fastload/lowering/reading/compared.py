"""What was read, beside what the dataset returns: the last proof before samples are made natively.

Owns the choice of the samples. Only datasets that touch nothing but memory are indexed: that opens no file in the
training process.
"""

from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.lowering.leaf import fill, leaves
from fastload.lowering.memo import Memo
from fastload.lowering.registry import NotNative, name

__all__ = ["check"]

_COMPARED = 5


def check(dataset: Any, structure: Any, count: int, memo: Memo) -> None:
    """Compares some samples, unless they were compared since the columns were made.

    Raises:
        NotNative: They differ, or the dataset raises.
    """
    found = list(leaves(structure))
    natives = tuple(leaf.native for _, leaf in found)
    memo.of_objects("compared", natives, lambda: _compare(dataset, structure, found, count))


def _compare(dataset: Any, structure: Any, found: list[Any], count: int) -> bool:
    numbered = (_lib.Leaf(place, leaf.form) for place, (_, leaf) in enumerate(found))
    try:
        program = _lib.Program([leaf.native for _, leaf in found], fill(structure, numbered))
    except (TypeError, ValueError) as error:
        raise NotNative(str(error)) from error
    for place in range(_COMPARED):
        index = (count - 1) * place // (_COMPARED - 1)
        try:
            want = dataset[index]
        except Exception as error:
            raise NotNative(f"sample {index} raises {type(error).__name__}: {error}") from error
        if not _is_same(program.sample(index), want):
            raise NotNative(f"what was read of sample {index} is not what the dataset returns")
    return True


def _is_same(got: Any, want: Any) -> bool:
    """Returns whether two samples are the same, bit for bit."""
    kind = type(want) if type(want) is not np.memmap else np.ndarray
    if type(got) is not kind:
        return False
    if isinstance(want, dict):
        return list(got) == list(want) and all(_is_same(got[key], want[key]) for key in want)
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(_is_same, got, want))
    if isinstance(want, torch.Tensor):
        is_alike = (got.dtype, got.shape, got.requires_grad) == (
            want.dtype,
            want.shape,
            want.requires_grad,
        )
        return is_alike and got.device == want.device and _bytes(got) == _bytes(want)
    if isinstance(want, np.ndarray | np.generic):
        return (got.dtype, got.shape) == (
            want.dtype,
            want.shape,
        ) and got.tobytes() == want.tobytes()
    return repr(got) == repr(want)  # of numbers and text; tells -0.0 from 0.0


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def named(dataset: Any) -> str:
    """Returns the name of a dataset's class."""
    return name(type(dataset))
