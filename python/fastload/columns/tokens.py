"""`Tokens`: windows of flat token files."""

import operator
import os
from typing import Any, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import Paths, one_or_more
from fastload.memory import layout

__all__ = ["Tokens"]


@final
class Tokens(Column):
    """Windows of flat token files, as `numpy.memmap` would read them.

    Sample i is `tokens[i * stride : i * stride + length]`. Several files are cut separately: no window spans
    two files, and a remainder at the end of a file is dropped.

    Args:
        paths: A file, several of them, or a pattern such as `"train_*.bin"`, whose matches are sorted.
        length: Tokens per sample. For inputs and targets shifted by one: 1025, with a stride of 1024.
        dtype: Dtype of the files: of NumPy or torch, or its name.
        stride: Tokens between the starts of two samples. None: `length`.
        offset: Bytes to skip at the beginning of each file, such as a header.
        out_dtype: Dtype of samples. None: int64 for integers, as torch's embeddings and losses take them, and
            `dtype` for floats.

    Raises:
        TypeError: Paths that are neither text nor path objects, or elements that no tensor can have.
        ValueError: A pattern without matches, a length or a stride below 1, or a conversion to `out_dtype` that
            would lose values.
        OSError: A file cannot be read, or its size is not a multiple of the dtype's. A file that changes later
            raises an error when its samples are read.

    Examples:
        >>> tokens = Tokens("train.bin", 1025, stride=1024)
        >>> tokens[0].shape, tokens[0].dtype
        (torch.Size([1025]), torch.int64)
    """

    def __init__(
        self,
        paths: Paths | os.PathLike[str],
        length: int,
        dtype: Any = "uint16",
        *,
        stride: int | None = None,
        offset: int = 0,
        out_dtype: Any = None,
    ) -> None:
        self._paths = one_or_more(paths)
        self._length = _at_least(1, length, "length")
        self._stride = self._length if stride is None else _at_least(1, stride, "stride")
        self._offset = _at_least(0, offset, "offset")
        self._dtype = layout.dtype_name(dtype)
        self._out = _wide(self._dtype) if out_dtype is None else layout.dtype_name(out_dtype)
        self._native = _lib.tokens(
            self._paths, self._dtype, self._out, self._length, self._stride, self._offset
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the arguments."""
        return _tokens, (
            self._paths,
            self._length,
            self._dtype,
            self._stride,
            self._offset,
            self._out,
        )

    def __repr__(self) -> str:
        return f"Tokens({len(self)} windows of {self._describe()})"


def _tokens(
    paths: list[str], length: int, dtype: str, stride: int, offset: int, out_dtype: str
) -> Tokens:
    return Tokens(paths, length, dtype, stride=stride, offset=offset, out_dtype=out_dtype)


def _wide(dtype: str) -> str:
    """Returns the default `out_dtype`."""
    whole = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
    return "int64" if dtype in whole else dtype


def _at_least(least: int, number: int, name: str) -> int:
    found = operator.index(number)
    if found < least:
        msg = f"{name} is at least {least}, found {found}"
        raise ValueError(msg)
    return found
