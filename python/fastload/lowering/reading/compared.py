"""Samples as they were read, beside those the dataset returns: the last proof before samples are made natively.

Owns the choice of the samples. Only datasets that touch nothing but memory are indexed: that opens no file in the
training process.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.columns.structure import fill, leaves
from fastload.lowering.memo import Memo
from fastload.registry import refuse

__all__ = ["check", "is_same"]

_COMPARED = 5
_PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None)])


def check(dataset: Any, structure: Any, memo: Memo) -> None:
    """Compares some samples with those of a structure, unless they were compared since its columns were made."""
    natives = tuple(leaf.native for _, leaf in leaves(structure))
    memo.of_objects("compared", natives, lambda: _compare(dataset, structure, natives))


def _compare(dataset: Any, structure: Any, natives: tuple[Any, ...]) -> bool:
    forms = (_lib.Leaf(place, leaf.form) for place, (_, leaf) in enumerate(leaves(structure)))
    try:
        program = _lib.Program(list(natives), fill(structure, forms))
    except (TypeError, ValueError) as error:
        refuse(str(error))
    if program.is_random():  # of which there are no two equal samples
        return False
    for place in range(_COMPARED):
        index = (len(program) - 1) * place // (_COMPARED - 1)
        try:
            want = dataset[index]
        except Exception as error:
            refuse(f"sample {index} raises {type(error).__name__}: {error}")
        if not is_same(program.sample(index), want):
            refuse(f"what was read of sample {index} is not what the dataset returns")
    return True


def is_same(got: Any, want: Any) -> bool:
    """Returns true if two samples, or batches, are the same, bit for bit."""
    kind: Any = type(want) if type(want) is not np.memmap else np.ndarray
    if type(got) is not kind:
        return False
    if isinstance(want, Mapping):
        return list(got) == list(want) and all(is_same(got[key], want[key]) for key in want)
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(is_same, got, want))
    if isinstance(want, torch.Tensor):
        return _described(got) == _described(want) and _bytes(got) == _bytes(want)
    if isinstance(want, np.ndarray | np.generic):
        is_alike = got.dtype == want.dtype and got.shape == want.shape
        return is_alike and bool(got.tobytes() == want.tobytes())
    return kind in _PLAIN and repr(got) == repr(want)  # tells -0.0 from 0.0


def _described(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.device, tensor.layout, tensor.requires_grad


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
