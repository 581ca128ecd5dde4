"""Runs a method for all samples at once, without running any code of the user's.

Owns the statements and expressions that are known. Attributes are as they are now; the index is an `Index`.
Whatever is not known here is refused with its line: the method is Python then. Nothing that a method changes
outlives it: only containers that it makes itself may be changed.
"""

import ast
import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fastload.lowering.reading import calls
from fastload.lowering.reading.arithmetic import binary, compared, formatted, negated, truth
from fastload.lowering.reading.attributes import Bound, Getter
from fastload.lowering.reading.built import Builder
from fastload.lowering.reading.source import parsed
from fastload.lowering.reading.subscript import item
from fastload.lowering.reading.values import Each, Index, described
from fastload.lowering.registry import NotNative

__all__ = ["Interpreter"]

_DEPTH = 8
_MOST_STEPS = 5_000
"""Most statements and expressions of one method; loops over constants are counted each time."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARE: dict[type[ast.cmpop], str] = {
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


class _Returned(NamedTuple):
    value: Any


class _Flow(NamedTuple):
    is_break: bool


class Interpreter:
    """Reads functions; one for each time that a dataset is read.

    Args:
        builder: Makes arrays of lists.
        index: The index of a sample; None where there is none.

    Attributes:
        is_memory: Whether nothing but memory is touched, so far.
    """

    def __init__(self, builder: Builder, index: Index | None = None) -> None:
        self.builder = builder
        self.is_memory = True
        self._index = index
        self._uses = self._plain_uses = 0
        self._own: dict[int, Any] = {}
        self._steps = 0
        self._depth = 0

    def call(
        self, function: types.FunctionType, arguments: list[Any], named: dict[str, Any]
    ) -> Any:
        """Returns what a function returns.

        Raises:
            NotNative: Why that is not known.
        """
        tree = parsed(function.__code__)
        if isinstance(tree, NotNative):
            raise tree.again()
        if self._depth == _DEPTH:
            raise NotNative(f"{function.__name__} is called too deep")
        self._depth += 1
        try:
            scope = _Scope(function, _bound(function, arguments, named))
            outcome = self._block(_body(tree), scope)
        finally:
            self._depth -= 1
        return outcome.value if isinstance(outcome, _Returned) else None

    @property
    def is_plain(self) -> bool:
        """Whether the index is only an index into what has as many places as there are samples."""
        return 0 < self._plain_uses == self._uses

    def own(self, container: Any) -> Any:
        """Returns a container that the method made itself, which it may change."""
        self._own[id(container)] = container
        return container

    def is_own(self, container: Any) -> bool:
        """Returns whether the method made a container itself."""
        return self._own.get(id(container)) is container

    # --- statements

    def _block(self, statements: list[ast.stmt], scope: "_Scope") -> Any:
        for statement in statements:
            try:
                outcome = self._statement(statement, scope)
            except NotNative as reason:
                raise _placed(reason, statement, scope) from reason
            if outcome is not None:
                return outcome
        return None

    def _statement(self, node: ast.stmt, scope: "_Scope") -> Any:
        self._count()
        match node:
            case ast.Return():
                return _Returned(None if node.value is None else self._value(node.value, scope))
            case ast.Assign():
                value = self._value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            case ast.AnnAssign(value=None):
                pass
            case ast.AnnAssign():
                self._assign(node.target, self._value(node.value, scope), scope)
            case ast.AugAssign():
                self._augment(node, scope)
            case ast.If():
                taken = node.body if self._truth(node.test, scope) else node.orelse
                return self._block(taken, scope)
            case ast.Assert():
                if not self._truth(node.test, scope):
                    raise NotNative("an assertion fails")
            case ast.For():
                return self._loop(node, scope)
            case ast.With():
                return self._with(node, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                self._value(node.value, scope)
            case ast.Continue():
                return _Flow(is_break=False)
            case ast.Break():
                return _Flow(is_break=True)
            case ast.Raise():
                raise NotNative("it raises an exception")
            case _:
                raise NotNative(f"{_STATEMENTS.get(type(node), 'this statement')} is not read")
        return None

    def _assign(self, target: ast.expr, value: Any, scope: "_Scope") -> None:
        match target:
            case ast.Name():
                scope.set(_unmangled(target.id), value)
            case ast.Tuple() | ast.List():
                if any(isinstance(each, ast.Starred) for each in target.elts):
                    raise NotNative("a starred target is not read")
                parts = self._parts(value, len(target.elts))
                if len(parts) != len(target.elts):
                    raise NotNative(f"{len(parts)} values for {len(target.elts)} names")
                for each, part in zip(target.elts, parts, strict=True):
                    self._assign(each, part, scope)
            case ast.Subscript():
                container = self._value(target.value, scope)
                key = self._value(target.slice, scope)
                if not self.is_own(container) or isinstance(key, Each):
                    raise NotNative("it changes what it did not make itself")
                _tried(lambda: container.__setitem__(_simple(key), value))
            case ast.Attribute():
                raise NotNative(f"it sets the attribute {target.attr}")
            case _:
                raise NotNative("this assignment is not read")

    def _augment(self, node: ast.AugAssign, scope: "_Scope") -> None:
        if not isinstance(node.target, ast.Name):
            raise NotNative("it changes what it did not make itself")
        value = scope.local(node.target.id)
        if not calls.is_immutable(value):
            raise NotNative(f"it changes {described(value)} in place")
        other = self._value(node.value, scope)
        scope.set(node.target.id, binary(_symbol(node.op), value, other))

    def _loop(self, node: ast.For, scope: "_Scope") -> Any:
        for each in self._parts(self._value(node.iter, scope)):
            self._assign(node.target, each, scope)
            outcome = self._block(node.body, scope)
            if isinstance(outcome, _Returned):
                return outcome
            if isinstance(outcome, _Flow) and outcome.is_break:
                return None
        return self._block(node.orelse, scope)

    def _with(self, node: ast.With, scope: "_Scope") -> Any:
        for each in node.items:
            value = self._value(each.context_expr, scope)
            if not calls.is_opened(value):
                raise NotNative(f"a with statement of {described(value)} is not read")
            if each.optional_vars is not None:
                self._assign(each.optional_vars, value, scope)
        return self._block(node.body, scope)

    # --- expressions

    def _value(self, node: ast.expr, scope: "_Scope") -> Any:
        self._count()
        read = _EXPRESSIONS.get(type(node))
        if read is None:
            raise NotNative(f"{type(node).__name__} is not read")
        return read(self, node, scope)

    def _truth(self, node: ast.expr, scope: "_Scope") -> bool:
        return truth(self._value(node, scope), f"`{ast.unparse(node)}`")

    def _parts(self, value: Any, count: int | None = None) -> list[Any]:
        """Returns what is iterated over, of what is the same for all samples."""
        return calls.parts(value, count)

    def _constant(self, node: ast.Constant, scope: "_Scope") -> Any:  # noqa: ARG002
        return node.value

    def _name(self, node: ast.Name, scope: "_Scope") -> Any:
        value = scope.get(_unmangled(node.id))
        self._uses += value is self._index and value is not None
        return value

    def _attribute(self, node: ast.Attribute, scope: "_Scope") -> Any:
        found = calls.attribute(self._value(node.value, scope), _unmangled(node.attr))
        if isinstance(found, Getter):
            return self.call(found.function, [found.instance], {})
        return found

    def _subscript(self, node: ast.Subscript, scope: "_Scope") -> Any:
        container = calls.unwrapped(self._value(node.value, scope))
        key = self._value(node.slice, scope)
        if key is self._index and key is not None and isinstance(node.slice, ast.Name):
            self._plain_uses += calls.is_sequence(container, key.count)
        getter = calls.getter(container)
        if getter is not None:
            return self.call(getter, [container, key], {})
        return item(container, key)

    def _slice(self, node: ast.Slice, scope: "_Scope") -> Any:
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else self._value(end, scope) for end in ends))

    def _tuple(self, node: ast.Tuple, scope: "_Scope") -> Any:
        return tuple(self._elements(node.elts, scope))

    def _list(self, node: ast.List, scope: "_Scope") -> Any:
        return self.own(list(self._elements(node.elts, scope)))

    def _elements(self, nodes: list[ast.expr], scope: "_Scope") -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self._parts(self._value(node.value, scope))
            else:
                yield self._value(node, scope)

    def _dict(self, node: ast.Dict, scope: "_Scope") -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                other = self._value(value, scope)
                if type(other) is not dict:
                    raise NotNative(f"** of {described(other)} is not read")
                made.update(other)
            else:
                made[_simple(self._value(key, scope))] = self._value(value, scope)
        return self.own(made)

    def _list_comprehension(self, node: ast.ListComp, scope: "_Scope") -> Any:
        inner = scope.child()
        return self.own(
            [self._value(node.elt, inner) for _ in self._generated(node.generators, inner)]
        )

    def _dict_comprehension(self, node: ast.DictComp, scope: "_Scope") -> Any:
        inner = scope.child()
        made = {}
        for _ in self._generated(node.generators, inner):
            key = _simple(self._value(node.key, inner))
            made[key] = self._value(node.value, inner)
        return self.own(made)

    def _generated(self, generators: list[ast.comprehension], scope: "_Scope") -> Iterator[None]:
        first, *rest = generators
        if first.is_async:
            raise NotNative("an asynchronous comprehension is not read")
        for each in self._parts(self._value(first.iter, scope)):
            self._count()
            self._assign(first.target, each, scope)
            if all(self._truth(test, scope) for test in first.ifs):
                if rest:
                    yield from self._generated(rest, scope)
                else:
                    yield

    def _binary(self, node: ast.BinOp, scope: "_Scope") -> Any:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        made = binary(_symbol(node.op), left, right)
        return self.own(made) if type(made) is list else made

    def _unary(self, node: ast.UnaryOp, scope: "_Scope") -> Any:
        if isinstance(node.op, ast.Not):
            return not self._truth(node.operand, scope)
        if isinstance(node.op, ast.USub):
            return negated(self._value(node.operand, scope))
        raise NotNative(f"{type(node.op).__name__} is not read")

    def _boolean(self, node: ast.BoolOp, scope: "_Scope") -> Any:
        ends_at = isinstance(node.op, ast.Or)
        value: Any = None
        for each in node.values:
            value = self._value(each, scope)
            if each is not node.values[-1] and truth(value, f"`{ast.unparse(each)}`") == ends_at:
                break
        return value

    def _comparison(self, node: ast.Compare, scope: "_Scope") -> Any:
        if len(node.ops) != 1:  # each part is one truth for all samples
            return self._chained(node, scope)
        left = self._value(node.left, scope)
        right = self._value(node.comparators[0], scope)
        return compared(_COMPARE[type(node.ops[0])], left, right)

    def _chained(self, node: ast.Compare, scope: "_Scope") -> bool:
        left = self._value(node.left, scope)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._value(part, scope)
            if not truth(compared(_COMPARE[type(op)], left, right), f"`{ast.unparse(node)}`"):
                return False
            left = right
        return True

    def _conditional(self, node: ast.IfExp, scope: "_Scope") -> Any:
        return self._value(node.body if self._truth(node.test, scope) else node.orelse, scope)

    def _named(self, node: ast.NamedExpr, scope: "_Scope") -> Any:
        value = self._value(node.value, scope)
        scope.set(node.target.id, value)
        return value

    def _joined(self, node: ast.JoinedStr, scope: "_Scope") -> Any:
        parts: list[tuple[Any, str, str]] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                spec = "" if each.format_spec is None else self._value(each.format_spec, scope)
                if isinstance(spec, Each):
                    raise NotNative("a format that differs from sample to sample")
                conversion = "" if each.conversion < 0 else chr(each.conversion)
                parts.append((self._value(each.value, scope), conversion, spec))
            else:
                parts.append((self._value(each, scope), "", ""))
        return formatted(parts)

    def _call(self, node: ast.Call, scope: "_Scope") -> Any:
        function = self._value(node.func, scope)
        arguments = list(self._elements(node.args, scope))
        named: dict[str, Any] = {}
        for each in node.keywords:
            if each.arg is None:
                raise NotNative("** in a call is not read")
            named[each.arg] = self._value(each.value, scope)
        if isinstance(function, Bound):
            return self.call(function.function, [function.instance, *arguments], named)
        if type(function) is types.MethodType:
            function, arguments = function.__func__, [function.__self__, *arguments]
        if calls.is_readable(function, arguments):
            return self.call(function, arguments, named)
        if (method := calls.callable_of(function, arguments)) is not None:
            return self.call(method, [function, *arguments], named)
        return calls.call(self, function, arguments, named, ast.unparse(node.func))

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotNative("it has a long loop")


_EXPRESSIONS: dict[type, Callable[..., Any]] = {
    ast.Constant: Interpreter._constant,
    ast.Name: Interpreter._name,
    ast.Attribute: Interpreter._attribute,
    ast.Subscript: Interpreter._subscript,
    ast.Slice: Interpreter._slice,
    ast.Tuple: Interpreter._tuple,
    ast.List: Interpreter._list,
    ast.Dict: Interpreter._dict,
    ast.ListComp: Interpreter._list_comprehension,
    ast.DictComp: Interpreter._dict_comprehension,
    ast.BinOp: Interpreter._binary,
    ast.UnaryOp: Interpreter._unary,
    ast.BoolOp: Interpreter._boolean,
    ast.Compare: Interpreter._comparison,
    ast.IfExp: Interpreter._conditional,
    ast.NamedExpr: Interpreter._named,
    ast.JoinedStr: Interpreter._joined,
    ast.Call: Interpreter._call,
}

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


class _Scope:
    """The names of one function while it is read."""

    def __init__(self, function: types.FunctionType, names: dict[str, Any]) -> None:
        self._function = function
        self._names = names
        self._locals = frozenset(function.__code__.co_varnames + function.__code__.co_cellvars)
        self._outer: _Scope | None = None

    @property
    def where(self) -> str:
        """The name of the function."""
        return str(self._function.__name__)

    def child(self) -> "_Scope":
        """Returns the scope of a comprehension, which sees the names of this one."""
        inner = _Scope(self._function, {})
        inner._outer = self
        return inner

    def set(self, identifier: str, value: Any) -> None:
        self._names[identifier] = value

    def local(self, identifier: str) -> Any:
        if identifier not in self._names:
            raise NotNative(f"{identifier} is not set yet")
        return self._names[identifier]

    def get(self, identifier: str) -> Any:
        scope: _Scope | None = self
        while scope is not None:
            if identifier in scope._names:
                return scope._names[identifier]
            scope = scope._outer
        code = self._function.__code__
        if identifier in code.co_freevars:
            try:
                return self._function.__closure__[code.co_freevars.index(identifier)].cell_contents  # type: ignore[index]
            except ValueError:
                raise NotNative(f"{identifier} is not set yet") from None
        if identifier in self._locals:
            raise NotNative(f"{identifier} is not set yet")
        names = self._function.__globals__
        if identifier in names:
            return names[identifier]
        built_in = self._function.__builtins__
        if built_in is not vars(builtins) or identifier not in built_in:
            raise NotNative(f"{identifier} is not defined")
        return built_in[identifier]


def _bound(function: types.FunctionType, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Returns the names of a function's parameters with what they are given."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if len(arguments) > len(positional):
        raise NotNative(f"{function.__name__} is given too many arguments")
    names = dict(zip(positional, arguments, strict=False))
    allowed = {*positional[code.co_posonlyargcount :], *keywords}
    if not named.keys() <= allowed or named.keys() & names.keys():
        raise NotNative(f"{function.__name__} is given arguments that it does not take")
    defaults = function.__defaults__ or ()
    given = {
        **dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)),
        **(function.__kwdefaults__ or {}),
        **names,
        **named,
    }
    if missing := {*positional, *keywords} - given.keys():
        raise NotNative(f"{function.__name__} is not given {', '.join(sorted(missing))}")
    return given


def _unmangled(identifier: str) -> str:
    """Refuses a name that the compiler makes another of, within a class."""
    if identifier.startswith("__") and not identifier.endswith("__"):
        raise NotNative(f"{identifier} is private to its class")
    return identifier


def _body(tree: ast.FunctionDef) -> list[ast.stmt]:
    return tree.body


def _symbol(node: ast.operator) -> str:
    if type(node) not in _BINARY:
        raise NotNative(f"the operator {type(node).__name__} is not read")
    return _BINARY[type(node)]


def _simple(key: Any) -> Any:
    """Returns the key of a dict or a list, of a type that is compared without anybody's code."""
    if type(key) not in (str, int, bool, float, bytes, type(None)):
        raise NotNative(f"a key that is {described(key)} is not read")
    return key


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (LookupError, TypeError) as error:
        raise NotNative(f"it raises {type(error).__name__}: {error}") from error


def _placed(reason: NotNative, node: ast.stmt, scope: _Scope) -> NotNative:
    """Returns a reason with the line that it is about."""
    if " (line " in reason.why:
        return reason.again()
    return NotNative(f"{reason.why} (line {node.lineno} of {scope.where})", reason.change)
