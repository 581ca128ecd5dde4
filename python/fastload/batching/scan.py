"""Shapes of samples that storage does not give: makes each sample once."""

import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fastload import _lib
from fastload.batching.lengths import ABSENT, Field, Misfit, Shape, part_of, shape_of, words
from fastload.columns.files import progress
from fastload.images import foreign
from fastload.lowering import Leaf
from fastload.machine import pillow
from fastload.machine.auto import AUTO, resolve

__all__ = ["Workers", "scan", "scan_leaf"]

_CHUNK = 256
"""Samples per task."""

_HELD = 32
"""Samples requested at a time from a dataset with `__getitems__`."""

Found = Shape | Misfit | None
"""The shape of a sample's field; None if it has no such field."""


class Workers(NamedTuple):
    """The workers that make the samples.

    Attributes:
        load: Makes the loader: `Loader`, which is passed in because it imports this package.
        processes: Number of worker processes, or of threads for native samples; 0 for this thread alone.
        context: Start method of processes, as torch's `multiprocessing_context`.
        init: Called in each process with its number, as torch's `worker_init_fn`.
    """

    load: Callable[..., Any]
    processes: int = AUTO
    context: Any = None
    init: Callable[[int], None] | None = None


def scan(dataset: Any, field: Field, workers: Workers) -> npt.NDArray[np.int64]:
    """Returns the shape of a field of each sample, `(samples, dimensions)`.

    The samples are made by a `Loader`; the caller's generators of torch stay as they are.

    Args:
        dataset: A map-style dataset.
        field: The field.
        workers: The workers that make them.

    Raises:
        KeyError: A sample has no such field.
        TypeError: The field is not an array, or the dataset has no length.
        Exception: What the dataset raises, with a note that says where.
    """
    if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__len__"):
        msg = (
            f"the lengths of {type(dataset).__name__} cannot be looked up: its samples have no indices; "
            "use a map-style dataset"
        )
        raise TypeError(msg)
    shapes = _Shapes(dataset, field)
    if type(dataset) in (list, tuple):  # nothing to make
        chunks: Iterator[list[Found]] = ([shapes.of(sample)] for sample in dataset)
    else:
        chunks = _by_loader(shapes, workers)
    return _table(chunks, len(dataset), field)


def scan_leaf(leaf: Leaf, field: Field, workers: Workers) -> npt.NDArray[np.int64]:
    """Returns the shape of each sample of one native column, made by threads."""
    program = _lib.Program([leaf.native], _lib.Leaf(0, leaf.form))
    options: dict[str, Any] = {"foreign": foreign.decoder(), **pillow.switches()}

    def shapes_of(chunk: range) -> list[Found]:
        return [shape_of(program.sample(index, **options)) for index in chunk]

    total = len(program)
    chunks = [range(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK)]
    pool = ThreadPoolExecutor(max(1, resolve(workers.processes, None)), "fastload-lengths")
    try:
        return _table(pool.map(shapes_of, chunks), total, field)
    finally:
        pool.shutdown(cancel_futures=True)


class _Shapes(torch.utils.data.Dataset[Found]):
    """The shapes of a dataset's samples, made one after the other.

    Args:
        dataset: The dataset.
        field: The field of a sample.
    """

    def __init__(self, dataset: Any, field: Field) -> None:
        self.dataset = dataset
        self._field = field

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Found:
        return self.of(self.dataset[index])

    def __getitems__(self, indices: list[int]) -> list[Found]:
        if not callable(getattr(self.dataset, "__getitems__", None)):
            return [self[index] for index in indices]
        parts = (indices[start : start + _HELD] for start in range(0, len(indices), _HELD))
        return [self.of(sample) for part in parts for sample in self.dataset.__getitems__(part)]

    def of(self, sample: Any) -> Found:
        """Returns the shape of a sample's field; None if it has no such field."""
        if callable(self._field):
            return shape_of(self._field(sample))
        try:
            return shape_of(part_of(sample, self._field))
        except KeyError:
            return None


def _init(init: Callable[[int], None] | None, number: int) -> None:
    """Runs the user's `worker_init_fn` with the user's own dataset in `get_worker_info()`."""
    info: Any = torch.utils.data.get_worker_info()
    object.__setattr__(info, "dataset", info.dataset.dataset)  # it is read-only
    if init is not None:
        init(number)


def _by_loader(shapes: _Shapes, workers: Workers) -> Iterator[list[Found]]:
    """Yields the shapes of a dataset's samples in chunks, in order."""
    count = min(resolve(workers.processes, shapes.dataset), -(-len(shapes) // _CHUNK))
    loader = workers.load(
        shapes,
        _CHUNK,
        num_workers=count,
        collate_fn=list,
        worker_init_fn=functools.partial(_init, workers.init),
        multiprocessing_context=workers.context if count else None,
        generator=torch.Generator(),
    )
    with torch.random.fork_rng(devices=()):
        yield from loader


def _table(chunks: Iterable[list[Found]], total: int, field: Field) -> npt.NDArray[np.int64]:
    """Returns shapes as a table, filled up with `ABSENT`.

    Raises:
        KeyError: A sample has no such field.
        TypeError: A field has no shape.
    """
    table = np.full((total, 1), ABSENT, np.int64)
    done = 0
    with progress("lengths", " samples") as tell:
        for chunk in _noted(chunks):
            for shape in chunk:
                if shape is None:
                    msg = f"samples have no {words(field)}: sample {done} does not"
                    raise KeyError(msg)
                if isinstance(shape, Misfit):
                    msg = f"lengths cannot be looked up: {words(field)} of sample {done} {shape}"
                    raise TypeError(msg)
                if (missing := len(shape) - table.shape[1]) > 0:
                    table = np.pad(table, ((0, 0), (0, missing)), constant_values=ABSENT)
                table[done, : len(shape)] = shape
                done += 1
            if tell is not None:
                tell(done, total)
    return table


def _noted(chunks: Iterable[list[Found]]) -> Iterator[list[Found]]:
    """Yields from `chunks`; adds a note to errors that names the samples."""
    iterator, done = iter(chunks), 0
    while True:
        try:
            chunk = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            error.add_note(f"while looking up lengths, at sample {done} or soon after")
            raise
        done += len(chunk)
        yield chunk
