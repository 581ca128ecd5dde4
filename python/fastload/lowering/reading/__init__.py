"""Reading: lowers datasets of users' classes to columns, from the source of `__getitem__`.

An abstract interpreter goes through the method once, with attributes as they are now and an index that stands for
all of them. Nothing of the user's is run. What it does not know is refused with its line, by `NotNative`, which
everything in this package may raise; Python makes the samples then. What it found is compared with some samples
before it is used, where that opens no file.
"""

import contextlib
import gc
import types
from collections.abc import Iterator
from typing import Any

from fastload.columns.structure import leaves
from fastload.lowering.memo import Memo
from fastload.lowering.reading import attributes, compared, frames
from fastload.lowering.reading.built import Builder
from fastload.lowering.reading.interpreter import Interpreter
from fastload.lowering.reading.stored import Stored
from fastload.lowering.reading.values import Index
from fastload.registry import NotNative, name, refuse

__all__ = ["read"]

_LONG = 10_000
"""A refused dataset with so long a list or frame is not read again before it has other attributes."""
_CHANGE = "describe them by fastload.columns in a fastload.Dataset"


def read(dataset: Any, memo: Memo) -> Any:
    """Returns the structure of a dataset's samples, read from the code of its class.

    Raises:
        NotNative: Python makes them, and why.
    """
    things = _things(dataset)
    if memo.refusal is not None and memo.refusal[0] == tuple(map(id, things)):
        raise memo.refusal[2].again()  # to read what is long and refused at each epoch takes long
    memo.refusal = None
    try:
        return _read(dataset, memo)
    except NotNative as reason:
        why, change = reason.why, reason.change
    except Exception as error:  # whatever is odd about a class, its own code makes its samples
        why, change = f"{type(error).__name__}: {error}", ""
    msg = f"{name(type(dataset))} makes its samples in Python: {why}"
    change = change or _CHANGE
    if any((type(e) in (list, dict) or frames.is_frame(e)) and len(e) > _LONG for e in things):
        memo.refusal = tuple(map(id, things)), things, NotNative(msg, change)
    raise NotNative(msg, change)  # which no name keeps: its traceback has this frame


def _things(dataset: Any) -> tuple[Any, ...]:
    """Returns a dataset's class and the values of its attributes."""
    own = attributes.all_stored(dataset)
    return type(dataset), *own.values()


def _read(dataset: Any, memo: Memo) -> Any:
    length, getitem = _method(dataset, "__len__"), _method(dataset, "__getitem__")
    kind, batches = type(dataset), "__getitems__"
    if attributes.of_class(kind, batches) or attributes.all_stored(dataset).get(batches):
        refuse("it has a __getitems__ of its own", "remove it")
    stored = Stored(memo)
    count = Interpreter(stored).call(length, [dataset], {})
    if type(count) is not int or count < 1:
        refuse("its __len__ must give a positive int")
    index = Index(1, 0, count)
    reader = Interpreter(stored, index)
    with _no_collection():
        value = reader.call(getitem, [dataset, index], {})
    structure = Builder(stored, count, not reader.is_plain).structure(value)
    found = list(leaves(structure))
    if not found or any(len(leaf.native) != count for _, leaf in found):
        refuse("its values do not have one entry for each sample")
    if reader.is_memory:
        compared.check(dataset, structure, memo)
    return structure


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pauses the garbage collector, which would go through the values of all samples again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _method(dataset: Any, method: str) -> types.FunctionType:
    kind = type(dataset)
    found = attributes.of_class(kind, method)
    if type(found) is not types.FunctionType:
        refuse(f"its {method} is no function in Python")
    if not attributes.is_plain(kind):
        refuse("its class has a __getattr__ or a __getattribute__ of its own")
    return found
