"""The arguments of collate functions, and the fields of a sample: their paths, their names in messages, their options.

A path is a tuple of keys and positions, from the sample down to a field; `()` is the sample itself.
"""

import functools
from collections.abc import Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

__all__ = ["ByArguments", "Fields", "Option", "Path", "title", "with_entry"]

Path = tuple[Any, ...]

_T = TypeVar("_T")


class ByArguments:
    """A collate function that is pickled and shown by its arguments."""

    _arguments: dict[str, Any]
    _defaults: Mapping[str, Any] = MappingProxyType({})
    """The defaults that are not None, if they are left out where it is shown."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments."""
        return functools.partial(type(self), **self._arguments), ()

    def __repr__(self) -> str:
        given = (
            f"{name}={value!r}"
            for name, value in self._arguments.items()
            if value is not self._defaults.get(name)
        )
        return f"{type(self).__name__}({', '.join(given)})"


class Fields(Generic[_T]):
    """Options of fields, by path.

    Args:
        given: Keyed by name, position, or path; mappings nest.
        leaf: Returns true if a value is the option of one field.
        argument: The argument of `PadCollate`, for errors.
        wanted: What an option should be, for errors.
    """

    def __init__(
        self, given: Mapping[Any, Any], leaf: Callable[[Any], bool], argument: str, wanted: str
    ) -> None:
        self._argument = argument
        self._wanted = wanted
        self.by_path: dict[Path, _T] = {}
        self._inside: set[Path] = set()
        self._add(given, (), leaf)

    def _add(self, given: Mapping[Any, Any], prefix: Path, leaf: Callable[[Any], bool]) -> None:
        for key, value in given.items():
            path = prefix + (key if isinstance(key, tuple) else (key,))
            if isinstance(value, Mapping):
                self._add(value, path, leaf)
            elif leaf(value):
                self.by_path[path] = value
                self._inside.update(path[:end] for end in range(1, len(path) + 1))
            else:
                keys = "".join(f"[{key!r}]" for key in path)
                msg = f"PadCollate: {self._argument}{keys} should be {self._wanted}, but got {value!r}"
                raise TypeError(msg)

    def child(self, path: Path, position: int, name: str) -> Path:
        """Returns the path of a named tuple's field: its position if an option names that, else its name."""
        numbered = (*path, position)
        return numbered if numbered in self._inside else (*path, name)


class Option:
    """Fields that get an entry beside them (lengths or a mask), and the names of these entries.

    Args:
        given: None, True, False, one name, or names by field.
        suffix: Suffix of default names, as `"lengths"`.
        first: The field that a single name belongs to; None for the first padded one.
    """

    def __init__(self, given: Any, suffix: str, first: Path | None) -> None:
        self.given = given
        self.suffix = suffix
        self._first = first
        self.fields: Fields[Any] = Fields(
            given if isinstance(given, Mapping) else {},
            lambda value: isinstance(value, bool | str),
            suffix,
            "a bool or a name",
        )

    def name(self, path: Path, taken: set[str], *, keyed: bool) -> str | None:
        """Returns the name of the entry beside a field, or None if there is none.

        Args:
            path: The field.
            taken: Options whose single name is used in this batch already.
            keyed: True if the field is a value of a mapping.
        """
        given: Any = self.fields.by_path.get(path, False) if self.fields.by_path else self.given
        if given is None:
            given = keyed and self.suffix == "lengths"
        if given is True:
            return f"{path[-1]}_{self.suffix}" if path else self.suffix
        if not isinstance(given, str):
            return None
        if not self.fields.by_path:
            if self.suffix in taken or self._first not in (None, path):
                return None
            taken.add(self.suffix)
        return given


def with_entry(batch: Any, name: str, value: Any, *, by: str) -> Any:
    """Returns a batch with one more entry.

    A mapping gets it by its name, a tuple or a list as its last element; any other batch becomes a pair.

    Args:
        batch: The batch.
        name: The name of the entry.
        value: The entry.
        by: What adds it, for errors.

    Raises:
        ValueError: A mapping that has the name already or takes no new ones; or a named tuple.
    """
    if isinstance(batch, MutableMapping):
        if name in batch:
            msg = f"the batch has {name!r} already, which {by} adds; rename that field"
            raise ValueError(msg)
        if type(batch) is dict:
            return batch | {name: value}
        batch[name] = value
        return batch
    if type(batch) is list:
        return [*batch, value]
    if type(batch) is tuple:
        return (*batch, value)
    if isinstance(batch, tuple) or hasattr(batch, "keys"):
        msg = (
            f"{type(batch).__name__} cannot hold {name!r}, which {by} adds; return dicts or "
            "tuples from collate_fn"
        )
        raise ValueError(msg)
    return batch, value


def title(path: Path) -> str:
    """Returns a field's name for messages."""
    if not path:
        return "(the sample)"
    return repr(path[0]) + "".join(f"[{key!r}]" for key in path[1:])
