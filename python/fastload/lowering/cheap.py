"""Recognises code whose samples cost less than handing them over: it only reads memory.

Reads the compiled code of `__getitem__`, or of the `__iter__` of an iterable dataset, and runs nothing of the
user's. The names of such code refer to data in memory, it calls only known fast functions, and has no loop but
the one that yields. So it draws, opens and stores nothing. Refuses everything unknown: then a worker measures
the cost.
"""

import builtins
import dis
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import ConcatDataset, IterableDataset, Subset, TensorDataset

from fastload.lowering.reading.attributes import is_plain, of_class

__all__ = ["is_cheap"]

_ROW_BYTES = 1 << 17
"""Bytes. The cost of larger samples is measured: one pass over them takes tens of microseconds."""
_ROW_ENTRIES = 1_000
"""The same limit for entries of a list, which are objects."""
_DEPTH = 4
_ALL = 100_000
"""Length up to which all entries of a list are examined; of longer lists, a selection is."""

_NUMBERS = {int, float, complex, bool, str, bytes, type(None), range, slice, torch.dtype}
_FUNCTIONS = {
    builtins: "abs bool bytes dict divmod float frozenset int iter len list max min range reversed round slice "
    "str sum tuple zip enumerate",
    torch: "as_tensor from_numpy tensor",
    np: "array asarray ascontiguousarray",
}
_QUICK = {
    id(getattr(module, name)) for module, names in _FUNCTIONS.items() for name in names.split()
}
_TAKEN = (
    "T astype bfloat16 bool byte clone contiguous copy detach dim double dtype flatten float "
    "half int item long ndim numel numpy permute reshape shape short size squeeze swapaxes "
    "tolist transpose unsqueeze view count endswith get index items join keys lower rstrip "
    "lstrip split startswith strip upper values"
)
"""Attributes of arrays, tensors, text and containers that are quick, whichever of them has it."""
_OF_MODULES = (
    "as_tensor from_numpy tensor array asarray ascontiguousarray bfloat16 bool bool_ float "
    "float16 float32 float64 half int int8 int16 int32 int64 long uint8 uint16 uint32 uint64"
)
"""Attributes of the modules torch and numpy that are."""

_QUICK_NAMES = frozenset(_TAKEN.split()), frozenset(_OF_MODULES.split())

_LOOPS = (
    "FOR_ITER",
    "JUMP_BACKWARD",
    "POP_JUMP_BACKWARD",
    "YIELD",
    "RETURN_GENERATOR",
    "GEN_START",
)
_REFUSED = (
    *(
        "SEND",
        "AWAIT",
        "ASYNC",
        "WITH",
        "IMPORT",
        "SETUP",
        "DELETE",
        "RAISE",
        "SUPER",
        "BUILD_CLASS",
    ),
    *("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "STORE_SLICE", "STORE_DEREF", "STORE_NAME"),
    *("MAKE_FUNCTION", "CALL_FUNCTION_EX", "LOAD_NAME", "MATCH_CLASS", "PRINT_EXPR"),
)
"""Parts of the names of instructions that such code has not; it has the first ones if it is a stream's."""
_OF_STREAMS = {
    "PUSH_EXC_INFO",
    "CHECK_EXC_MATCH",
    "RERAISE",
}  # which the compiler adds to generators


def is_cheap(dataset: Any) -> bool:
    """Returns true if a dataset's code is readable and takes samples from memory."""
    kind = type(dataset)
    if kind in (list, tuple, range, dict):
        return _is_memory(dataset)
    if kind is Subset and "__getitem__" in vars(Subset):
        return _is_memory(dataset.indices) and is_cheap(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(is_cheap, dataset.datasets))
    if kind is TensorDataset:
        return all(map(_is_memory, dataset.tensors))
    attributes = getattr(dataset, "__dict__", None)
    if type(attributes) is not dict or not is_plain(kind):
        return False
    is_stream = issubclass(kind, IterableDataset)
    if (
        is_stream and of_class(kind, "__next__") is not None
    ):  # what is its own iterator is not in `__iter__`
        return False
    method = of_class(kind, "__iter__" if is_stream else "__getitem__")
    if type(method) is not types.FunctionType or of_class(kind, "__getitems__") is not None:
        return False
    names = _names(method.__code__, is_stream=is_stream)
    if names is None:
        return False
    return all(map(_is_known, _meanings(names, method, kind, attributes)))


class _Names(NamedTuple):
    """The names that code looks up.

    Attributes:
        of_module: Those of the module that the code is in, or built in.
        of_values: Attributes, of the dataset or of anything else.
    """

    of_module: tuple[str, ...]
    of_values: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def _names(code: types.CodeType, *, is_stream: bool) -> _Names | None:
    """Returns the names in code; None if an instruction may store, open a file, or loop."""
    if any(type(constant) is types.CodeType for constant in code.co_consts):
        return None
    loops = 0
    names: dict[str, dict[str, None]] = {"GLOBAL": {}, "ATTR": {}}
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if any(part in name for part in _LOOPS):
            loops += name.startswith("FOR_ITER")
            if not is_stream or loops > 1:
                return None
        elif (
            any(part in name for part in _REFUSED)
            or (not is_stream and ("EXC" in name or "RERAISE" in name))
            or (name == "BINARY_OP" and ("**" in instruction.argrepr or "@" in instruction.argrepr))
        ):
            return None
        elif name.startswith("LOAD_GLOBAL"):
            names["GLOBAL"][instruction.argval] = None
        elif name.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            names["ATTR"][instruction.argval] = None
    return _Names(tuple(names["GLOBAL"]), tuple(names["ATTR"]))


def _meanings(
    names: _Names, method: types.FunctionType, kind: type, attributes: dict[str, Any]
) -> Iterator[Any]:
    """Yields every value that the names of a method may refer to."""
    for cell in method.__closure__ or ():
        yield cell.cell_contents if _is_filled(cell) else _NOTHING
    for name in names.of_module:
        built_in = getattr(builtins, name, _NOTHING)
        yield method.__globals__.get(name, built_in)
    for name in names.of_values:
        if name in attributes:
            yield attributes[name]
        elif any(name in vars(each) for each in kind.__mro__):
            yield of_class(kind, name)
        elif not any(name in quick for quick in _QUICK_NAMES):
            yield _NOTHING


_NOTHING = object()
"""An unknown value."""


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_known(value: Any) -> bool:
    return value is np or value is torch or id(value) in _QUICK or _is_memory(value)


def _is_memory(value: Any, depth: int = 0) -> bool:
    """Returns true if a value is data in memory, whose rows are small."""
    kind = type(value)
    if kind in _NUMBERS or (issubclass(kind, np.generic) and kind.__module__ == "numpy"):
        return True
    if kind is torch.Tensor:
        is_dense = value.is_cpu and value.layout is torch.strided and not value.is_nested
        return is_dense and not value.requires_grad and _is_small(value, value.nbytes)
    if kind is np.ndarray:
        return not value.dtype.hasobject and _is_small(value, value.nbytes)
    if kind not in (list, tuple, dict) or depth == _DEPTH or (depth and len(value) > _ROW_ENTRIES):
        return False
    entries = value.values() if kind is dict else value
    if kind is not dict and len(value) > _ALL:
        entries = value[:: len(value) // _ALL]
    if kind is dict and len(value) > _ALL:
        return False
    kinds = set(map(type, entries))
    if kinds <= _NUMBERS:
        return True
    return all(_is_memory(entry, depth + 1) for entry in _some(list(entries), len(kinds)))


def _some(entries: list[Any], kinds: int) -> list[Any]:
    """Returns representative entries: a few if all have one type, else all."""
    few = 64
    return entries if kinds > 1 or len(entries) <= few else entries[:: len(entries) // few]


def _is_small(array: Any, size: int) -> bool:
    """Returns true if a row of an array, or an array without rows, is small."""
    rows = array.shape[0] if array.ndim > 1 or size > _ROW_BYTES else 1
    return bool(size <= _ROW_BYTES * max(1, rows))
