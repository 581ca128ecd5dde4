"""The base classes of columns: of one with single values, and of a source with several, read once for all of them."""

import functools
import operator
from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from torch.utils.data import Dataset

from fastload import _lib
from fastload.images import foreign
from fastload.machine import pillow

_PYTHON = {int: "int64", float: "float64", bool: "bool", str: "text"}

Form = Literal["tensor", "channels_last", "text", "bytes"]


class Native(Dataset[Any]):
    """A map-style dataset whose samples a native program makes."""

    _made: _lib.Program | None = None

    def _make(self) -> _lib.Program:
        raise NotImplementedError

    @property
    def _program(self) -> _lib.Program:
        if self._made is None or self._made.moved():
            self._made = self._make()
        return self._made

    def __getitem__(self, index: int) -> Any:
        """Returns one sample: a tensor without a batch dimension, a str or bytes; or a structure of them.

        Raises:
            IndexError: `index` is not in `-len(self) <= index < len(self)`.
            OSError: A file cannot be read or decoded.
        """
        return draw_sample(self._program, operator.index(index))


class Column(Native):
    """One leaf of a dataset: samples of one kind, made natively."""

    _native: _lib.Column
    _form: Form = "tensor"  # of the values, as `_lib.Leaf` names it
    _heavy = False  # true if a sample takes long enough to release the interpreter for it
    _paths: list[str]  # its files, from which `fastload.sample_files` knows those of samples
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]  # those that are pickled

    @property
    def _core(self) -> _lib.Column:
        return self._native

    @property
    def _parts(self) -> "dict[str, Column] | None":
        """The columns by name if samples are dicts; None if a sample is one value."""
        return None

    def __len__(self) -> int:
        """Returns the number of samples."""
        return len(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments; files are opened, and their headers read, again."""
        values, options = self._arguments
        return functools.partial(type(self), **options), values

    def _make(self) -> _lib.Program:
        parts = self._parts
        each = [self] if parts is None else list(parts.values())
        leaves = [_lib.Leaf(place, column._form) for place, column in enumerate(each)]
        structure = leaves[0] if parts is None else dict(zip(parts, leaves, strict=True))
        return _lib.Program([column._core for column in each], structure)

    def _describe(self) -> str:
        """Returns the shape and dtype of one sample, in words."""
        [(shape, dtype)] = self._program.layout()
        return f"{dtype}, {'varying shape' if shape is None else f'shape {tuple(shape)}'}"


class Table(Column):
    """One column of a source, or several, by name."""

    def __init__(
        self,
        natives: Mapping[str, tuple[_lib.Column, Form]],  # with the form of their values
        names: str | list[str],  # the column's, or those of several
    ) -> None:
        self._natives = natives
        self._names = names
        self._native, self._form = natives[names if isinstance(names, str) else names[0]]

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name, for use anywhere in a structure; they share the data."""
        names = [self._names] if isinstance(self._names, str) else self._names
        return {name: Part(self, name) for name in names}

    @property
    def _parts(self) -> dict[str, Column] | None:
        return None if isinstance(self._names, str) else self.columns


@final
class Part(Column):
    """One of the columns of a table; pickles as the table and the name."""

    def __init__(self, table: Table, name: str) -> None:
        self._table = table
        self._name = name
        self._native, self._form = table._natives[name]
        self._arguments = (table, name), {}  # columns of one table share it after pickling, too

    def __repr__(self) -> str:
        return f"{self._table!r}.columns[{self._name!r}]"


def draw_sample(program: _lib.Program, index: int) -> Any:
    """Returns one sample; random operations take one draw of torch's global generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_().item()) if program.is_random() else 0
    return program.sample(index, seed=seed, foreign=foreign.decoder(), **pillow.switches())


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
