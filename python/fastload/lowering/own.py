"""Datasets that are made of columns already: fastload's own, and classes that declare theirs.

A class declares columns by a method `__fastload__(self)`, which returns a structure of
`fastload.columns`, as `fastload.Dataset` takes it. The method is called at each `iter()`; it says what
`__getitem__` of the same class would return, and that is not checked. It overrides all that is known of
the class; a subclass that changes what decides the samples has to declare its own, or none
(`__fastload__ = None`).
"""

from typing import Any

from fastload.columns import Column
from fastload.columns.dataset import Dataset
from fastload.columns.structure import rebuild
from fastload.lowering.leaf import Leaf
from fastload.registry import NotNative, name

__all__ = ["declares", "structure"]

# What decides the samples of a dataset; a subclass may add anything else.
_DECISIVE = ("__getitem__", "__getitems__", "__len__")
_OURS = (Column, Dataset)
_CHANGE = "leave those methods as they are"
_DECLARE = "declare the columns of its samples by a __fastload__ of its own"


def structure(dataset: Any) -> Any:
    """Returns the structure of a dataset of columns, or None of any other dataset.

    Raises:
        NotNative: A subclass with Python of its own.
        TypeError: `__fastload__` returns something that is no structure of columns.
    """
    kind = type(dataset)
    base = _describing(kind)
    if base is None or not declares(kind):
        return None
    nearer = kind.__mro__[: kind.__mro__.index(base)]
    if own := [each for each in _DECISIVE if any(each in vars(one) for one in nearer)]:
        msg = f"{name(kind)} overrides {', '.join(own)} of {name(base)}"
        raise NotNative(msg, _CHANGE if issubclass(base, _OURS) else f"{_CHANGE}, or {_DECLARE}")
    if "__fastload__" in vars(base):
        declared = Dataset(dataset.__fastload__())._structure
        return _leaves(declared, heavy=True)
    if issubclass(base, Column):
        return _leaves(dataset if dataset._parts is None else dataset._parts)
    return _leaves(dataset._structure)


def declares(kind: type) -> bool:
    """Returns true if a class says itself what columns its samples are."""
    base = _describing(kind)
    return base is not None and vars(base).get("__fastload__", base) is not None


def _describing(kind: type) -> type | None:
    """Returns the nearest class that says what columns its samples are, or None."""
    for each in kind.__mro__:
        ours = each is Dataset or (issubclass(each, Column) and _is_fastloads(each))
        if ours or "__fastload__" in vars(each):
            return each
    return None


def _is_fastloads(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "fastload"


def _leaves(structure: Any, *, heavy: bool = False) -> Any:
    """Returns a structure of columns with the leaf of each.

    Args:
        structure: The columns.
        heavy: True if images are worth leaving the dataset's Python for; ours has none.
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
