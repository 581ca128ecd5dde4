"""`Records`, `Tokens` and `Megatron`: numbers in binary files that say nothing of their type."""

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, Literal, final

import torch

from fastload import _lib
from fastload.checks import at_least, check_choice
from fastload.columns.column import Column
from fastload.columns.files import Paths, one_or_more
from fastload.memory import layout


@final
class Records(Column):
    """Arrays at equal distances in binary files, as in those of CIFAR-10 and MNIST.

    A file is a header of `offset` bytes, and then records of `stride` bytes each. Of record i, the sample is the
    array of `shape`, in C order and native byte order, that begins at its byte `start`.

    Args:
        paths: A file, several of them, or a pattern such as `"data_batch_*.bin"`, whose matches are sorted.
        shape: Shape of a sample.
        dtype: Dtype of the files: of NumPy or torch, or its name.
        stride: Bytes of a record. None: those of a sample.
        start: Byte of a record at which the sample begins.
        offset: Bytes to skip at the beginning of each file, such as a header.
        out_dtype: Dtype of samples. None: `dtype`.

    Raises:
        TypeError: Paths that are neither text nor path objects, or elements that no tensor can have.
        ValueError: A pattern without matches, a sample that does not fit into a record, or a conversion to
            `out_dtype` that would lose values.
        OSError: A file cannot be read, or is not a header and whole records. A file that changes later raises an
            error when its samples are read.

    Examples:
        >>> images = Records("data_batch_*.bin", (3, 32, 32), stride=3073, start=1)
        >>> labels = Records("data_batch_*.bin", (), stride=3073, out_dtype="int64")
        >>> images[0].shape, labels[0]
        (torch.Size([3, 32, 32]), tensor(6))
    """

    def __init__(
        self,
        paths: Paths | os.PathLike[str],
        shape: Sequence[int],
        dtype: Any = "uint8",
        *,
        stride: int | None = None,
        start: int = 0,
        offset: int = 0,
        out_dtype: Any = None,
    ) -> None:
        self._paths = one_or_more(paths)
        shape = tuple(map(operator.index, shape))
        dtype = layout.dtype_name(dtype)
        out = dtype if out_dtype is None else layout.dtype_name(out_dtype)
        sample = math.prod(shape) * getattr(torch, dtype).itemsize
        stride = sample if stride is None else operator.index(stride)
        of_records = stride, start, offset
        if min(*shape, *of_records) < 0:
            msg = f"sizes are at least 0, found shape {shape}, (stride, start, offset) {of_records}"
            raise ValueError(msg)
        options = {"stride": stride, "start": start, "offset": offset, "out_dtype": out}
        self._arguments = (self._paths, shape, dtype), options
        self._native = _lib.records(self._paths, dtype, out, shape, of_records)

    def __repr__(self) -> str:
        return f"Records({len(self)} of {self._describe()})"


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
        length = at_least("length", length, 1)
        stride = length if stride is None else at_least("stride", stride, 1)
        offset = at_least("offset", offset, 0)
        dtype = layout.dtype_name(dtype)
        out = _wide(dtype) if out_dtype is None else layout.dtype_name(out_dtype)
        self._arguments = (
            (self._paths, length, dtype),
            {"stride": stride, "offset": offset, "out_dtype": out},
        )
        self._native = _lib.tokens(self._paths, dtype, out, length, stride, offset)

    def __repr__(self) -> str:
        return f"Tokens({len(self)} windows of {self._describe()})"


@final
class Megatron(Column):
    """Documents of tokens in a pair of files `x.bin` and `x.idx`, as Megatron-LM's preprocessing writes them.

    Samples vary in length. A batch of samples of one length is stacked, as by torch's `default_collate`;
    different lengths raise its error.

    Args:
        prefix: The path without `.bin` and `.idx`, or with one of them.
        unit: The kind of a sample: a `"sequence"`, as in Megatron's `IndexedDataset`, or a `"document"`, all of its
            sequences joined. They differ if preprocessing split sentences.
        out_dtype: Dtype of samples. None: int64 for integers, the stored dtype for floats.

    Raises:
        TypeError: A prefix that is neither text nor a path object.
        ValueError: An unknown unit, or a conversion to `out_dtype` that would lose values.
        OSError: A file cannot be read, the index is damaged or of another version than 1, or a sample does
            not lie within `x.bin`.

    Examples:
        >>> documents = Megatron("corpus_text_document")
        >>> documents[0].dtype
        torch.int64
    """

    def __init__(
        self,
        prefix: str | os.PathLike[str],
        *,
        unit: Literal["sequence", "document"] = "sequence",
        out_dtype: Any = None,
    ) -> None:
        check_choice("unit", unit, ("sequence", "document"))
        [path] = one_or_more([prefix])
        prefix = path.removesuffix(".bin").removesuffix(".idx")
        self._unit = unit
        tokens, index = self._paths = [f"{prefix}.bin", f"{prefix}.idx"]
        out = None if out_dtype is None else layout.dtype_name(out_dtype)
        self._arguments = (prefix,), {"unit": unit, "out_dtype": out}
        self._native = _lib.megatron(tokens, index, unit == "document", out)

    def __repr__(self) -> str:
        return f"Megatron({len(self)} {self._unit}s of {self._describe()})"


def _wide(dtype: str) -> str:
    """Returns the default `out_dtype`."""
    whole = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
    return "int64" if dtype in whole else dtype
