"""`Table`: the base class of sources with named columns, read once for all of them."""

from typing import Any, final

import torch

from fastload import _lib
from fastload.columns.column import Column, Form

__all__ = ["Part", "Table", "dtype_name"]

_PYTHON = {int: "int64", float: "float64", bool: "bool", str: "text"}


class Table(Column):
    """One column of a source, or several, by name."""

    _names: str | list[str]
    _natives: dict[str, tuple[_lib.Column, Form]]
    """The native column of each name, and the form of its values."""

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name, for use anywhere in a structure; they share the data."""
        names = [self._names] if isinstance(self._names, str) else self._names
        return {name: Part(self, name) for name in names}

    @property
    def _parts(self) -> dict[str, Column] | None:
        return None if isinstance(self._names, str) else self.columns

    @property
    def _core(self) -> _lib.Column:
        return self._natives[self._first][0]

    @property
    def _form(self) -> Form:
        return self._natives[self._first][1]

    @property
    def _first(self) -> str:
        return self._names if isinstance(self._names, str) else self._names[0]


@final
class Part(Column):
    """One of the columns of a table; pickles as the table and the name."""

    def __init__(self, table: Table, name: str) -> None:
        self._table = table
        self._name = name
        self._native, self._kind = table._natives[name]

    @property
    def _form(self) -> Form:
        return self._kind

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the table and the name; columns of one table still share it afterwards."""
        return Part, (self._table, self._name)

    def __repr__(self) -> str:
        return f"{self._table!r}.columns[{self._name!r}]"


def dtype_name(dtype: Any) -> str:
    """Returns the name in `_lib` of a torch dtype, int, float, bool or str.

    Raises:
        TypeError: Something else.
    """
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    msg = f"dtype is one of torch's, or int, float, bool or str, not {dtype!r}"
    raise TypeError(msg)
