"""The structure of a dataset's samples: whatever the dataset is, and whatever it holds.

Owns the order in which a dataset is asked what it is: columns first, then the table of classes, then its code.

A class declares columns by a method `__fastload__(self)`, which returns a structure of
`fastload.columns`, as `fastload.Dataset` takes it. The method is called at each `iter()`; it says what
`__getitem__` of the same class would return, and that is not checked. It overrides all that is known of
the class; a subclass that changes what decides the samples has to declare its own, or none
(`__fastload__ = None`).
"""

from typing import Any

from torch.utils.data import ConcatDataset, IterableDataset, Subset

from fastload import registry
from fastload.columns import Column
from fastload.columns.dataset import Dataset
from fastload.columns.structure import fill, leaves
from fastload.lowering.leaf import Leaf
from fastload.lowering.memo import Memo
from fastload.lowering.reading import read
from fastload.registry import NotNative, name

__all__ = ["has_own_code", "structure"]

# What decides the samples of a dataset; a subclass may add anything else.
_DECISIVE = ("__getitem__", "__getitems__", "__len__")
_OURS = (Column, Dataset)
_CHANGE = "leave those methods as they are"
_DECLARE = "declare the columns of its samples by a __fastload__ of its own"


def structure(dataset: Any, memo: Memo) -> Any:
    """Returns the structure of a dataset's samples; for datasets that hold others.

    Raises:
        NotNative: Python makes its samples, and why.
        TypeError: `__fastload__` returns something that is no structure of columns.
    """
    columns = _of_columns(dataset)
    entry = registry.find("dataset", dataset) if columns is None else None
    if columns is None and entry is None:
        return read(dataset, memo)
    if _has_own_batches(dataset):
        msg = "the dataset has a __getitems__ of its own"
        raise NotNative(msg, "remove it")
    if entry is None:
        return columns
    try:
        return entry.lower(dataset, memo)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        stored = type(dataset).__name__
        msg = f"its attributes are not what {stored} stores: {type(error).__name__}: {error}"
        raise NotNative(msg) from error


def has_own_code(dataset: Any) -> bool:
    """Returns true if only the code of a class that no library has tells what samples of a map-style dataset are."""
    kind = type(dataset)
    if kind is Subset:
        return has_own_code(dataset.dataset)
    if kind is ConcatDataset:
        return any(map(has_own_code, dataset.datasets))
    if isinstance(dataset, IterableDataset) or _declaring(kind) is not None:
        return False
    try:
        return registry.find("dataset", dataset) is None
    except NotNative:  # the library's methods were replaced
        return True


def _has_own_batches(dataset: Any) -> bool:
    """Returns true if torch would find a `__getitems__` that is not the class's, as of a `__getattr__`."""
    if any("__getitems__" in vars(each) for each in type(dataset).__mro__):
        return bool(getattr(dataset, "__dict__", {}).get("__getitems__"))
    return bool(getattr(dataset, "__getitems__", None))


def _of_columns(dataset: Any) -> Any:
    """Returns the structure of a dataset of columns, or None of any other dataset."""
    kind = type(dataset)
    base = _declaring(kind)
    if base is None:
        return None
    nearer = kind.__mro__[: kind.__mro__.index(base)]
    if own := [each for each in _DECISIVE if any(each in vars(one) for one in nearer)]:
        msg = f"{name(kind)} overrides {', '.join(own)} of {name(base)}"
        raise NotNative(msg, _CHANGE if issubclass(base, _OURS) else f"{_CHANGE}, or {_DECLARE}")
    if "__fastload__" in vars(base):
        declared = Dataset(dataset.__fastload__())._structure
        return _leaves(declared, may_be_heavy=True)
    if issubclass(base, Column):
        return _leaves(dataset if dataset._parts is None else dataset._parts)
    return _leaves(dataset._structure)


def _declaring(kind: type) -> type | None:
    """Returns the nearest class that says what columns its samples are, if that says that there are any."""
    for each in kind.__mro__:
        if "__fastload__" in vars(each):
            return None if vars(each)["__fastload__"] is None else each
        is_ours = each.__module__.partition(".")[0] == "fastload"
        if each is Dataset or (issubclass(each, Column) and is_ours):
            return each
    return None


def _leaves(columns: Any, *, may_be_heavy: bool = False) -> Any:
    """Returns a structure of columns with the leaf of each.

    Args:
        columns: The structure.
        may_be_heavy: True if images are worth leaving the dataset's Python for; ours has none.
    """
    each = (
        Leaf(
            column._core,
            repr(column),
            form=column._form,
            exact="as it is indexed",
            heavy=may_be_heavy and column._heavy,
        )
        for _, column in leaves(columns)
    )
    return fill(columns, each)
