"""Columns: the leaves of a native dataset.

A column is a map-style dataset of its own: `column[i]` is one sample, made by the same native
code that makes batches. Columns hold no samples; they say where samples are and how each is
made. They never change once made, and pickle as what they were made from.
"""

import glob
import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np
import torch
from torch.utils.data import Dataset

from fastload import _arrays, _lib, pillow, transforms

__all__ = ["Column", "Image", "Rows"]


class Column(Dataset[torch.Tensor]):
    """One leaf of a dataset: samples of one kind, made natively."""

    _native: _lib.Rows | _lib.Image
    _made: _lib.Program | None = None

    @property
    def _core(self) -> _lib.Rows | _lib.Image:
        return self._native

    def __len__(self) -> int:
        """Returns how many samples there are."""
        return len(self._core)

    def __getitem__(self, index: int) -> torch.Tensor:
        """Returns one sample, without a batch dimension."""
        sample: torch.Tensor = draw_sample(self._program, operator.index(index))
        return sample

    @property
    def _program(self) -> _lib.Program:
        if self._made is None or self._made.moved():
            self._made = _lib.Program([self._core], 0)
        return self._made

    def _describe(self) -> str:
        """Returns the shape and dtype of one sample, in words."""
        [(shape, dtype)] = self._program.layout()
        return f"{dtype}, {'varying shape' if shape is None else f'shape {tuple(shape)}'}"


@final
class Rows(Column):
    """Fixed-size rows of one array, shared without a copy.

    The memory must stay where it is while batches are made: no `resize_` or `share_memory_` of the
    tensor during an epoch. Between epochs a tensor that has moved is found again.

    Args:
        data: A tensor on the CPU; a NumPy array, also read-only or memory-mapped; or what
            `numpy.asarray` makes an array of numbers from. Its first dimension counts samples.

    Raises:
        TypeError: Not dense numbers or booleans in main memory.
        ValueError: No first dimension, or foreign byte order.
    """

    def __init__(self, data: Any) -> None:
        if isinstance(data, torch.Tensor):
            memory = _arrays.of_tensor(data.detach())
            data = memory.owner
        else:
            data = data if isinstance(data, np.ndarray) else np.asarray(data)
            memory = _arrays.of_array(data)
        if not memory.shape:
            msg = "Rows needs a first dimension that counts samples, found a scalar"
            raise ValueError(msg)
        self._data = data
        self._file = _arrays.mapped_file(data)
        self._native = _lib.Rows(*memory)

    _native: _lib.Rows

    @property
    def _core(self) -> _lib.Rows:
        # torch moves a tensor's memory when it is shared with another process, or resized
        if self._native.moved():
            self._native = _lib.Rows(*_arrays.of_tensor(self._data))
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the array, or the name of the file that it maps.

        A tensor is pickled as a copy: torch moves the memory of one that it hands to another
        process, and native threads may be reading it.
        """
        if self._file is not None:
            return _reopen, (self._file,)
        data = self._data
        return Rows, (_copy(data) if isinstance(data, torch.Tensor) else data,)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {self._describe()})"


@final
class Image(Column):
    """Encoded images, one file each.

    Args:
        paths: Files, or a pattern such as `"photos/**/*.jpg"`, whose matches are sorted.
        transform: One of `fastload.transforms` or a sequence of them; None leaves
            `(height, width, 3)` bytes.

    Raises:
        TypeError: Paths that are neither text nor path objects, or a foreign transform.
        ValueError: A pattern without matches, or transforms that do not fit together.
    """

    def __init__(
        self,
        paths: str | Iterable[str | os.PathLike[str]],
        transform: transforms.Transform | Sequence[transforms.Transform] | None = None,
    ) -> None:
        self._paths = _paths(paths)
        self._transforms = _transforms(transform)
        self._native = _lib.Image(self._paths, "RGB", *transforms.chain(self._transforms))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and the transforms."""
        return Image, (self._paths, self._transforms)

    def __repr__(self) -> str:
        steps = ", ".join(map(repr, self._transforms))
        return f"Image({len(self)} files{f', [{steps}]' if steps else ''})"


def draw_sample(program: _lib.Program, index: int) -> Any:
    """Returns one sample; random operations take one draw of torch's global generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_().item()) if program.is_random() else 0
    return program.sample(index, seed=seed, **pillow.switches())


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the same view of a copy of a tensor's memory, unless that is shared already."""
    if tensor.is_shared():  # type: ignore[no-untyped-call]
        return tensor
    storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, *place)


def _reopen(file: _arrays.MappedFile) -> Rows:
    rows = Rows(file.open())
    rows._file = file
    return rows


def _paths(paths: str | Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, str):
        found = sorted(glob.glob(paths, recursive=True))  # noqa: PTH207 (absolute patterns too)
        if not found:
            msg = f"no file matches {paths!r}"
            raise ValueError(msg)
        return found
    if isinstance(paths, bytes | os.PathLike):
        msg = f"Image takes a list of paths or a pattern, found one {type(paths).__name__}"
        raise TypeError(msg)
    return [_path(place, path) for place, path in enumerate(paths)]


def _path(place: int, path: Any) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        msg = f"path {place} is a {type(path).__name__}; expected text or a path object"
        raise TypeError(msg)
    return str(text)


def _transforms(transform: Any) -> list[transforms.Transform]:
    if transform is None:
        return []
    several = list(transform) if isinstance(transform, list | tuple) else [transform]
    for each in several:
        if not isinstance(each, transforms.Transform):
            raise TypeError(_no_transform(each))
    return several


def _no_transform(found: Any) -> str:
    """Returns what to say of a transform that is none of ours."""
    kind = found if isinstance(found, type) else type(found)
    if found in transforms.KINDS:
        name = kind.__qualname__
        return f"transform takes an instance, found the class {name}; write {name}()"
    return (
        f"transform takes what fastload.transforms offers, found {kind.__module__}."
        f"{kind.__qualname__}; in torchvision's place use the transform of the same name"
    )
