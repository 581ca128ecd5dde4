"""Datasets of torch.utils.data, and what needs no dataset class: tensors, arrays and lists."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from fastload import _lib, registry
from fastload.columns.arrow import rows
from fastload.columns.structure import containers, fill, leaves
from fastload.lowering.leaf import Leaf, select
from fastload.lowering.memo import Memo
from fastload.lowering.structure import structure
from fastload.memory import layout
from fastload.registry import NotNative

__all__ = ["numbers"]

_DENSE = "make it a dense tensor of numbers on the CPU"
_MOST_ARRAYS = 10_000
"""Longest list of arrays that is a dataset; each becomes a column of its own."""
_MOST_TENSORS = 100
"""Most tensors that are joined to a column: before each batch each is asked whether torch has moved it."""


def _state_of_tensor(tensor: Any) -> Any:
    """Returns what a tensor is and where its memory is, which is that of no other while a column has it."""
    is_odd = not tensor.is_cpu or tensor.is_conj() or tensor.is_neg()
    return type(tensor), is_odd, _tensor_state(tensor)


@registry.dataset(
    "torch.utils.data.dataset.TensorDataset",
    notes="dense tensors on the CPU without gradients",
    state=lambda dataset, _: list(map(_state_of_tensor, dataset.tensors)),
)
def _tensor_dataset(dataset: Any, memo: Memo) -> Any:
    return tuple(tensor_leaf(tensor, memo) for tensor in dataset.tensors)


@registry.dataset(
    "torch.utils.data.dataset.Subset",
    notes="of anything native, so also what `random_split` returns",
    state=lambda subset, memo: (
        registry.state_of(subset.dataset, memo),
        _picked(subset.indices, len(subset.dataset), memo),
    ),
)
def _subset(dataset: Any, memo: Memo) -> Any:
    whole = structure(dataset.dataset, memo)
    picked = _picked(dataset.indices, len(dataset.dataset), memo)
    if any(leaf.from_zero for _, leaf in leaves(whole)):
        _check_from_zero(dataset.indices, memo)
    count = f"{len(picked)} of"
    selected = (select(leaf, picked, count, memo) for _, leaf in leaves(whole))
    return fill(whole, (replace(leaf, from_zero=False) for leaf in selected))


@registry.dataset(
    "torch.utils.data.dataset.ConcatDataset",
    notes="of native datasets whose samples have one structure, and one dtype for each value",
    state=lambda joined, memo: (
        [registry.state_of(part, memo) for part in joined.datasets],
        list(joined.cumulative_sizes),
    ),
)
def _concat_dataset(dataset: Any, memo: Memo) -> Any:
    of_tensors = [each for each in dataset.datasets if type(each) in (TensorDataset, torch.Tensor)]
    if len(of_tensors) > _MOST_TENSORS:
        msg = f"the ConcatDataset joins more than {_MOST_TENSORS} datasets of tensors"
        raise NotNative(msg, "join their tensors, torch.cat(list)")
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
    return fill(parts[0], (_joined(each, memo) for each in zip(first, *others, strict=True)))


def _state_of_stacked(dataset: Any, memo: Memo) -> Any:
    parts = dataset.datasets
    keys = list(parts) if isinstance(parts, dict) else None
    values = parts if keys is None else parts.values()
    return keys, [registry.state_of(part, memo) for part in values]


@registry.dataset(
    "torch.utils.data.dataset.StackDataset",
    notes="of native datasets, as a tuple or a dict",
    state=_state_of_stacked,
)
def _stack_dataset(dataset: Any, memo: Memo) -> Any:
    parts = dataset.datasets
    if isinstance(parts, dict):
        return {key: structure(part, memo) for key, part in parts.items()}
    return tuple(structure(part, memo) for part in parts)


@registry.dataset(
    "torch.Tensor",
    methods=("__getitems__",),
    notes="itself a dataset: its rows",
    state=lambda tensor, _: _state_of_tensor(tensor),
)
def _tensor(dataset: torch.Tensor, memo: Memo) -> Any:
    return tensor_leaf(dataset, memo)


@registry.dataset(
    "numpy.ndarray",
    "numpy.memmap",
    methods=("__getitems__",),
    notes="itself a dataset: its rows",
    state=lambda array, _: _array_state(array),
)
def _array(dataset: Any, memo: Memo) -> Any:
    return array_leaf(dataset, memo)


@registry.dataset(
    "builtins.list",
    methods=(),
    notes="of ints, floats or bools; of at most a hundred tensors, or ten thousand arrays",
    state=lambda items, memo: _state_of_list(items, memo),
)
def _list(dataset: list[Any], memo: Memo) -> Any:
    kind = type(dataset[0]) if dataset else None
    if kind in _NUMBERS:
        return numbers("items", dataset, memo)
    kinds = set(map(type, dataset))
    if kind not in (torch.Tensor, np.ndarray) or len(kinds) > 1:
        names = ", ".join(sorted(map(registry.name, kinds)))
        msg = f"the list holds {'several types: ' if len(kinds) > 1 else ''}{names}"
        msg = msg if kinds else "the list is empty"
        raise NotNative(msg, "describe them by fastload.columns in a fastload.Dataset")
    lower, state, most, library = (
        (array_leaf, _array_state, _MOST_ARRAYS, "np")
        if kind is np.ndarray
        else (tensor_leaf, _tensor_state, _MOST_TENSORS, "torch")
    )
    if len(dataset) > most:
        msg = f"the list holds more than {most} {registry.name(kind)}s"
        raise NotNative(msg, f"stack them into one, {library}.stack(list)")

    def make() -> Leaf:
        once = Memo()  # results for one item are not needed again
        try:
            rows = [item[None] for item in dataset]
        except RuntimeError as error:
            raise _not_dense(error) from error
        return _joined([lower(row, once) for row in rows], once, "items of the list")

    leaf = memo.of_list("tensors", dataset, make, _states(dataset, state))
    return replace(leaf, column=f"{len(dataset)} items")


def _state_of_list(items: list[Any], memo: Memo) -> Any:
    return _list(items, memo).native


def _states(items: list[Any], state: Callable[[Any], tuple[int, Any]]) -> Any:
    """Returns the state that may change in items while the items stay the same objects.

    It has few objects that Python's garbage collector looks at, which would take longer than the rest.
    """
    layouts: dict[Any, int] = {}
    pointers, kinds = [], []
    for item in items:
        try:
            pointer, layout = state(item)
        except RuntimeError as error:
            raise _not_dense(error) from error
        pointers.append(pointer)
        kinds.append(layouts.setdefault(layout, len(layouts)))
    return pointers, kinds, list(layouts)


def _not_dense(error: RuntimeError) -> NotNative:
    """Returns the refusal of a list whose item is nested, sparse, fake or cut short."""
    return NotNative(f"an item of the list is no dense tensor in memory: {error}", _DENSE)


def _tensor_state(tensor: Any) -> tuple[int, Any]:
    """Returns where a tensor's memory is, and how it is laid out."""
    layout = tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad
    return tensor.data_ptr(), layout


def _array_state(array: Any) -> tuple[int, Any]:
    """Returns where an array's memory is, and how it is laid out."""
    layout = array.dtype, array.shape, array.strides
    return array.__array_interface__["data"][0], layout


_NUMBERS = {int: np.int64, float: np.float64, bool: np.bool_}


def numbers(use: str, values: list[Any], memo: Memo) -> Leaf:
    """Returns the leaf of a list of Python numbers, which stay such in single samples."""

    def make() -> _lib.Rows | None:
        kinds = set(map(type, values))
        dtype = _NUMBERS.get(kinds.pop()) if len(kinds) == 1 else None
        try:
            return None if dtype is None else rows(np.array(values, dtype))
        except OverflowError:
            return None

    made = memo.of_list(f"numbers {use}", values, make)
    if made is None:
        msg = f"the {use} are not all ints of 64 bits, all floats or all bools"
        raise NotNative(msg, "make them so")
    return Leaf(made, f"{len(made)} numbers", form="number")


def tensor_leaf(tensor: Any, memo: Memo) -> Leaf:
    """Returns the leaf of a tensor's rows."""
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
        memory = layout.of_tensor(tensor)
        native = memo.of_objects("rows", (tensor,), lambda: _lib.Rows(*memory), memory[:-1])
    except TypeError as error:
        raise NotNative(str(error), _DENSE) from error
    words = f"{len(tensor)} rows of {memory.dtype}, shape {tuple(tensor.shape[1:])}"
    return Leaf(native, words, listed=True)


def array_leaf(array: Any, memo: Memo) -> Leaf:
    """Returns the leaf of an array's rows."""
    if array.ndim == 0:
        msg = "the array is a scalar"
        raise NotNative(msg, "give it a first dimension that counts samples")
    if array.ndim == 1 and array.dtype == np.uint64:
        msg = "torch makes no tensors of NumPy's uint64 scalars"
        raise NotNative(msg, "make it an array of int64")
    try:
        memory = layout.of_array(array)
    except (TypeError, ValueError) as error:
        raise NotNative(str(error), "make it an array of numbers") from error
    words = f"{len(array)} rows of {memory.dtype}, shape {array.shape[1:]}"
    native = memo.of_objects("rows", (array,), lambda: _lib.Rows(*memory), memory[:-1])
    return Leaf(native, words, form="array", listed=True)


def _picked(indices: Any, length: int, memo: Memo) -> _lib.Rows:
    """Returns the places that a subset's indices mean in a dataset of `length` samples."""
    picked: _lib.Rows | None
    if type(indices) is list:
        picked = memo.of_list("indices", indices, lambda: _of_list(indices, length), length)
    elif type(indices) is range:
        use = f"{indices} of {length}"
        picked = memo.of_objects(use, (), lambda: _places(_of_range(indices), length))
    elif type(indices) in (np.ndarray, np.memmap, torch.Tensor):
        given = np.asarray(indices)
        picked = memo.of_array("indices", given, lambda copy: _places(copy, length), length)
    elif type(indices) is tuple:
        picked = memo.of_objects(
            "indices", (indices,), lambda: _of_list(list(indices), length), length
        )
    else:  # what counts is what it returns for a place, as a pandas Series does by its labels
        msg = f"the indices of the Subset are a {registry.name(type(indices))}"
        raise NotNative(msg, "make them a list")
    if picked is None:
        msg = f"the indices of the Subset are not all integers from {-length} to {length - 1}"
        raise NotNative(msg, "make them so")
    return picked


def _check_from_zero(indices: Any, memo: Memo) -> None:
    """Refuses indices of which a class that was read may make another sample: others than ints from 0 on."""
    is_known = type(indices) is range and (not indices or min(indices) >= 0)
    if type(indices) is list:
        is_known = memo.of_list(
            "from zero",
            indices,
            lambda: set(map(type, indices)) <= {int} and min(indices, default=0) >= 0,
        )
    if not is_known:
        msg = "the indices of the Subset are not all Python ints from 0 on"
        raise NotNative(msg, "make them so")


def _of_list(indices: list[Any], length: int) -> _lib.Rows | None:
    if len(set(map(type, indices))) > 1:
        return None
    return _places(np.asarray(indices), length)


def _of_range(indices: range) -> np.ndarray[Any, Any]:
    try:
        return np.arange(indices.start, indices.stop, indices.step, dtype=np.int64)
    except OverflowError:
        return np.asarray(indices)


def _places(given: np.ndarray[Any, Any], length: int) -> _lib.Rows | None:
    if given.size == 0 and given.ndim == 1:
        return rows(np.zeros(0, np.int64))
    if given.ndim != 1 or given.dtype.kind not in "iu":
        return None
    if given.min() < -length or given.max() >= length:
        return None
    given = given.astype(np.int64, copy=False)
    return rows(given if given.min() >= 0 else np.where(given < 0, given + length, given))


def _joined(parts: Any, memo: Memo, what: str = "parts of the ConcatDataset") -> Leaf:
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
        natives = tuple(leaf.native for leaf in parts)
        native = memo.of_objects("joined", natives, lambda: _lib.concat(list(natives)))
    except ValueError as error:
        msg = f"the {what} do not fit together: {error}"
        raise NotNative(
            msg, "give them one dtype, and one shape where they are tensors or arrays"
        ) from error
    column = " + ".join(leaf.column for leaf in parts)
    return replace(
        first,
        native=native,
        column=column,
        listed=False,
        from_zero=any(leaf.from_zero for leaf in parts),
        draws=any(leaf.draws for leaf in parts),
        is_read=any(leaf.is_read for leaf in parts),
        heavy=any(leaf.heavy for leaf in parts),
    )
