"""The base class of columns: a map-style dataset of single values."""

import operator
from typing import Any, Literal

import torch
from torch.utils.data import Dataset

from fastload import _lib
from fastload.images import foreign
from fastload.machine import pillow

__all__ = ["Column", "Form", "draw_sample"]

Form = Literal["tensor", "channels_last", "text", "bytes"]


class Column(Dataset[Any]):
    """One leaf of a dataset: samples of one kind, made natively."""

    _native: _lib.Column
    _made: _lib.Program | None = None

    @property
    def _form(self) -> Form:
        """The form of the values, as `_lib.Leaf` names it."""
        return "tensor"

    @property
    def _heavy(self) -> bool:
        """True if a sample takes long enough to release the interpreter for it."""
        return False

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

    def __getitem__(self, index: int) -> Any:
        """Returns one sample: a tensor without a batch dimension, a str or bytes; or a dict of them.

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: A file cannot be read or decoded.
        """
        return draw_sample(self._program, operator.index(index))

    @property
    def _program(self) -> _lib.Program:
        if self._made is None or self._made.moved():
            parts = self._parts
            each = [self] if parts is None else list(parts.values())
            leaves = [_lib.Leaf(place, column._form) for place, column in enumerate(each)]
            structure = leaves[0] if parts is None else dict(zip(parts, leaves, strict=True))
            self._made = _lib.Program([column._core for column in each], structure)
        return self._made

    def _describe(self) -> str:
        """Returns the shape and dtype of one sample, in words."""
        [(shape, dtype)] = self._program.layout()
        return f"{dtype}, {'varying shape' if shape is None else f'shape {tuple(shape)}'}"


def draw_sample(program: _lib.Program, index: int) -> Any:
    """Returns one sample; random operations take one draw of torch's global generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_().item()) if program.is_random() else 0
    return program.sample(index, seed=seed, foreign=foreign.decoder(), **pillow.switches())
