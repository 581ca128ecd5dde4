"""Datasets that are made of columns already: fastload's own, and classes that declare theirs.

A class declares columns by a method `__fastload__(self)`, which returns a structure of
`fastload.columns`, as `fastload.Dataset` takes it. The method is called at each `iter()`; it says what
`__getitem__` would return, and that is not checked. It overrides all that is known of the class.
"""

from typing import Any

from fastload.columns import Column
from fastload.dataset import Dataset
from fastload.lowering.leaf import Leaf, rebuild
from fastload.lowering.registry import NotNative, name

__all__ = ["structure"]

# What decides the samples of a dataset; a subclass may add anything else.
_DECISIVE = ("__getitem__", "__getitems__", "__len__")


def structure(dataset: Any) -> Any:
    """Returns the structure of a dataset of columns, or None of any other dataset.

    Raises:
        NotNative: A subclass of ours with Python of its own.
        TypeError: `__fastload__` returns something that is no structure of columns.
    """
    kind = type(dataset)
    if hasattr(kind, "__fastload__"):
        declared = Dataset(dataset.__fastload__())._structure
        return _leaves(declared, heavy=True)
    if isinstance(dataset, Column):
        return _leaves(dataset if dataset._parts is None else dataset._parts)
    if not isinstance(dataset, Dataset):
        return None
    if overridden := _overridden(kind):
        msg = f"{name(kind)} overrides {', '.join(overridden)} of fastload.Dataset"
        raise NotNative(msg, "leave those methods as they are")
    return _leaves(dataset._structure)


def _leaves(structure: Any, *, heavy: bool = False) -> Any:
    """Returns a structure of columns with the leaf of each.

    Args:
        structure: The columns.
        heavy: Whether images are worth leaving the dataset's Python for; ours has none.
    """
    if isinstance(structure, Column):
        heavy = heavy and structure._heavy
        return Leaf(
            structure._core,
            repr(structure),
            form=structure._form,
            exact="as it is indexed",
            heavy=heavy,
        )
    if isinstance(structure, dict):
        return {key: _leaves(part, heavy=heavy) for key, part in structure.items()}
    return rebuild(structure, [_leaves(part, heavy=heavy) for part in structure])


def _overridden(kind: type) -> list[str]:
    """Returns which decisive methods a subclass of `Dataset` has of its own."""
    own = kind.__mro__[: kind.__mro__.index(Dataset)]
    return [name for name in _DECISIVE if any(name in vars(each) for each in own)]
