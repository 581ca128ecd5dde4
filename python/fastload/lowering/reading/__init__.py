"""Reading: datasets of classes that somebody wrote, as columns, from the source of `__getitem__`.

An abstract interpreter goes through the method once, with attributes as they are now and an index that stands for
all of them. Nothing of the user's is run. What it does not know is refused with its line, and Python makes the
samples. What it found is compared with some samples before it is used, where that opens no file.
"""

import types
from dataclasses import replace
from typing import Any

from fastload.lowering import registry
from fastload.lowering.leaf import fill, leaves
from fastload.lowering.memo import Memo
from fastload.lowering.reading import attributes, compared
from fastload.lowering.reading.built import Builder
from fastload.lowering.reading.interpreter import Interpreter
from fastload.lowering.reading.values import Index
from fastload.lowering.registry import NotNative, name

__all__ = ["read"]

_CHANGE = "describe them by fastload.columns in a fastload.Dataset"


@registry.others
def read(dataset: Any, memo: Memo) -> Any:
    """Returns the structure of a dataset's samples, read from the code of its class.

    Raises:
        NotNative: Python makes them, and why.
    """
    try:
        return _read(dataset, memo)
    except NotNative as reason:
        msg = f"{name(type(dataset))} makes its samples in Python: {reason.why}"
        raise NotNative(msg, reason.change or _CHANGE) from reason
    except Exception as error:  # whatever is odd about a class, its own code makes its samples
        msg = f"{name(type(dataset))} makes its samples in Python: {type(error).__name__}: {error}"
        raise NotNative(msg, _CHANGE) from error


def _read(dataset: Any, memo: Memo) -> Any:
    length, getitem = _method(dataset, "__len__"), _method(dataset, "__getitem__")
    kind, batches = type(dataset), "__getitems__"
    if attributes.of_class(kind, batches) or attributes.stored_in(dataset, batches):
        raise NotNative("it has a __getitems__ of its own", "remove it")
    count = Interpreter(Builder(memo, 0)).call(length, [dataset], {})
    if type(count) is not int or count < 1:
        raise NotNative("its length is not read to be a positive int")
    index = Index(1, 0, count)
    builder = Builder(memo, count)
    reader = Interpreter(builder, index)
    value = reader.call(getitem, [dataset, index], {})
    structure = builder.structure(value)
    found = [leaf for _, leaf in leaves(structure)]
    if not found or any(len(leaf.native) != count for leaf in found):
        raise NotNative("a sample has no values, or columns have several lengths")
    exact = "bit for bit" if reader.is_memory else "not compared, for its files would be opened"
    marked = (
        replace(
            leaf,
            is_read=True,
            from_zero=leaf.from_zero or not reader.is_plain,
            exact=leaf.exact if reader.is_memory else f"{leaf.exact}; {exact}",
        )
        for leaf in found
    )
    structure = fill(structure, marked)
    if reader.is_memory:
        compared.check(dataset, structure, count, memo)
    return structure


def _method(dataset: Any, method: str) -> types.FunctionType:
    kind = type(dataset)
    if not attributes.is_plain(kind):
        raise NotNative("its class has a __getattr__ or a __getattribute__ of its own")
    found = attributes.of_class(kind, method)
    if type(found) is not types.FunctionType:
        raise NotNative(f"its {method} is no function in Python")
    return found
