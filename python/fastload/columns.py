"""Columns: the leaves of a native dataset.

A column is a map-style dataset of its own: `column[i]` is one sample, made by the same native
code that makes batches. Columns hold no samples; they say where samples are and how each is
made. They never change once made, and pickle as what they were made from.
"""

import glob
import operator
import os
from collections.abc import Iterable
from typing import Any, Literal, final

import numpy as np
import torch
from torch.utils.data import Dataset

from fastload import _arrays, _lib, pillow, transforms

__all__ = ["Column", "Image", "Ragged", "Rows"]


Form = Literal["tensor", "channels_last"]


class Column(Dataset[torch.Tensor]):
    """One leaf of a dataset: samples of one kind, made natively."""

    _native: _lib.Column
    _made: _lib.Program | None = None

    @property
    def _form(self) -> Form:
        """What `_lib.Leaf` calls the values."""
        return "tensor"

    @property
    def _core(self) -> _lib.Column:
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
            self._made = _lib.Program([self._core], _lib.Leaf(0, self._form))
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
class Ragged(Column):
    """Samples of different lengths, one after the other in one array, shared without a copy.

    Sample i is `values[offsets[i] : offsets[i + 1]]`. A batch of samples of one length is stacked, as
    torch's `default_collate` stacks them; samples of different lengths are the error that it raises.

    Args:
        values: All samples; a `Rows`, or what `Rows` takes.
        offsets: One whole number more than there are samples; a `Rows`, or what `Rows` takes.

    Raises:
        TypeError: Not dense numbers or booleans in main memory.
        ValueError: A sample does not lie within `values`, or offsets of a type other than int32 and
            int64.

    Examples:
        >>> tokens = Ragged(torch.arange(10), [0, 3, 7, 10])
        >>> tokens[1]
        tensor([3, 4, 5, 6])
    """

    def __init__(self, values: Any, offsets: Any) -> None:
        self._values = values if isinstance(values, Rows) else Rows(values)
        self._offsets = offsets if isinstance(offsets, Rows) else Rows(offsets)
        self._sources = self._values._core, self._offsets._core
        self._native = _lib.Ragged(*self._sources)

    @property
    def _core(self) -> _lib.Column:
        sources = self._values._core, self._offsets._core
        if sources != self._sources:  # a tensor was moved
            self._sources = sources
            self._native = _lib.Ragged(*sources)
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the values and the offsets, each as `Rows` do."""
        return Ragged, (self._values, self._offsets)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} of {self._describe()})"


@final
class Image(Column):
    """Encoded images, one file each.

    Args:
        paths: Files, or a pattern such as `"photos/**/*.jpg"`, whose matches are sorted.
        transform: One of torchvision's transforms that run natively, or of `fastload.transforms`; or
            a sequence of either. None leaves `(height, width, 3)` bytes.
        layout: How a sample is written: `(C, H, W)`, `(H, W, C)`, or `(C, H, W)` in torch's memory
            format `channels_last`. None: as the transforms have it.

    Raises:
        TypeError: Paths that are neither text nor path objects, or a transform that is Python code.
        ValueError: A pattern without matches, transforms that do not fit together, or an unknown
            layout.
    """

    def __init__(
        self,
        paths: str | Iterable[str | os.PathLike[str]],
        transform: Any = None,
        *,
        layout: Literal["CHW", "HWC", "channels_last"] | None = None,
    ) -> None:
        if layout not in (None, "CHW", "HWC", "channels_last"):
            msg = f'layout is "CHW", "HWC", "channels_last" or None, not {layout!r}'
            raise ValueError(msg)
        self._paths = _paths(paths)
        self._transforms = _transforms(transform)
        self._layout = layout
        ops, (kind, order, *table) = _chain(self._transforms)
        if layout is not None:
            order = "chw" if layout == "CHW" else "hwc"
        self._native = _lib.Image(self._paths, "RGB", ops, (kind, order, *table))

    @property
    def _form(self) -> Form:
        return "channels_last" if self._layout == "channels_last" else "tensor"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths, the transforms and the layout."""
        return _image, (self._paths, self._transforms, self._layout)

    def __repr__(self) -> str:
        steps = ", ".join(map(repr, self._transforms))
        return f"Image({len(self)} files{f', [{steps}]' if steps else ''})"


def draw_sample(program: _lib.Program, index: int) -> Any:
    """Returns one sample; random operations take one draw of torch's global generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_().item()) if program.is_random() else 0
    return program.sample(index, seed=seed, foreign=pillow.decoder(), **pillow.switches())


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the same view of a copy of a tensor's memory, unless that is shared already."""
    if tensor.is_shared():  # type: ignore[no-untyped-call]
        return tensor
    storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, *place)


def _image(paths: list[str], several: list[Any], layout: Any) -> Image:
    return Image(paths, several, layout=layout)


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


def _transforms(transform: Any) -> list[Any]:
    if transform is None:
        return []
    return list(transform) if isinstance(transform, list | tuple) else [transform]


def _chain(several: list[Any]) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns the operations and the output of `_lib.Image` that transforms stand for."""
    for each in several:
        if isinstance(each, type):
            msg = f"transform takes an instance, found the class {each.__qualname__}; write {each.__qualname__}()"
            raise TypeError(msg)
    if all(isinstance(each, transforms.Transform) for each in several):
        return transforms.chain(several)
    from fastload.lowering.chain import Chain, follow  # lowering follows columns, too

    chain = Chain(3, [])
    _, stop = follow(chain, several)
    if stop is not None:
        msg = f"transform cannot be native: {stop}"
        raise TypeError(msg)
    return chain.ops, chain.output()
