"""Runs a method for all samples at once, without running any code of the user's.

Owns the statements that are known. Attributes are as they are now; the index is an `Index`. Whatever is not known
here is refused with its line: the method is Python then. Nothing that a method changes outlives it: only
containers that it makes itself may be changed.
"""

import ast
import types
from typing import Any, NamedTuple

from fastload.lowering.reading.expressions import Expressions, simple
from fastload.lowering.reading.members import is_immutable
from fastload.lowering.reading.pictures import Picture
from fastload.lowering.reading.source import Scope, bound, parsed, unmangled
from fastload.lowering.reading.values import Each, Rows, described, tried
from fastload.registry import NotNative, refuse

__all__ = ["Interpreter"]


_DEPTH = 8
_BREAK, _CONTINUE = object(), object()
"""The outcomes of the statements of these names."""


class _Returned(NamedTuple):
    value: Any


class Interpreter(Expressions):
    """Reads functions; one for each time that a dataset is read."""

    def call(
        self, function: types.FunctionType, arguments: list[Any], named: dict[str, Any]
    ) -> Any:
        """Returns the result of a function."""
        tree = parsed(function.__code__)
        if isinstance(tree, NotNative):
            raise tree.again()
        if self._depth == _DEPTH:
            refuse(f"{function.__name__} is called too deep")
        self._depth += 1
        self._calls += 1
        try:
            scope = Scope(function, bound(function, arguments, named))
            outcome = self._block(tree.body, scope)
        finally:
            self._depth -= 1
        return outcome.value if isinstance(outcome, _Returned) else None

    def _block(self, statements: list[ast.stmt], scope: Scope) -> Any:
        previous = None
        for statement in statements:
            calls = self._calls
            try:
                outcome = self._statement(statement, scope, previous)
            except NotNative as reason:
                raise _placed(reason, statement, scope) from reason
            if outcome is not None:
                return outcome
            previous = statement if calls == self._calls else None
        return None

    def _statement(self, node: ast.stmt, scope: Scope, previous: ast.stmt | None) -> Any:
        self._count()
        match node:
            case ast.Return():
                return _Returned(None if node.value is None else self._value(node.value, scope))
            case ast.Assign():
                value = self._value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            case ast.AnnAssign():
                if node.value is not None:
                    self._assign(node.target, self._value(node.value, scope), scope)
            case ast.AugAssign():
                self._augment(node, scope, previous)
            case ast.If():
                taken, other = node.body, node.orelse
                if not self._truth(node.test, scope):
                    taken, other = other, taken
                # to read all of a cache takes longer than its samples
                if any(_fills(each) for statement in other for each in ast.walk(statement)):
                    refuse("it may write to a cache (`self.x[i] = ...`)")
                return self._block(taken, scope)
            case ast.Assert():
                if not self._truth(node.test, scope):
                    refuse("its assert is false with the present attributes")
            case ast.For():
                return self._loop(node, scope)
            case ast.With():
                return self._with(node, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                self._value(node.value, scope)
            case ast.Continue():
                return _CONTINUE
            case ast.Break():
                return _BREAK
            case ast.Raise():
                refuse("it raises an exception")
            case _:
                refuse(f"{_STATEMENTS.get(type(node), 'this statement')} is not read")
        return None

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.set(unmangled(target.id), value)
            case ast.Tuple() | ast.List():
                if any(isinstance(each, ast.Starred) for each in target.elts):
                    refuse("a starred target is not read")
                values = self.parts(value, len(target.elts))
                if len(values) != len(target.elts):
                    refuse(f"cannot unpack {len(values)} values into {len(target.elts)} names")
                for each, part in zip(target.elts, values, strict=True):
                    self._assign(each, part, scope)
            case ast.Subscript():
                container = self._value(target.value, scope)
                key = self._value(target.slice, scope)
                if not self.is_own(container) or isinstance(key, Each):
                    refuse("it changes an object that __getitem__ did not create")
                tried(container.__setitem__, simple(key), value)
                self.changes += 1
            case ast.Attribute():
                refuse(f"it sets the attribute {target.attr}")
            case _:
                refuse("this assignment is not read")

    def _augment(self, node: ast.AugAssign, scope: Scope, previous: ast.stmt | None) -> None:
        if not isinstance(node.target, ast.Name):
            refuse("it changes an object that __getitem__ did not create")
        name = node.target.id
        value = self._used(scope.get(name))
        is_new = isinstance(value, Rows) and _makes_array(previous, name, value) and _is_plain(node)
        if not (is_immutable(value) or is_new):
            refuse(f"it changes {described(value)} in place")
        made = self._combined(node.op, value, self._value(node.value, scope))
        if is_new and (not isinstance(made, Rows) or made.dtype != value.dtype):
            refuse(f"it changes {described(value)} in place, to another dtype")
        scope.set(name, made)

    def _loop(self, node: ast.For, scope: Scope) -> Any:
        for each in self.looped(self._value(node.iter, scope)):
            self._assign(node.target, each, scope)
            outcome = self._block(node.body, scope)
            if isinstance(outcome, _Returned):
                return outcome
            if outcome is _BREAK:
                return None
        return self._block(node.orelse, scope)

    def _with(self, node: ast.With, scope: Scope) -> Any:
        for each in node.items:
            value = self._value(each.context_expr, scope)
            if not isinstance(value, Picture):
                refuse(f"a with statement of {described(value)} is not read")
            if each.optional_vars is not None:
                self._assign(each.optional_vars, value, scope)
        return self._block(node.body, scope)


def _makes_array(node: ast.stmt | None, name: str, value: Rows) -> bool:
    """Returns true if a statement gives a new array to a name, and to nothing else."""
    match node:
        case (
            ast.AugAssign(target=ast.Name(id=own))
            | ast.Assign(targets=[ast.Name(id=own)], value=ast.BinOp())
        ):
            return own == name
        case ast.Assign(
            targets=[ast.Name(id=own)],
            value=ast.Call(func=ast.Attribute(attr="astype"), args=[_], keywords=[]),
        ):
            return own == name and not value.is_torch
    return False


def _is_plain(node: ast.stmt) -> bool:
    """Returns true if a statement calls nothing, and names nothing within an expression."""
    return not any(isinstance(each, ast.Call | ast.NamedExpr) for each in ast.walk(node))


_STATEMENTS = {
    ast.Try: "a try statement",
    ast.While: "a while loop",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.FunctionDef: "a function in a function",
    ast.ClassDef: "a class in a function",
    ast.Global: "a global statement",
    ast.Nonlocal: "a nonlocal statement",
    ast.Delete: "a del statement",
    ast.Match: "a match statement",
}


def _fills(node: ast.AST) -> bool:
    """Returns true if a node stores into what an object holds: `self.a[i] = ...`."""
    if not isinstance(node, ast.Subscript):
        return False
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Attribute)


def _placed(reason: NotNative, node: ast.stmt, scope: Scope) -> NotNative:
    """Returns a reason with the line that it is about."""
    if " (line " in reason.why:
        return reason.again()
    return NotNative(f"{reason.why} (line {node.lineno} of {scope.where})", reason.change)
