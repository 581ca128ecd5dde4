"""What is tuned: a loader, however it is named.

Owns the names: `module:factory`, `file.py:factory`, or a folder of images. Refuses, in one line, what
cannot be loaded. Invariant: a variant of a target is the user's own loader with some arguments changed.
"""

import contextlib
import importlib
import importlib.util
import itertools
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader, Dataset, IterableDataset

from fastload import transforms
from fastload.columns import Image
from fastload.lanes import Choice, choose
from fastload.loader import Loader
from fastload.threads.copies import copied
from fastload.tune.undisturbed import undisturbed

__all__ = ["BATCH_SIZE", "Target", "TargetError", "named", "resolve"]

BATCH_SIZE = 32
"""Samples of a batch where the target does not say."""

_LOOKED_AT = 20

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


class TargetError(Exception):
    """What was named cannot be tuned; one line says why and what to do."""


@dataclass(frozen=True)
class Target:
    """A loader to tune.

    Attributes:
        name: As it was named.
        what: What it is, in words.
        loader: What the user would get.
        choice: Its lane.
    """

    name: str
    what: str
    loader: Any
    choice: Choice

    @property
    def is_native(self) -> bool:
        """Whether native threads make its batches, or could under AUTO."""
        return self.choice.lane == "native"

    @property
    def is_iterable(self) -> bool:
        """Whether its dataset is iterated, so that workers would repeat each other's samples."""
        return isinstance(self.loader.dataset, IterableDataset)

    @cached_property
    def batch_size(self) -> int:
        """Samples of a batch; of batches that a sampler makes, the mean of the first ones."""
        loader = self.loader
        if loader.batch_size is not None:
            return int(loader.batch_size)
        if loader.batch_sampler is None:
            return 1
        with undisturbed(loader):
            first = [len(batch) for batch in itertools.islice(loader.batch_sampler, _LOOKED_AT)]
        return max(1, round(sum(first) / max(1, len(first))))

    @property
    def samples(self) -> int | None:
        """Samples of an epoch, of all ranks that share it; None where that is unknown."""
        sampler = self.loader.sampler
        if (shared := getattr(sampler, "total_size", None)) is not None:
            return int(shared)
        for sized in (sampler, self.loader.dataset):
            with contextlib.suppress(TypeError, NotImplementedError):
                return len(sized)
        return None

    def variant(self, lane: str, workers: int, **changes: Any) -> Any:
        """Returns the loader with another lane, number of workers or further arguments.

        Python workers are kept from epoch to epoch, so that their start is not counted as loading;
        inline loading has a copy of the dataset, as workers have.
        """
        changes |= {"tune": False, "num_workers": 0 if lane == "inline" else workers}
        if lane == "inline":
            changes["workers"] = "auto"
            changes.pop("prefetch_factor", None)
            changes = self._copy() | changes
        else:
            changes["workers"] = lane
            if lane != "native":
                changes["persistent_workers"] = True
        return Loader.from_torch(self.loader, **changes)

    def _copy(self) -> dict[str, Any]:
        """Returns what Python runs in the thread that asks, as a worker's own."""
        loader = self.loader
        parts = copied(loader.dataset, loader.collate_fn, None)
        return {"dataset": parts.dataset, "collate_fn": parts.collate_fn}


def resolve(name: str, batch_size: int | None = None) -> Target:
    """Returns what a name stands for.

    Args:
        name: `module:factory`, `file.py:factory` or a folder of images.
        batch_size: Samples of a batch; None for the loader's own.

    Raises:
        TargetError: It is none of these, or cannot be made.
    """
    folder = Path(name)
    if folder.is_dir():
        made: Any = _images(folder)
        what = f"{len(made)} images, resized to 256, cropped to 224"
    else:
        made = _made(name)
        what = _described(made)
    try:
        loader = _loader(made, batch_size)
        choice = choose(loader)
    except (TypeError, ValueError) as error:
        msg = f"cannot tune {name}: {_line(error)}"
        raise TargetError(msg) from error
    if choice.lane == "inline":  # a Loader with num_workers=0: what it would be with workers
        choice = choose(Loader.from_torch(loader))
    return Target(name, what, loader, choice)


def named(name: str, what: str) -> Any:
    """Returns the attribute that `module:attribute` or `file.py:attribute` names.

    Args:
        name: The name.
        what: What it is called in an error.

    Raises:
        TargetError: There is no such module, file or attribute, or importing it failed.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        msg = f"{what} is named as module:function or file.py:function, not {name!r}"
        raise TargetError(msg)
    module = _module(place, what)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            msg = f"{what} {name}: {place} has no {attribute!r}"
            raise TargetError(msg) from None
    return found


def _module(place: str, what: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _file(Path(place), what)
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except TargetError:
        raise
    except ModuleNotFoundError as error:
        if error.name and place.split(".")[: error.name.count(".") + 1] == error.name.split("."):
            msg = f"{what} {place}: there is no module {error.name!r} here; name it as file.py:function"
            raise TargetError(msg) from None
        msg = f"{what} {place} cannot be imported: {_line(error)}"
        raise TargetError(msg) from error
    except (Exception, SystemExit) as error:
        msg = f"{what} {place} cannot be imported: {_line(error)}"
        raise TargetError(msg) from error


def _file(path: Path, what: str) -> ModuleType:
    """Imports a file under its own name, so that a worker process that is spawned finds it, too."""
    if not path.is_file():
        msg = f"{what} {path}: there is no such file"
        raise TargetError(msg)
    known = sys.modules.get(path.stem)
    if known is not None:
        if Path(getattr(known, "__file__", None) or "").resolve() == path.resolve():
            return known
        msg = f"{what} {path}: a module {path.stem!r} is loaded already; rename the file"
        raise TargetError(msg)
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _made(name: str) -> Any:
    """Calls a factory, or takes the thing itself where the name is that of one."""
    if ":" not in name:
        msg = f"{name!r} is neither a folder nor module:factory nor file.py:factory"
        raise TargetError(msg)
    factory = named(name, "the target")
    if isinstance(factory, DataLoader | Dataset) or not callable(factory):
        return factory
    try:
        return factory()
    except (Exception, SystemExit) as error:
        msg = f"{name}() failed: {_line(error)}"
        raise TargetError(msg) from error


def _loader(made: Any, batch_size: int | None) -> Any:
    """Returns the loader of what a factory returned.

    Raises:
        TypeError: It cannot be loaded.
    """
    if isinstance(made, DataLoader):
        changes = {} if batch_size is None else {"batch_size": batch_size}
        if isinstance(made, Loader) and not changes:
            return made
        return Loader.from_torch(made, **changes)
    if not isinstance(made, Dataset) and not hasattr(made, "__getitem__"):
        msg = f"a Loader, a DataLoader or a dataset is needed, found {_described(made)}"
        raise TypeError(msg)
    return Loader(made, batch_size or BATCH_SIZE)


def _images(folder: Path) -> Image:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _IMAGES)
    if not paths:
        msg = f"{folder} has no images ({', '.join(_IMAGES)})"
        raise TargetError(msg)
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    return Image(paths, steps)


def _described(made: Any) -> str:
    kind = type(made)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    dataset: Any = made.dataset if isinstance(made, DataLoader) else made
    with contextlib.suppress(Exception):
        return f"{name} of {len(dataset)} samples"
    return name


def _line(error: BaseException) -> str:
    """Returns an error as one line."""
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
