"""The structure of a dataset's samples: whatever the dataset is, and whatever it holds.

Owns the order in which a dataset is asked what it is: columns first, then the table of classes.
"""

from typing import Any

from fastload.lowering import own, registry
from fastload.lowering.memo import Memo
from fastload.lowering.registry import NotNative

__all__ = ["structure"]


def structure(dataset: Any, memo: Memo) -> Any:
    """Returns the structure of a dataset's samples; for datasets that hold others.

    Raises:
        NotNative: Python makes its samples, and why.
    """
    if getattr(dataset, "__dict__", {}).get("__getitems__"):
        msg = "the dataset has a __getitems__ of its own"
        raise NotNative(msg, "remove it")
    columns = own.structure(dataset)
    if columns is not None:
        return columns
    entry = registry.find("dataset", dataset)
    if entry is None:
        raise _unknown(dataset)
    return entry.lower(dataset, memo)


def _unknown(dataset: Any) -> NotNative:
    name = registry.name(type(dataset))
    return NotNative(
        f"{name} makes its samples in Python",
        "describe them by fastload.columns in a fastload.Dataset",
    )
