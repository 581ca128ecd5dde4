"""Datasets of torchvision: folders of image files, and images in memory.

What they are made of are plain attributes, read anew at each `iter()`.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from fastload import _lib, registry
from fastload.columns.arrow import rows
from fastload.images.chain import Chain, unknown
from fastload.images.operations import Op, Output
from fastload.lowering.formats import check_decoded, check_files
from fastload.lowering.leaf import Leaf
from fastload.lowering.memo import Memo
from fastload.lowering.torch_datasets import numbers
from fastload.lowering.torchvision_containers import flat
from fastload.lowering.torchvision_io import Decoding, Followed, decoding, follow_decoded, followed
from fastload.memory import layout
from fastload.registry import NotNative

__all__: list[str] = []

_FOLDER = "torchvision.datasets.folder"


@registry.dataset(
    f"{_FOLDER}.ImageFolder",
    f"{_FOLDER}.DatasetFolder",
    notes="with torchvision's own loaders `default_loader` and `pil_loader`, or `torchvision.io`'s "
    "`decode_image` and `read_image`, also in a `functools.partial` with a mode of RGB, GRAY or UNCHANGED",
)
def _folder(dataset: Any, memo: Memo) -> Any:
    samples = dataset.samples
    if type(samples) is not list:
        msg = f"its samples are a {registry.name(type(samples))}"
        raise NotNative(msg, "make them a list")
    how = decoding(dataset.loader)
    if how is None:
        _check_loader(dataset.loader)
    files = memo.of_list("files", samples, lambda: _files(samples, how), how)
    if files is None:
        msg = "its samples are not all tuples of a path and an int"
        raise NotNative(msg, "make them so")
    if files.foreign is not None:
        raise files.foreign.again()

    def native(mode: str, *settings: Any) -> Any:
        return memo.of_list(
            "images", samples, lambda: _lib.Image(files.paths, mode, *settings), (mode, *settings)
        )

    several = _flat(dataset)
    if how is None:
        done, decode = followed(Chain(3, []), several, "RGB"), "RGB"
    else:
        done = follow_decoded(how, several)
        decode = f"what decode_image makes in the mode {how.mode}"
    words = f"{len(files.paths)} files"
    image = _image(several, done, native, words, f"JPEG, PNG and WebP files to {decode}")
    sample = _sample(dataset, image, files.classes, memo)
    if image.form == "pillow":
        msg = "its samples are Pillow images, not tensors"
        raise image.stop or NotNative(msg, "add ToTensor() to its transform")
    return sample


@registry.dataset(
    "torchvision.datasets.cifar.CIFAR10", "torchvision.datasets.cifar.CIFAR100", notes=""
)
def _cifar(dataset: Any, memo: Memo) -> Any:
    targets = dataset.targets
    if type(targets) is not list:
        msg = f"its targets are a {registry.name(type(targets))}"
        raise NotNative(msg, "make them a list, as targets.tolist() does")
    return _in_memory(dataset, dataset.data, targets, memo)


@registry.dataset(
    *(
        f"torchvision.datasets.mnist.{name}"
        for name in ("MNIST", "FashionMNIST", "KMNIST", "EMNIST")
    ),
    notes="",
)
def _mnist(dataset: Any, memo: Memo) -> Any:
    return _in_memory(dataset, dataset.data, _integers(dataset.targets, memo), memo)


@registry.dataset("torchvision.datasets.mnist.QMNIST", notes="with `compat=True`")
def _qmnist(dataset: Any, memo: Memo) -> Any:
    if not dataset.compat:
        msg = "its targets are whole rows of QMNIST's table"
        raise NotNative(msg, "give it compat=True")
    return _in_memory(dataset, dataset.data, dataset.targets[:, 0], memo)


@registry.dataset(
    "torchvision.datasets.svhn.SVHN",
    "torchvision.datasets.stl10.STL10",
    notes="STL10 with labels",
)
def _channels_first(dataset: Any, memo: Memo) -> Any:
    if dataset.labels is None:
        msg = "its samples have no labels, but None, which torch refuses to collate"
        raise NotNative(msg, 'use the split "train" or "test"')
    data = dataset.data.transpose(0, 2, 3, 1)
    return _in_memory(dataset, data, _integers(dataset.labels, memo), memo)


class _Files(NamedTuple):
    """The files of a folder, their classes, and why Python suits the files better, if it does."""

    paths: list[str]
    classes: list[int]
    foreign: NotNative | None


def _files(samples: list[Any], how: Decoding | None) -> _Files | None:
    """Returns the files of a folder; None of samples that are not all tuples of a path and a class."""
    if set(map(type, samples)) != {tuple} or set(map(len, samples)) != {2}:
        return None
    paths = [path for path, _ in samples]
    if set(map(type, paths)) != {str}:
        return None
    foreign = check_files(paths) if how is None else check_decoded(paths, how.mode)
    return _Files(paths, [label for _, label in samples], foreign)


def _check_loader(loader: Any) -> None:
    """Refuses what opens files in another way than Pillow does for torchvision."""
    module = sys.modules[_FOLDER]
    torchvision = sys.modules["torchvision"]
    registry.check_functions("torchvision", _FOLDER)
    if loader not in (module.default_loader, module.pil_loader):
        msg = f"its loader is {registry.name(loader)}, Python code"
        raise NotNative(msg, "leave loader out, for torchvision's default_loader")
    if loader is module.default_loader and torchvision.get_image_backend() != "PIL":
        msg = f"torchvision's image backend is {torchvision.get_image_backend()}"
        raise NotNative(msg, 'call torchvision.set_image_backend("PIL")')


def _flat(dataset: Any) -> list[Any]:
    """Returns the transforms of a dataset's images."""
    return [] if dataset.transform is None else flat(dataset.transform)


def _in_memory(dataset: Any, data: Any, targets: Any, memo: Memo) -> Any:
    """Returns the structure of samples whose images are in memory.

    Args:
        dataset: The dataset.
        data: `(N, H, W, 3)` or `(N, H, W)`, a tensor or an array of bytes.
        targets: A list of ints, or integers of which torchvision makes ints.
        memo: The memo.
    """
    is_tensor = isinstance(data, torch.Tensor)
    channels = 3 if data.ndim == 4 and data.shape[3] == 3 else 1
    if data.dtype not in (torch.uint8, np.uint8) or data.ndim != (4 if channels == 3 else 3):
        msg = f"its data is {data.dtype} of shape {tuple(data.shape)}"
        raise NotNative(msg, "make it bytes, (N, H, W, 3) or (N, H, W)")
    try:
        memory = layout.of_tensor(data) if is_tensor else layout.of_array(data)
    except (TypeError, ValueError) as error:
        raise NotNative(str(error), "make it bytes in main memory") from error
    source = _lib.Rows(*memory)
    chain = Chain(channels, source, least=(data.shape[1], data.shape[2]))

    def native(mode: str, ops: list[Op], output: Output) -> Any:
        return _lib.Image(source, mode, ops, output)

    several = _flat(dataset)
    done = followed(chain, several, "RGB")
    image = _image(several, done, native, f"{len(data)} images in memory", "")
    return _sample(dataset, image, targets, memo)


def _image(
    flat: list[Any],
    followed: Followed,
    native: Callable[[str, list[Op], Output], Any],
    words: str,
    decode: str,
) -> Leaf:
    """Returns the leaf of images, with the transforms that are Python left to be called."""
    chain, stop = followed.chain, followed.stop
    if stop is not None:
        why = f"{stop.why}, at position {followed.done} of transform"
        if also := unknown(flat[followed.done + 1 :]):
            why += f"; Python code behind it: {', '.join(also)}"
        stop = NotNative(why, stop.change)
    try:
        column = native(followed.mode, chain.ops, followed.output)
    except (OverflowError, TypeError, ValueError) as error:
        msg = f"native code does not take its images: {error}"
        raise NotNative(msg, "make them images of bytes, or files named in text") from error
    library = "torchvision" if followed.mode.startswith("torchvision") else "Pillow"
    exact = f"bit for bit what {library} and torch make of them"
    if chain.random:
        exact += ", given equal random parameters; these are drawn by Philox from the same ranges"
    return Leaf(
        column,
        words,
        form="pillow" if chain.on_pillow else "tensor",
        decode=decode,
        transforms=tuple(chain.names),
        exact=exact,
        wrap=chain.wrap,
        tail=tuple(flat[followed.done :]),
        stop=stop,
        heavy=bool(decode) or len(chain.ops) > 1,
    )


def _sample(dataset: Any, image: Leaf, classes: Any, memo: Memo) -> tuple[Leaf, Leaf]:
    """Returns the structure of a sample: an image, and its target."""
    try:
        return image, _labels(classes, dataset.target_transform, memo)
    except NotNative as reason:
        if image.stop is None:
            raise
        raise NotNative.joined([image.stop, reason]) from reason


def _integers(targets: Any, memo: Memo) -> Any:
    """Returns targets of which torchvision makes ints; those of a list as an array, which tells if it has others."""
    if type(targets) is not list:
        return targets
    return memo.of_list("array of targets", targets, lambda: np.asarray(targets))


def _labels(classes: Any, target_transform: Any, memo: Memo) -> Leaf:
    """Returns the leaf of the targets, which are Python ints in single samples.

    Args:
        classes: A list of ints, or integers of which torchvision makes ints.
        target_transform: None, or the look-up of a dict or a list.
        memo: The memo.
    """
    if type(classes) is not list:
        array = np.asarray(classes)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            msg = f"its targets are {array.dtype} of shape {array.shape}"
            raise NotNative(msg, "make them integers")
        if target_transform is None:
            column = rows(array.astype(np.int64, copy=False))
            return Leaf(column, f"{len(array)} numbers", form="number")
        classes = array.tolist()
    if target_transform is None:
        return numbers("targets", classes, memo)
    table = _table(target_transform, memo.of_list("classes", classes, lambda: set(classes)))
    mapped = memo.of_list(
        "mapped classes", classes, lambda: [table[each] for each in classes], repr(table)
    )
    return numbers("targets", mapped, memo)


def _table(target_transform: Any, classes: set[Any]) -> dict[Any, Any]:
    """Returns the result of a look-up for each class."""
    table = getattr(target_transform, "__self__", None)
    look_up = getattr(target_transform, "__name__", None)
    if type(table) not in (dict, list) or look_up not in ("__getitem__", "get"):
        msg = f"target_transform is {registry.name(target_transform)}, Python code"
        raise NotNative(msg, "use the look-up of a table, as {0: 1, 1: 0}.__getitem__")
    try:
        return {each: target_transform(each) for each in classes}
    except (LookupError, TypeError) as error:
        msg = f"target_transform raises {type(error).__name__}: {error}"
        raise NotNative(msg, "give every target a place in its table") from error
