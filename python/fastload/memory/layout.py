"""Arrays as the native core sees them: an address, a shape, distances, a dtype, an owner.

Owns which arrays can be rows of a dataset, and how a memory-mapped one crosses a pickle (as
the name of its file). Never copies, never converts, never writes.
"""

import mmap
from typing import Any, NamedTuple

import numpy as np
import torch

_TORCH_NAMES = {
    np.dtype(name).str: name
    for name in (
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}


def dtype_name(dtype: Any) -> str:
    """Returns torch's name for a dtype of torch or of NumPy, or for what `numpy.dtype` takes.

    Raises:
        TypeError: No dtype, or one whose elements no tensor can have.
        ValueError: Foreign byte order.
    """
    named = getattr(torch, dtype, None) if isinstance(dtype, str) else None
    if isinstance(named, torch.dtype) and str(named) == f"torch.{dtype}":
        dtype = named  # NumPy does not know all of them
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    found = np.dtype(dtype)
    if not found.isnative:
        msg = f"elements must be in this machine's byte order, but dtype is {found.str}"
        raise ValueError(msg)
    if found.str not in _TORCH_NAMES:
        msg = f"elements must be numbers or booleans, but dtype is {found}"
        raise TypeError(msg)
    return _TORCH_NAMES[found.str]


class Memory(NamedTuple):
    """The memory of an array; the arguments of the native `Rows`, in order."""

    pointer: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    dtype: str
    owner: Any


def of_tensor(tensor: torch.Tensor, holder: str = "Rows") -> Memory:
    """Describes a tensor, for `holder` to read.

    Raises:
        TypeError: Not dense elements in ordinary memory of the CPU.
    """
    if tensor.device.type != "cpu":
        msg = f"{holder} holds tensors of the CPU, found one on {tensor.device}"
        raise TypeError(msg)
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        msg = f"{holder} holds dense tensors, found a {kind} {tensor.dtype} tensor"
        raise TypeError(msg)
    if tensor.is_conj() or tensor.is_neg():
        msg = (
            f"{holder} holds tensors as they lie in memory, found a lazily conjugated or negated one; "
            "call resolve_conj() or resolve_neg() first"
        )
        raise TypeError(msg)
    try:
        tensor = tensor.as_subclass(torch.Tensor)
        pointer, stored = tensor.data_ptr(), tensor.untyped_storage().nbytes()
        shape, strides = tuple(tensor.shape), tensor.stride()
    except RuntimeError as error:  # fake, or wrapped by a function transform
        msg = f"{holder} holds tensors in memory, found one without: {error}"
        raise TypeError(msg) from error
    size = tensor.element_size()
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    needed = (tensor.storage_offset() + last + 1) * size
    if 0 not in shape and (not pointer or needed > stored):
        msg = f"{holder} reads {needed} bytes of a tensor's storage, which has {stored} in memory"
        raise TypeError(msg)
    return Memory(
        pointer,
        shape,
        tuple(stride * size for stride in strides),
        str(tensor.dtype).removeprefix("torch."),
        tensor,
    )


def of_array(array: np.ndarray[Any, Any], holder: str = "Rows") -> Memory:
    """Describes a NumPy array, for `holder` to read; read-only and backwards are as good as any.

    Raises:
        TypeError: Elements that no tensor can have (text, objects, dates), or a masked array.
        ValueError: Foreign byte order.
    """
    if isinstance(array, np.ma.MaskedArray):
        msg = f"{holder} has no place for the mask of a masked array; fill it first"
        raise TypeError(msg)
    if not array.dtype.isnative:
        msg = (
            f"{holder} holds numbers in this machine's byte order, found {array.dtype.str}; "
            "convert with array.astype(array.dtype.newbyteorder('='))"
        )
        raise ValueError(msg)
    if array.dtype.str not in _TORCH_NAMES:
        msg = f"{holder} holds numbers and booleans, but dtype is {array.dtype}"
        raise TypeError(msg)
    pointer = array.__array_interface__["data"][0]
    return Memory(pointer, array.shape, array.strides, _TORCH_NAMES[array.dtype.str], array)


class MappedFile(NamedTuple):
    """An array that is a part of a file, as it is pickled."""

    path: str
    offset: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    dtype: str

    def open(self) -> np.ndarray[Any, Any]:
        """Maps the file again, read-only."""
        whole = np.memmap(self.path, dtype=np.uint8, mode="r")
        return np.ndarray(
            self.shape, self.dtype, buffer=whole, offset=self.offset, strides=self.strides_bytes
        )


def mapped_file(array: Any) -> MappedFile | None:
    """Returns which part of which file an array maps, or None if it is no mapping of one.

    A copy-on-write mapping is none: the file does not have what was written to the array.
    """
    if not isinstance(array, np.memmap) or array.filename is None or array.mode == "c":
        return None
    mapping = array._mmap  # type: ignore[attr-defined]
    if not isinstance(mapping, mmap.mmap):
        return None
    # A slice keeps its parent's offset, so the place in the file is found from the address.
    start = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
    first = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    offset = first + array.__array_interface__["data"][0] - start
    return MappedFile(str(array.filename), offset, array.shape, array.strides, array.dtype.str)
