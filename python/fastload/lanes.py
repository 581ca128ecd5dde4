"""The lanes, and which of them a loader takes.

Owns the choice and the words that explain it; runs nothing. The choice depends on what the
loader is and where it runs, never on a timing: the same program takes the same lane each time.
"""

import multiprocessing
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch.utils.data import IterableDataset
from torch.utils.data._utils import collate

from fastload import _lib
from fastload.columns import Image, Rows
from fastload.dataset import Dataset

Lane = Literal["native", "process", "inline"]

WORKERS = ("auto", "native", "process")

_DEFAULT_COLLATE = collate.default_collate
_DEFAULT_CONVERT = collate.default_convert
_COLLATE_TENSOR = collate.collate_tensor_fn

# What decides the samples of a dataset; a subclass may add anything else.
_DECISIVE = ("__getitem__", "__getitems__", "__len__")


class Choice(NamedTuple):
    """A lane, and why.

    Attributes:
        lane: The lane taken.
        why: The reason, a clause.
        change: The one change that would make the loader native; empty where nothing would or
            where it is.
        fallback: Whether the lane stands in for worker processes that cannot be started.
    """

    lane: Lane
    why: str
    change: str = ""
    fallback: bool = False


class _Obstacle(NamedTuple):
    """What keeps a loader from being native, and what would help."""

    why: str
    change: str


def check_workers(workers: Any) -> None:
    """Refuses what `workers` cannot be.

    Raises:
        ValueError: Not the name of a lane, nor "auto".
    """
    if workers not in WORKERS:
        msg = f"workers should be one of {WORKERS}, but got {workers!r}"
        raise ValueError(msg)


def choose(loader: Any) -> Choice:
    """Returns the lane of a loader.

    Raises:
        ValueError: `loader.workers` asks for a lane that the loader cannot take.
    """
    workers = loader.workers
    check_workers(workers)
    obstacle = _obstacle(loader)
    if loader.num_workers == 0:
        if workers != "auto":
            msg = f"workers={workers!r} needs num_workers > 0, but got num_workers=0"
            raise ValueError(msg)
        further = f", and {obstacle.change}" if obstacle else ""
        return Choice("inline", "num_workers=0", f"leave num_workers at AUTO{further}")
    if obstacle is None and workers != "process":
        return Choice("native", "every leaf of the dataset is a column, with default collation")
    if obstacle is not None and workers == "native":
        msg = f"workers='native' cannot be: {obstacle.why}; to change it, {obstacle.change}"
        raise ValueError(msg)
    why, change = obstacle or _Obstacle("workers='process'", "leave workers at 'auto'")
    if (hindrance := _no_processes(loader)) is None:
        return Choice("process", why, change)
    if workers == "process":
        msg = f"workers='process' cannot be: {hindrance}"
        raise ValueError(msg)
    return Choice("inline", f"{why}, and {hindrance}", change, fallback=True)


def program(dataset: Any) -> _lib.Program | None:
    """Returns what makes a dataset's samples natively, or None if its own Python does."""
    kind = type(dataset)
    if kind in (Image, Rows) or (isinstance(dataset, Dataset) and not _overridden(kind)):
        made: _lib.Program = dataset._program
        return made
    return None


def _obstacle(loader: Any) -> _Obstacle | None:
    """Returns the first thing that keeps a loader from being native."""
    dataset = loader.dataset
    if program(dataset) is None:
        return _dataset_obstacle(dataset)
    if getattr(dataset, "__getitems__", None):
        return _Obstacle("the dataset has a __getitems__ of its own", "remove it")
    default = _DEFAULT_COLLATE if loader._auto_collation else _DEFAULT_CONVERT
    if loader.collate_fn is not default:
        return _Obstacle(
            f"collate_fn is {_name(loader.collate_fn)}, Python code",
            f"leave collate_fn out, for torch's {_name(default)}",
        )
    if loader._auto_collation and (kind := _recollated(dataset)):
        return _Obstacle(
            f"torch's default_collate_fn_map has an entry of its own for {kind}",
            "remove that entry",
        )
    return None


def _dataset_obstacle(dataset: Any) -> _Obstacle:
    kind = type(dataset)
    if isinstance(dataset, IterableDataset):
        return _Obstacle(
            f"{_name(kind)} is an iterable dataset, Python code",
            "describe its samples by columns in a fastload.Dataset",
        )
    if isinstance(dataset, Dataset):
        return _Obstacle(
            f"{_name(kind)} overrides {', '.join(_overridden(kind))} of fastload.Dataset",
            "leave those methods as they are",
        )
    return _Obstacle(
        f"{_name(kind)} makes its samples in Python",
        "describe them by fastload.columns in a fastload.Dataset",
    )


def _overridden(kind: type) -> list[str]:
    """Returns which decisive methods a subclass of `Dataset` has of its own."""
    own = kind.__mro__[: kind.__mro__.index(Dataset)]
    return [name for name in _DECISIVE if any(name in vars(each) for each in own)]


def _recollated(dataset: Any) -> str | None:
    """Returns which of a dataset's types somebody taught torch to collate otherwise."""
    fns = collate.default_collate_fn_map
    kinds = (torch.Tensor, *getattr(dataset, "_containers", ()))
    for registered, fn in fns.items():
        if registered is torch.Tensor and fn is _COLLATE_TENSOR:
            continue
        for kind in kinds:
            if issubclass(kind, registered):
                return _name(kind)
    return None if fns.get(torch.Tensor) is _COLLATE_TENSOR else "torch.Tensor"


def _no_processes(loader: Any) -> str | None:
    """Returns why worker processes cannot be started here, or None if they can."""
    if multiprocessing.current_process().daemon:
        return "this process is daemonic and may not have children"
    context = loader.multiprocessing_context or multiprocessing
    method = context.get_start_method(allow_none=True)
    if (method or multiprocessing.get_all_start_methods()[0]) == "fork":
        return None
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or (file and Path(file).exists()):
        return None
    if file:
        return f"a new process imports the main module, and {file} is no file"
    return _not_importable(loader)


def _not_importable(loader: Any) -> str | None:
    """Returns what of a loader is defined in an interactive session, or None."""
    for part in (loader.dataset, loader.collate_fn, loader.worker_init_fn):
        for each in (part, *getattr(part, "__dict__", {}).values()):
            if getattr(each, "__module__", None) == "__main__":
                return (
                    f"{_name(each if isinstance(each, type) else type(each))} is defined in an "
                    "interactive session, which a new process cannot import"
                )
    return None


def _name(thing: Any) -> str:
    """Returns what a function or a type is called, or else the type of a thing."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"
