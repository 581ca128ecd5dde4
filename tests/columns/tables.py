"""What the tests of Arrow and Parquet share: their types, and samples by way of Python."""

import numpy as np
import pyarrow as pa
import torch

NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
NUMBERS += [pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]
LETTERS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
LETTERS += [pa.binary(3), pa.string_view(), pa.binary_view()]


def letters(kind, count):
    """An Arrow array of text or bytes, some empty, some of several bytes a letter."""
    texts = ["", "a", "äöü", "\U0001f600x", "0" * 40]
    chosen = [texts[at % 5] if kind != pa.binary(3) else f"{at:03}" for at in range(count)]
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return pa.array(chosen, kind)
    return pa.array([text.encode() for text in chosen], kind)


def plain(array):
    """Samples as tensors of the column's dtype, str or bytes, by way of Python."""
    kind = array.type
    if kind in LETTERS or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return array.to_pylist()
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    dtype = getattr(torch, np.dtype(kind.to_pandas_dtype()).name)
    return [torch.tensor(value, dtype=dtype) for value in array.to_pylist()]


def same(ours, theirs):
    """Asserts that samples are equal in type, dtype, shape and every bit."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.numpy().tobytes() == b.numpy().tobytes()
        else:
            assert a == b
