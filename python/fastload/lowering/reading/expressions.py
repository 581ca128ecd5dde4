"""Expressions of a method, for all samples at once.

Owns which are known. What is not known is refused; nothing of the user's is run.
"""

import ast
import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from fastload.lowering.reading import calls
from fastload.lowering.reading.arithmetic import binary, chosen, compared, formatted, negated, truth
from fastload.lowering.reading.arrays import differs
from fastload.lowering.reading.attributes import Bound, Getter
from fastload.lowering.reading.members import (
    Method,
    attribute,
    getter,
    is_sequence,
    item,
    parts,
    unwrapped,
)
from fastload.lowering.reading.source import Scope, unmangled
from fastload.lowering.reading.stored import Stored
from fastload.lowering.reading.values import Each, Index, Objects, described
from fastload.registry import refuse

__all__ = ["Expressions", "simple"]


_MOST_STEPS = 5_000
"""Most statements and expressions of one method; loops over constants are counted each time."""


_SYMBOLS: dict[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class Expressions(ABC):
    """Reads expressions.

    Args:
        stored: Makes arrays of lists.
        index: The index of a sample; None where there is none.

    Attributes:
        is_memory: True if nothing but memory is touched, so far.
        changes: How many changes outlived their expression: of a container, of a name by `:=`, or of an iterator.
    """

    def __init__(self, stored: Stored, index: Index | None = None) -> None:
        self.stored = stored
        self.is_memory = True
        self.changes = 0
        self._before_choice = frozenset[
            int
        ]()  # containers made before a choice whose branches are both read
        self._index = index
        self._uses = self._plain_uses = 0
        self._own: dict[int, Any] = {}
        self._steps = 0
        self._depth = 0
        self._calls = 0  # of functions of the user's

    @abstractmethod
    def call(
        self, function: types.FunctionType, arguments: list[Any], named: dict[str, Any]
    ) -> Any:
        """Returns the result of a function."""

    @abstractmethod
    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Gives a value to names."""

    @property
    def is_plain(self) -> bool:
        """True if the index is only used to index containers with as many items as there are samples."""
        return 0 < self._plain_uses == self._uses

    def own(self, container: Any) -> Any:
        """Returns a container that the method made itself, which it may change."""
        self._own[id(container)] = container
        return container

    def is_own(self, container: Any) -> bool:
        """Returns true if the method made a container itself."""
        return id(container) in self._own

    def is_mixed(self, value: Any) -> bool:
        """Returns true if a container that the method made holds what differs between samples."""
        if self.is_iterator(value):
            return True  # looking would use it up
        if type(value) is not tuple and not self.is_own(value):
            return False
        held = value.values() if type(value) is dict else value
        return any(isinstance(each, Each) or self.is_mixed(each) for each in held)

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        self._count()
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            refuse(f"{type(node).__name__} is not read")
        return read(node, scope)

    def _truth(self, node: ast.expr, scope: Scope) -> bool:
        return truth(self._value(node, scope), f"`{ast.unparse(node)}`")

    def looped(self, value: Any) -> Iterable[Any]:
        """Returns the items of a loop, which may change a container of the method's own meanwhile."""
        if self.is_iterator(value):
            self.changes += id(value) in self._before_choice
            return value  # type: ignore[no-any-return]
        items = parts(value)
        return value if self.is_own(value) else items

    def parts(self, value: Any, count: int | None = None) -> list[Any]:
        """Returns the items of a container as they are now, or what is left of an iterator of the method's own."""
        return list(self.looped(value)) if self.is_iterator(value) else parts(value, count)

    def is_iterator(self, value: Any) -> bool:
        """Returns true for `enumerate` and `zip` of the method's own, which are used up once."""
        return type(value) in (enumerate, zip) and self.is_own(value)

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:  # noqa: ARG002
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        return self._used(scope.get(unmangled(node.id)))

    def _used(self, value: Any) -> Any:
        """Returns the value of a name, and counts the uses of the index."""
        self._uses += value is self._index and value is not None
        return value

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        found = self._member(node, scope)
        if isinstance(found, Method):  # a method, if it is called; here it may be anything
            refuse(f"the attribute {node.attr} of {described(found.of)} is not known")
        return found

    def _member(self, node: ast.Attribute, scope: Scope) -> Any:
        """Returns an attribute, or the `Method` that a call of it means."""
        found = attribute(self._value(node.value, scope), unmangled(node.attr))
        if isinstance(found, Getter):
            return self.call(found.function, [found.instance], {})
        return found

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        container = unwrapped(self._value(node.value, scope))
        key = self._value(node.slice, scope)
        if key is self._index and key is not None and isinstance(node.slice, ast.Name):
            self._plain_uses += is_sequence(container, key.count)
        own = getter(container)
        if own is not None:
            return self.call(own, [container, key], {})
        return item(self._fixed(container) if differs(key) else container, key)

    def _fixed(self, container: Any) -> Any:
        """Returns a container as it is now, of which samples take different items; refuses items that differ, too."""
        if self.is_mixed(container):
            refuse("a choice between values that differ from sample to sample is not known")
        return (
            container.copy()
            if self.is_own(container) and type(container) in (list, dict)
            else container
        )

    def _slice(self, node: ast.Slice, scope: Scope) -> Any:
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else self._value(end, scope) for end in ends))

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        return tuple(self._elements(node.elts, scope))

    def _list(self, node: ast.List, scope: Scope) -> Any:
        return self.own(list(self._elements(node.elts, scope)))

    def _elements(self, nodes: list[ast.expr], scope: Scope) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.parts(self._value(node.value, scope))
            else:
                yield self._value(node, scope)

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                other = self._value(value, scope)
                if type(other) is not dict:
                    refuse(f"** of {described(other)} is not read")
                made.update(other)
            else:
                known = simple(self._value(key, scope))  # before the value, as Python does
                made[known] = self._value(value, scope)
        return self.own(made)

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> Any:
        inner = scope.child()
        return self.own(
            [self._value(node.elt, inner) for _ in self._generated(node.generators, inner)]
        )

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Any:
        inner = scope.child()
        made = {}
        for _ in self._generated(node.generators, inner):
            key = simple(self._value(node.key, inner))
            made[key] = self._value(node.value, inner)
        return self.own(made)

    def _generated(self, generators: list[ast.comprehension], scope: Scope) -> Iterator[None]:
        first, *rest = generators
        for each in self.looped(self._value(first.iter, scope)):
            self._count()
            self._assign(first.target, each, scope)
            if all(self._truth(test, scope) for test in first.ifs):
                if rest:
                    yield from self._generated(rest, scope)
                else:
                    yield

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        made = self._combined(node.op, left, right)
        return self.own(made) if type(made) is list else made

    def _combined(self, operator: ast.operator, left: Any, right: Any) -> Any:
        symbol = _SYMBOLS.get(type(operator))
        if symbol is None:
            refuse(f"the operator {type(operator).__name__} is not read")
        pair = left, right
        if any(isinstance(each, Each) for each in pair) and any(map(self.is_mixed, pair)):
            refuse(f"{symbol} of {described(left)} and {described(right)} is not known")
        return binary(symbol, left, right)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        if isinstance(node.op, ast.Not):
            return not self._truth(node.operand, scope)
        if isinstance(node.op, ast.USub):
            return negated(self._value(node.operand, scope))
        return refuse(f"{type(node.op).__name__} is not read")

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        ends_at = isinstance(node.op, ast.Or)
        value: Any = None
        for each in node.values:
            value = self._value(each, scope)
            if each is not node.values[-1] and truth(value, f"`{ast.unparse(each)}`") == ends_at:
                break
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self._value(node.left, scope)
        made: Any = True
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._value(part, scope)
            made = compared(_SYMBOLS[type(op)], left, right)
            if len(node.ops) > 1 and not truth(made, f"`{ast.unparse(node)}`"):
                break
            left = right
        return made

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        test = self._value(node.test, scope)
        if isinstance(test, Objects) and test.kinds == {bool} and len(set(test.values)) > 1:
            before, outer = self.changes, self._before_choice
            self._before_choice = frozenset(self._own)
            both = self._value(node.body, scope), self._value(node.orelse, scope)
            self._before_choice = outer
            if self.changes != before:
                refuse(f"`{ast.unparse(node)}` changes something for a part of the samples")
            return chosen(test, *both)
        is_first = truth(test, f"`{ast.unparse(node.test)}`")
        return self._value(node.body if is_first else node.orelse, scope)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self._value(node.value, scope)
        scope.set_outside(node.target.id, value)
        self.changes += 1
        return value

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        values, formats = [], []
        for each in node.values:
            value, spec = each, ""
            if isinstance(each, ast.FormattedValue):
                value = each.value
                if each.conversion >= 0:
                    refuse("a conversion in an f-string is not read")
                spec = "" if each.format_spec is None else self._value(each.format_spec, scope)
                if isinstance(spec, Each):
                    refuse("a format that differs from sample to sample")
            values.append(self._value(value, scope))
            formats.append(spec)
        return formatted(values, formats)

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        if isinstance(node.func, ast.Attribute):
            function = self._member(node.func, scope)
        else:
            function = self._value(node.func, scope)
        arguments = list(self._elements(node.args, scope))
        named: dict[str, Any] = {}
        for each in node.keywords:
            if each.arg is None:
                refuse("** in a call is not read")
            named[each.arg] = self._value(each.value, scope)
        if isinstance(function, Bound):
            arguments = [function.instance, *arguments]
            function = function.function
        elif isinstance(function, types.MethodType):
            arguments = [function.__self__, *arguments]
            function = function.__func__
        return calls.call(self, function, arguments, named, ast.unparse(node.func))

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            refuse("it has a long loop")


def simple(key: Any) -> Any:
    """Returns the key of a dict or a list, of a type that is compared without the user's code."""
    if type(key) not in (str, int, bool, float, bytes, type(None)):
        refuse(f"a key that is {described(key)} is not read")
    return key
