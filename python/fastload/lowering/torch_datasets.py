"""Datasets of torch.utils.data, and what needs no dataset class: tensors, arrays and lists."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastload import _arrays, _lib
from fastload.lowering import registry
from fastload.lowering.leaf import Leaf, containers, fill, leaves
from fastload.lowering.memo import Memo
from fastload.lowering.registry import NotNative
from fastload.lowering.structure import structure

__all__ = ["array_leaf", "numbers", "rows", "tensor_leaf"]

_MOST_TENSORS = 10_000
"""Longest list of tensors that is a dataset; each becomes a column of its own."""


@registry.dataset(
    "torch.utils.data.dataset.TensorDataset", notes="dense tensors on the CPU without gradients"
)
def _tensor_dataset(dataset: Any, _memo: Memo) -> Any:
    return tuple(tensor_leaf(tensor) for tensor in dataset.tensors)


@registry.dataset(
    "torch.utils.data.dataset.Subset",
    notes="of anything native, so also what `random_split` returns",
)
def _subset(dataset: Any, memo: Memo) -> Any:
    whole = structure(dataset.dataset, memo)
    length = len(dataset.dataset)
    picked = _picked(dataset.indices, length, memo)
    chosen = rows(picked)
    count = f"{len(picked)} of"
    return fill(
        whole,
        (
            leaf.over(_lib.Select(leaf.native, chosen), f"{count} {leaf.column}")
            for _, leaf in leaves(whole)
        ),
    )


@registry.dataset(
    "torch.utils.data.dataset.ConcatDataset",
    notes="of native datasets whose samples have one structure, and one dtype for each value",
)
def _concat_dataset(dataset: Any, memo: Memo) -> Any:
    parts = [structure(part, memo) for part in dataset.datasets]
    lengths = itertools.accumulate(len(next(leaves(part))[1].native) for part in parts)
    if list(lengths) != list(dataset.cumulative_sizes):
        msg = "a part of the ConcatDataset has changed its length since it was made"
        raise NotNative(msg, "make the ConcatDataset anew")
    first, *others = ([leaf for _, leaf in leaves(part)] for part in parts)
    paths = [[path for path, _ in leaves(part)] for part in parts]
    kinds = [containers(part) for part in parts]
    if any(each != paths[0] for each in paths) or any(each != kinds[0] for each in kinds):
        msg = "the parts of the ConcatDataset give samples of different structure"
        raise NotNative(msg, "give them one structure")
    return fill(parts[0], (_joined(each) for each in zip(first, *others, strict=True)))


@registry.dataset(
    "torch.utils.data.dataset.StackDataset", notes="of native datasets, as a tuple or a dict"
)
def _stack_dataset(dataset: Any, memo: Memo) -> Any:
    parts = dataset.datasets
    if isinstance(parts, dict):
        return {key: structure(part, memo) for key, part in parts.items()}
    return tuple(structure(part, memo) for part in parts)


@registry.dataset("torch.Tensor", methods=(), notes="itself a dataset: its rows")
def _tensor(dataset: torch.Tensor, _memo: Memo) -> Any:
    return tensor_leaf(dataset)


@registry.dataset("numpy.ndarray", "numpy.memmap", methods=(), notes="itself a dataset: its rows")
def _array(dataset: Any, _memo: Memo) -> Any:
    return array_leaf(dataset)


@registry.dataset(
    "builtins.list",
    methods=(),
    notes="of ints, floats or bools; of at most ten thousand tensors or arrays",
)
def _list(dataset: list[Any], memo: Memo) -> Any:
    kind = type(dataset[0]) if dataset else None
    if kind in _NUMBERS:
        return numbers("items", dataset, memo)
    if kind not in (torch.Tensor, np.ndarray) or set(map(type, dataset)) != {kind}:
        msg = f"the list holds values of {registry.name(kind)}, or nothing, or several types"
        raise NotNative(msg, "describe them by fastload.columns in a fastload.Dataset")
    if len(dataset) > _MOST_TENSORS:
        msg = f"the list holds more than {_MOST_TENSORS} tensors"
        raise NotNative(msg, "stack them into one, torch.stack(list)")
    lower = array_leaf if kind is np.ndarray else tensor_leaf
    return replace(_joined([lower(item[None]) for item in dataset]), column=f"{len(dataset)} items")


_NUMBERS = {int: np.int64, float: np.float64, bool: np.bool_}


def numbers(use: str, values: list[Any], memo: Memo) -> Leaf:
    """Returns the leaf of a list of Python numbers, which stay such in single samples.

    Raises:
        NotNative: Numbers of several types, or other things.
    """

    def make() -> np.ndarray[Any, Any] | None:
        kinds = set(map(type, values))
        dtype = _NUMBERS.get(kinds.pop()) if len(kinds) == 1 else None
        try:
            return None if dtype is None else np.array(values, dtype)
        except OverflowError:
            return None

    made = memo.of_list(f"numbers {use}", values, make)
    if made is None:
        msg = f"the {use} are not all ints of 64 bits, all floats or all bools"
        raise NotNative(msg, "make them so")
    return Leaf(rows(made), f"{len(made)} numbers", form="number")


def tensor_leaf(tensor: Any) -> Leaf:
    """Returns the leaf of a tensor's rows.

    Raises:
        NotNative: Not a plain dense tensor on the CPU.
    """
    if type(tensor) is not torch.Tensor:
        msg = f"a tensor is a {registry.name(type(tensor))}"
        raise NotNative(msg, "make it a torch.Tensor")
    if tensor.requires_grad:
        msg = "a tensor requires gradients, and so do its rows"
        raise NotNative(msg, "detach() it")
    if tensor.ndim == 0:
        msg = "a tensor is a scalar"
        raise NotNative(msg, "give it a first dimension that counts samples")
    try:
        memory = _arrays.of_tensor(tensor)
    except TypeError as error:
        raise NotNative(str(error), "make it a dense tensor on the CPU") from error
    words = f"{len(tensor)} rows of {memory.dtype}, shape {tuple(tensor.shape[1:])}"
    return Leaf(_lib.Rows(*memory), words, listed=True)


def array_leaf(array: Any) -> Leaf:
    """Returns the leaf of an array's rows.

    Raises:
        NotNative: Elements that no tensor can have.
    """
    if array.ndim == 0:
        msg = "the array is a scalar"
        raise NotNative(msg, "give it a first dimension that counts samples")
    try:
        memory = _arrays.of_array(array)
    except (TypeError, ValueError) as error:
        raise NotNative(str(error), "make it an array of numbers") from error
    words = f"{len(array)} rows of {memory.dtype}, shape {array.shape[1:]}"
    return Leaf(_lib.Rows(*memory), words, form="array", listed=True)


def rows(array: np.ndarray[Any, Any]) -> _lib.Rows:
    """Returns the native column of an array of numbers."""
    return _lib.Rows(*_arrays.of_array(array))


def _picked(indices: Any, length: int, memo: Memo) -> np.ndarray[Any, Any]:
    """Returns the places that a subset's indices mean in a dataset of `length` samples.

    Raises:
        NotNative: Something else than integers of that dataset.
    """
    place = "the indices of the Subset"
    if type(indices) is list:
        leaf = memo.of_list("indices", indices, lambda: _places(indices, length), length)
    else:
        leaf = _places(indices, length)
    if leaf is None:
        msg = f"{place} are not all integers from {-length} to {length - 1}"
        raise NotNative(msg, "make them so")
    return leaf


def _places(indices: Any, length: int) -> np.ndarray[Any, Any] | None:
    if type(indices) is list and len(set(map(type, indices))) > 1:
        return None
    given = np.asarray(indices)
    if given.size == 0 and given.ndim == 1:
        return np.zeros(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        return None
    if given.min() < -length or given.max() >= length:
        return None
    given = given.astype(np.int64, copy=False)
    return given if given.min() >= 0 else np.where(given < 0, given + length, given)


def _joined(parts: Any) -> Leaf:
    """Returns the leaf that has the samples of several leaves, one after the other."""
    first: Leaf = parts[0]
    for leaf in parts:
        same = (leaf.form, leaf.wrap, leaf.tail) == (first.form, first.wrap, first.tail)
        if not same:
            msg = "the parts of the ConcatDataset end in different Python calls, or values"
            raise NotNative(msg, "give them the same transform")
        if leaf.alone is not None:
            msg = f"a ConcatDataset asks for single samples, and {leaf.alone.why}"
            raise NotNative(msg, "join the parts in another way than by ConcatDataset")
    try:
        native = _lib.Concat([leaf.native for leaf in parts])
    except ValueError as error:
        msg = f"the parts of the ConcatDataset do not fit together: {error}"
        raise NotNative(msg, "give them one dtype") from error
    column = " + ".join(leaf.column for leaf in parts)
    return replace(first, native=native, column=column, listed=False)
