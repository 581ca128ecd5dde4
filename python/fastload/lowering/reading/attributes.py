"""Attributes as they are stored: read without running any code.

Owns the rule of Python's own lookup, for objects whose classes leave it alone. Refuses hooks
(`__getattr__`, `__getattribute__`) and descriptors that run code to answer.
"""

import contextlib
import types
from typing import Any, NamedTuple

from fastload.registry import name, refuse

__all__ = [
    "Bound",
    "Getter",
    "all_stored",
    "is_of_class",
    "is_plain",
    "of_class",
    "of_instance",
    "stored",
]

_OF_TORCH = ("torch.utils.data.dataset", "typing", "abc")
_MISSING = object()
_SLOT = types.MemberDescriptorType


class Bound(NamedTuple):
    """A function with the object that it is called on."""

    function: Any
    instance: Any


class Getter(NamedTuple):
    """A property that is asked of an object: a function to be read."""

    function: Any
    instance: Any


def is_plain(kind: type) -> bool:
    """Returns true if a class has no hooks, so that attributes of its instances are the stored ones."""
    for each in kind.__mro__:
        own = each.__dict__
        hooked = "__getattr__" in own or "__getattribute__" in own
        if hooked and each is not object and each.__module__ not in _OF_TORCH:
            return False
    return True


def of_class(kind: type, attribute: str) -> Any:
    """Returns the attribute of a class, as it is stored; None if there is none."""
    found = _stored(kind, attribute)
    return None if found is _MISSING else found


def is_of_class(kind: type, attribute: str) -> bool:
    """Returns true if a class has an attribute, be it None."""
    return _stored(kind, attribute) is not _MISSING


def of_instance(instance: Any, attribute: str) -> Any:
    """Returns an attribute of an object.

    Returns:
        What is stored; `Bound` for a method, `Getter` for a property.
    """
    kind = type(instance)
    if not is_plain(kind):
        refuse(f"{name(kind)} has a __getattr__ or a __getattribute__ of its own")
    stored = _stored(kind, attribute)
    if type(stored) is property:
        if type(stored.fget) is not types.FunctionType:
            refuse(f"{name(kind)}.{attribute} is a property of an unknown kind")
        return Getter(stored.fget, instance)
    if type(stored) is _SLOT:
        try:
            return stored.__get__(instance, kind)
        except AttributeError:
            refuse(f"{name(kind)} has no {attribute} yet")
    is_data = hasattr(type(stored), "__set__") or hasattr(type(stored), "__delete__")
    own = all_stored(instance)
    if attribute in own and not is_data:
        return own[attribute]
    if stored is _MISSING:
        refuse(f"{name(kind)} has no attribute {attribute}")
    if type(stored) is types.FunctionType:
        return Bound(stored, instance)
    if type(stored) is staticmethod:
        return stored.__func__
    if is_data or hasattr(type(stored), "__get__"):
        refuse(f"{name(kind)}.{attribute} is a descriptor")
    return stored


def _stored(kind: type, attribute: str) -> Any:
    for each in kind.__mro__:
        if attribute in each.__dict__:
            return each.__dict__[attribute]
    return _MISSING


def all_stored(instance: Any) -> dict[str, Any]:
    """Returns an object's own dict, whatever its class would answer; empty if it has no plain one."""
    kind = type(instance)
    holder = _stored(kind, "__dict__")
    if type(holder) is not types.GetSetDescriptorType:
        return {}
    own = holder.__get__(instance, kind)
    return own if type(own) is dict else {}


def stored(instance: Any) -> dict[str, Any]:
    """Returns the attributes of an object, also those in slots, as they are stored."""
    kind = type(instance)
    if kind is types.SimpleNamespace:
        return dict(vars(instance))
    found = dict(all_stored(instance))
    for each in kind.__mro__:
        names = vars(each).get("__slots__", ())
        for slot in (names,) if isinstance(names, str) else names:
            member = vars(each).get(slot)
            if type(member) is _SLOT:
                with contextlib.suppress(AttributeError):  # it is not set
                    found[slot] = member.__get__(instance)
    return found
