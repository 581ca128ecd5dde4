"""The loader that is tuned, and how a user names it.

Owns the names: `module:factory`, `file.py:factory`, or a folder of images. Refuses in one line what
cannot be loaded. Every variant is the user's own loader with some arguments changed.
"""

import contextlib
import importlib
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from fastload import transforms
from fastload.bad_samples import OnError
from fastload.columns import Image
from fastload.faults import one_line
from fastload.lanes import Choice, choose
from fastload.loader import Loader
from fastload.sizes import length_of
from fastload.threads.copies import copied
from fastload.threads.watch import GlobalState

_BATCH_SIZE = 32  # samples per batch of a dataset or a folder
_BATCHES = 20  # batches of a batch sampler whose mean size is taken
_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


class TargetError(Exception):
    """The target or the step cannot be used; one line says why and what to do."""


@dataclass(frozen=True)
class Target:
    """A loader to tune."""

    name: str  # the name that the user gave
    what: str  # a description
    loader: Any  # the loader as the user would get it
    choice: Choice  # the lane that it takes

    @property
    def is_native(self) -> bool:
        """True if native threads make its batches, or would under AUTO."""
        return self.choice.lane == "native"

    @property
    def is_iterable(self) -> bool:
        """True if its dataset is iterable, so that several workers would repeat samples."""
        return isinstance(self.loader.dataset, IterableDataset)

    @cached_property
    def batch_size(self) -> int:
        """Samples per batch; of a batch sampler, the mean of its first batches."""
        loader = self.loader
        if loader.batch_size is not None:
            return int(loader.batch_size)
        if loader.batch_sampler is None:
            return 1
        with restored_generators(loader):
            first = [len(batch) for batch in itertools.islice(loader.batch_sampler, _BATCHES)]
        return max(1, round(sum(first) / max(1, len(first))))

    @property
    def samples(self) -> int | None:
        """Samples per epoch, of all ranks together; None where that is unknown."""
        sampler = self.loader.sampler
        if (shared := getattr(sampler, "total_size", None)) is not None:
            return int(shared)
        length = length_of(sampler)
        return length_of(self.loader.dataset) if length is None else length

    def variant(self, lane: str, workers: int, **changes: Any) -> Any:
        """Returns the loader with another lane, number of workers or further arguments.

        Python workers persist from epoch to epoch, so that their start does not count as loading.
        Inline loading uses copies of the dataset and `collate_fn`, as workers do. Nothing is recorded: there is no
        monitor, and no file of bad samples.
        """
        on_error = self.loader.on_error
        if isinstance(on_error, OnError):
            on_error = replace(on_error, quarantine=None)
        changes |= {"tune": False, "monitor": None, "on_error": on_error}
        changes["num_workers"] = 0 if lane == "inline" else workers
        if lane == "inline":
            changes["lane"] = "auto"
            changes.pop("prefetch_factor", None)
            parts = copied(self.loader.dataset, self.loader.collate_fn, None)
            changes = {"dataset": parts.dataset, "collate_fn": parts.collate_fn} | changes
        else:
            changes["lane"] = lane
            if lane != "native":
                changes["persistent_workers"] = True
        return Loader.from_torch(self.loader, **changes)


@contextlib.contextmanager
def restored_generators(loader: Any) -> Iterator[None]:
    """Restores the generators that a loader draws from: torch's, NumPy's, Python's and its own."""
    own = [getattr(loader, "generator", None), getattr(loader.sampler, "generator", None)]
    generators = {id(each): each for each in own if isinstance(each, torch.Generator)}
    states = [(each, each.get_state()) for each in generators.values()]
    shared = GlobalState()
    try:
        yield
    finally:
        shared.restore()
        for each, state in states:
            each.set_state(state)


def resolve(name: str, batch_size: int | None = None) -> Target:
    """Returns the target that `module:factory`, `file.py:factory` or a folder of images names.

    Raises:
        TargetError: The name is none of these, or its loader cannot be made.
    """
    folder = Path(name)
    if name and folder.is_dir():
        steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
        made: Any = Image(image_files(folder), steps)
        what = f"{len(made)} images, resized to 256, cropped to 224"
    else:
        made = named_target(name)
        what = _described(made)
    try:
        loader = loader_of(made, batch_size)
        choice = choose(loader)
    except (TypeError, ValueError) as error:
        msg = f"cannot tune {name}: {one_line(error)}"
        raise TargetError(msg) from error
    if choice.lane == "inline":  # a Loader with num_workers=0: its lane with workers
        choice = choose(Loader.from_torch(loader))
    return Target(name, what, loader, choice)


def named(name: str, what: str) -> Any:
    """Returns the attribute that `module:attribute` or `file.py:attribute` names.

    Raises:
        TargetError: There is no such module, file or attribute, or importing it failed.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        msg = f"{what} should be named as module:function or file.py:function, but got {name!r}"
        raise TargetError(msg)
    found: Any = _module(place, what)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            msg = f"{what} {name}: {place} has no {attribute!r}"
            raise TargetError(msg) from None
    return found


def _module(place: str, what: str) -> ModuleType:
    """Imports a module, or a file under its own name, under which a spawned worker process finds it, too."""
    path, is_file = Path(place), place.endswith(".py")
    if is_file and not path.is_file():
        msg = f"{what} {path}: there is no such file"
        raise TargetError(msg)
    folder = str(path.parent.resolve() if is_file else Path.cwd())
    if is_file or folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(path.stem if is_file else place)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{place}.".startswith(f"{missing}."):
            msg = (
                f"{what} {place}: there is no module {missing!r} here; name it as file.py:function"
            )
            raise TargetError(msg) from None
        msg = f"{what} {place} cannot be imported: {one_line(error)}"
        raise TargetError(msg) from error
    if is_file and Path(module.__file__ or "").resolve() != path.resolve():
        msg = f"{what} {path}: another module named {path.stem!r} is already imported; rename the file"
        raise TargetError(msg)
    return module


def named_target(name: str) -> Any:
    """Calls the factory `module:factory` or `file.py:factory`; returns a loader or a dataset that is named itself.

    Raises:
        TargetError: There is no such factory, or it failed.
    """
    if ":" not in name:
        msg = f"{name!r} is neither a folder nor module:factory nor file.py:factory"
        raise TargetError(msg)
    factory = named(name, "the target")
    if isinstance(factory, DataLoader | Dataset) or not callable(factory):
        return factory
    try:
        return factory()
    except (Exception, SystemExit) as error:
        msg = f"{name}() failed: {one_line(error)}"
        raise TargetError(msg) from error


def loader_of(made: Any, batch_size: int | None = None) -> Any:
    """Returns the loader of what a factory returned.

    Raises:
        TypeError: That is neither a loader nor a dataset.
    """
    if isinstance(made, DataLoader):
        if isinstance(made, Loader) and batch_size is None:
            return made
        return Loader.from_torch(made, **({} if batch_size is None else {"batch_size": batch_size}))
    if not isinstance(made, Dataset) and not hasattr(made, "__getitem__"):
        msg = f"a Loader, a DataLoader or a dataset is needed, found {_described(made)}"
        raise TypeError(msg)
    return Loader(made, batch_size or _BATCH_SIZE)


def image_files(folder: Path) -> list[Path]:
    """Returns the images in a folder and its subfolders, sorted.

    Raises:
        TargetError: There are none, or a folder cannot be read.
    """
    try:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _IMAGES)
    except OSError as error:
        msg = f"{folder} cannot be read: {error.strerror}: {error.filename}"
        raise TargetError(msg) from error
    if not paths:
        msg = f"{folder} has no images ({', '.join(_IMAGES)})"
        raise TargetError(msg)
    return paths


def _described(made: Any) -> str:
    kind = type(made)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    dataset: Any = made.dataset if isinstance(made, DataLoader) else made
    with contextlib.suppress(Exception):
        return f"{module}{kind.__qualname__} of {len(dataset)} samples"
    return f"{module}{kind.__qualname__}"
