"""Pickling with the memory of tensors and arrays beside the pickle.

Owns which memory that is: whole storages, so that tensors over one stay so; of a storage that is large beside
its tensor, the tensor's elements alone. Everything else is pickled as torch's own queues do it. Refuses to
know where the memory goes: the caller of pickle passes the place. Invariant: nothing that is sent is memory of
the sender's dataset; it was made in a slot, or is copied.
"""

import ctypes
import functools
import io
import operator
import pickle
from collections.abc import Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

import numpy as np
import torch
import torch.multiprocessing  # registers torch's reductions with ForkingPickler

from fastload import _lib

__all__ = ["SMALL", "Memory", "Pickler", "WholePickler", "dumps", "dumps_small", "loads"]

SMALL = 4096
"""Memory of fewer bytes is part of the pickle."""

_FEW, _MANY = 32, 64
"""Tensors of a small message, and entries of one of its containers."""

_ATOMS = frozenset([bool, int, float, complex, str, bytes, type(None)])
_DTYPES = {
    "?": torch.bool,
    "b": torch.int8,
    "B": torch.uint8,
    "h": torch.int16,
    "i": torch.int32,
    "l": torch.int64,
    "e": torch.float16,
    "f": torch.float32,
    "d": torch.float64,
}
_LETTERS = {dtype: letter for letter, dtype in _DTYPES.items()}

_has_names: Any = getattr(
    torch.Tensor, "has_names", lambda _: False
)  # older releases of torch have named tensors


class Memory(Protocol):
    """The target of memory that is not part of a pickle."""

    def take(self, len: int, /) -> torch.Tensor | None:
        """Returns that many bytes to write to, if there are any."""

    def part(self, address: int, len: int, /) -> Any:
        """Returns the placeholder of bytes of a live tensor that `take` made; None for others."""


def dumps(
    *values: Any, memory: Memory | None = None, pickler: "type[Pickler] | None" = None
) -> tuple[bytes, list[Any]]:
    """Returns the pickles of values, one after the other, and the parts beside them.

    Args:
        *values: What is pickled.
        memory: The target of parts; None: the pickle.
        pickler: The class of the pickler, if it is a special one.

    Raises:
        Exception: What the pickling of a value raises.
    """
    file = io.BytesIO()
    pickling = (pickler or Pickler)(file, memory)
    for value in values:
        pickling.dump(value)
    return file.getvalue(), pickling.parts


def dumps_small(*values: Any) -> bytes | None:
    """Returns the pickles of values whose tensors are few, small, and each alone in its storage.

    It takes a fifth of the time of `dumps`, which asks Python about every object.

    Returns:
        None if there is anything but such tensors, numbers, text, and tuples, lists and dicts of them.
    """
    if not _are_small(reversed(values), set()):  # what is large comes last
        return None
    file = io.BytesIO()
    pickling = _SmallPickler(file, 5)
    for value in values:
        pickling.dump(value)
    return file.getvalue()


def _are_small(values: Iterable[Any], storages: set[int]) -> bool:
    """Returns true if values are what `dumps_small` takes; adds the storages of their tensors."""
    for value in values:
        kind = type(value)
        if kind is torch.Tensor:
            if value.dtype not in _LETTERS or not _is_plain(value):
                return False
            storage = value.untyped_storage()
            if not (
                value.nbytes == storage.nbytes()
                and 0 < value.nbytes < SMALL
                and value.is_contiguous()
                and not value.is_neg()
                and storage._cdata not in storages
                and len(storages) < _FEW
            ):
                return False
            storages.add(storage._cdata)
        elif kind in (tuple, list):
            if len(value) > _MANY or not _are_small(value, storages):
                return False
        elif kind is dict:
            if len(value) > _MANY or not _are_small([*value, *value.values()], storages):
                return False
        elif kind not in _ATOMS:
            return False
    return True


def _reduce_small(tensor: torch.Tensor) -> Any:
    # in less time than tensor.numpy() takes
    content = ctypes.string_at(tensor.data_ptr(), tensor.nbytes)
    return _make_small, (content, _LETTERS[tensor.dtype], tuple(tensor.shape))


def _make_small(content: bytes, letter: str, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=_DTYPES[letter]).view(shape)


class _SmallPickler(pickle.Pickler):
    """Pickles a small message."""

    dispatch_table = {torch.Tensor: _reduce_small}  # noqa: RUF012 (as the base class wants it)


def loads(payload: bytes, parts: list[Any]) -> pickle.Unpickler:
    """Returns the unpickler that loads the values one after the other; parts are `uint8` tensors."""
    return pickle.Unpickler(io.BytesIO(payload), buffers=parts)


class Pickler(ForkingPickler):
    """Pickles one message."""

    def __init__(self, file: Any, memory: Memory | None) -> None:
        self._marker = pickle.PickleBuffer(bytearray())
        # no method of this object, which would keep it, and with it slots, until garbage is collected
        is_in_band = functools.partial(operator.is_not, self._marker)
        super().__init__(file, 5, True, is_in_band)  # takes no keywords
        self.parts: list[Any] = []
        self._memory = memory
        self._storages: dict[int, torch.UntypedStorage] = {}

    def reducer_override(self, obj: Any) -> Any:
        """Returns how tensors, storages and arrays are pickled."""
        kind = type(obj)
        if kind is torch.Tensor:
            return self._tensor(obj) if _is_plain(obj) else NotImplemented
        if kind is torch.UntypedStorage:
            return self._storage(obj) if obj.device.type == "cpu" else NotImplemented
        if kind is np.ndarray:
            return self._array(obj)
        return NotImplemented

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages and storage.nbytes() > max(
            SMALL, 2 * tensor.nbytes
        ):
            tensor = self._elements(tensor)
            storage = tensor.untyped_storage()
        place = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        return _make_tensor, (storage, tensor.dtype, *place)

    def _elements(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of its own with the same elements, in their order in memory."""
        memory = self._take(tensor.nbytes)
        if memory is None:
            return tensor.clone()
        strides = torch.empty_like(tensor, device="meta").stride()
        own = torch.empty(0, dtype=tensor.dtype, device="cpu")
        own.set_(memory.untyped_storage(), 0, tensor.shape, strides)
        return own.copy_(tensor)

    def _storage(self, storage: torch.UntypedStorage) -> Any:
        first = self._storages.setdefault(storage._cdata, storage)
        if first is not storage:
            return _same, (first,)
        length = storage.nbytes()
        part = self._part(storage.data_ptr(), length)
        if part is None:
            content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
            memory = self._take(length)
            if memory is None:
                return _make_storage, (content.numpy().tobytes(),)
            memory.copy_(content)
            part = self._part(memory.data_ptr(), length)
        self.parts.append(part)
        return _make_storage, (self._marker,)

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.hasobject:
            return NotImplemented
        memory = self._take(array.nbytes) if array.dtype.isnative else None
        if memory is None:
            return (
                array.__reduce__()
            )  # of protocol 2: it is neither read-only there nor of another byte order
        order = "F" if array.flags.fnc else "C"
        target = _make_array(memory, array.dtype, array.shape, order)
        target[...] = array
        self.parts.append(self._part(memory.data_ptr(), array.nbytes))
        return _make_array, (self._marker, array.dtype, array.shape, order)

    def _take(self, length: int) -> torch.Tensor | None:
        return None if self._memory is None or length < SMALL else self._memory.take(length)

    def _part(self, address: int, length: int) -> Any:
        return None if self._memory is None or not length else self._memory.part(address, length)


class WholePickler(Pickler):
    """Refuses tensors that would be something else on the other side: without their graph or scale, or another's memory."""

    def reducer_override(self, obj: Any) -> Any:
        """Returns how tensors, storages and arrays are pickled.

        Raises:
            RuntimeError: A tensor that requires grad, lies on a device, or is quantised.
        """
        if isinstance(obj, torch.Tensor):
            if obj.requires_grad:
                msg = "a tensor that requires grad is part of a graph in the process that made it"
                raise RuntimeError(msg)
            if obj.device.type not in ("cpu", "meta"):
                msg = f"a tensor on {obj.device} belongs to the process that made it"
                raise RuntimeError(msg)
            if obj.is_quantized:
                msg = "torch does not send the scale of a quantised tensor to another process"
                raise RuntimeError(msg)
        return super().reducer_override(obj)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Returns true if a tensor is no more than its elements; others are reduced in torch's own way."""
    return not (
        tensor.layout is not torch.strided
        or tensor.device.type != "cpu"
        or tensor.requires_grad
        or tensor._backward_hooks
        or tensor.is_quantized
        or tensor.is_nested
        or _has_names(tensor)
    )


def _same(first: Any) -> Any:
    return first


def _make_storage(content: torch.Tensor | bytes) -> torch.UntypedStorage:
    if isinstance(content, bytes):
        content = _lib.own(content)
    return content.untyped_storage()


def _make_tensor(
    storage: torch.UntypedStorage,
    dtype: torch.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> torch.Tensor:
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, shape, strides)


def _make_array(
    content: torch.Tensor, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any
) -> np.ndarray[Any, Any]:
    """Returns an array over bytes."""
    return np.ndarray(shape, dtype, content.numpy(), order=order)
