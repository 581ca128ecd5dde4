"""The structure of a dataset's samples: whatever the dataset is, and whatever it holds.

Owns the order in which a dataset is asked what it is: columns first, then the table of classes, then its code.
"""

from typing import Any

from torch.utils.data import ConcatDataset, IterableDataset, Subset

from fastload import registry
from fastload.lowering import own
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

__all__ = ["has_own_code", "structure"]


def structure(dataset: Any, memo: Memo) -> Any:
    """Returns the structure of a dataset's samples; for datasets that hold others.

    Raises:
        NotNative: Python makes its samples, and why.
    """
    columns = own.structure(dataset)
    entry = registry.find("dataset", dataset) if columns is None else None
    if columns is None and entry is None:
        return registry.reader()(dataset, memo)
    if _has_own_batches(dataset):
        msg = "the dataset has a __getitems__ of its own"
        raise NotNative(msg, "remove it")
    if entry is None:
        return columns
    try:
        return entry.lower(dataset, memo)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"it holds other data than its class does: {type(error).__name__}: {error}"
        raise NotNative(msg) from error


def has_own_code(dataset: Any) -> bool:
    """Returns true if only the code of a class that no library has tells what samples of a map-style dataset are."""
    kind = type(dataset)
    if kind is Subset:
        return has_own_code(dataset.dataset)
    if kind is ConcatDataset:
        return any(map(has_own_code, dataset.datasets))
    if isinstance(dataset, IterableDataset) or own.declares(kind):
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
