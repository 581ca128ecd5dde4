"""What a batch is, in few bytes: digests, and in words where two batches differ."""

import functools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

NOISE = "noise"
"""Fields whose name begins so are drawn: under AUTO torch draws others."""

_BAD_SAMPLE = re.compile(r"sample (\d+) is bad")


class Event(NamedTuple):
    """What came of one `next`.

    Attributes:
        exact: Digest of the whole batch, or of the error in its place.
        steady: Digest of what no draw decides.
    """

    exact: int
    steady: int


def of_batch(batch: Any, *, drawn: bool = False) -> Event:
    """Returns the digests of a batch; of one that is `drawn`, a pair's first part is noise."""
    if isinstance(batch, Mapping) and any(str(key).startswith(NOISE) for key in batch):
        rest = {key: value for key, value in batch.items() if not str(key).startswith(NOISE)}
        return Event(_crc(batch, 0), _crc(rest, 0))
    crc = _crc(batch, 0)
    if drawn and isinstance(batch, list | tuple) and len(batch) == 2:
        return Event(crc, _crc(batch[1], 0))
    return Event(crc, crc)


def of_error(error: Exception) -> Event:
    """Returns the digest of an error: its kind, and the sample that it names."""
    kind = "OSError" if isinstance(error, OSError) else type(error).__name__
    found = _BAD_SAMPLE.search(str(error))
    crc = zlib.crc32(f"{kind} {found and found[1]}".encode())
    return Event(crc, crc)


def _crc(value: Any, crc: int) -> int:
    if isinstance(value, torch.Tensor):
        return _of_tensor(value, crc)
    if isinstance(value, np.ndarray):
        return _of_tensor(torch.from_numpy(value), crc)
    if isinstance(value, Mapping):
        for key in value:
            crc = _crc(value[key], zlib.crc32(str(key).encode(), crc))
        return crc
    if isinstance(value, bytes):
        return zlib.crc32(value, crc)
    if isinstance(value, Sequence) and not isinstance(value, str):
        crc = zlib.crc32(type(value).__name__.encode(), crc)
        for part in value:
            crc = _crc(part, crc)
        return crc
    return zlib.crc32(repr(value).encode(), crc)


def _of_tensor(tensor: torch.Tensor, crc: int) -> int:
    if tensor.is_nested:
        return _of_tensor(tensor.offsets(), _of_tensor(tensor.values(), crc))
    crc = zlib.crc32(_header(tensor.dtype, tensor.shape), crc)
    if not tensor.numel():
        return crc
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    if tensor.dtype in (torch.bool, torch.bfloat16):
        tensor = tensor.view(torch.uint8)
    return zlib.crc32(tensor.numpy(), crc)


@functools.lru_cache(4096)
def _header(dtype: torch.dtype, shape: torch.Size) -> bytes:
    return f"{dtype}{tuple(shape)}".encode()


def difference(got: Any, want: Any) -> str:
    """Returns in words where a batch differs from the one that was expected."""
    return next(_differences(got, want, "batch"), "nothing that can be named")


def _differences(got: Any, want: Any, where: str) -> Iterator[str]:
    if isinstance(got, Exception) or isinstance(want, Exception):
        if of_error_or_none(got) != of_error_or_none(want):
            yield f"{where} is {_short(got)} in place of {_short(want)}"
        return
    if type(got) is not type(want):
        yield f"{where} is a {type(got).__name__} in place of a {type(want).__name__}"
    elif isinstance(got, torch.Tensor):
        yield from _of_tensors(got, want, where)
    elif isinstance(got, Mapping):
        if list(got) != list(want):
            yield f"{where} has the keys {list(got)} in place of {list(want)}"
            return
        for key in got:
            yield from _differences(got[key], want[key], f"{where}[{key!r}]")
    elif isinstance(got, Sequence) and not isinstance(got, str | bytes):
        if len(got) != len(want):
            yield f"{where} has {len(got)} values in place of {len(want)}"
            return
        for at, (ours, theirs) in enumerate(zip(got, want, strict=True)):
            yield from _differences(ours, theirs, f"{where}[{at}]")
    elif got != want:
        yield f"{where} is {_short(got)} in place of {_short(want)}"


def _of_tensors(got: torch.Tensor, want: torch.Tensor, where: str) -> Iterator[str]:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        yield f"{where} is {got.dtype} {tuple(got.shape)} in place of {want.dtype} {tuple(want.shape)}"
        return
    if got.is_nested or not got.numel():
        return
    ours, theirs = got.contiguous().reshape(-1), want.contiguous().reshape(-1)
    unequal = (ours.view(torch.uint8) != theirs.view(torch.uint8)).nonzero()
    if len(unequal):
        first = int(unequal[0]) // got.element_size()
        yield (
            f"{where}: {len(unequal)} of {got.numel() * got.element_size()} bytes; element {first} of "
            f"{tuple(got.shape)} is {ours[first].item()!r} in place of {theirs[first].item()!r}"
        )


def of_error_or_none(value: Any) -> Event | None:
    """Returns the digest of an error, or None for a batch."""
    return of_error(value) if isinstance(value, Exception) else None


def _short(value: Any) -> str:
    text = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value)
    return text if len(text) < 300 else f"{text[:140]} ... {text[-140:]}"
