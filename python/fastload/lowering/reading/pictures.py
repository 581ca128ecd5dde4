"""Pictures that a method opens with Pillow, and torchvision's transforms of them.

Owns which calls make a picture: `Image.open(path).convert("RGB")`, torchvision's loader, and `Image.fromarray` of
bytes in an array. Whatever asks a picture for anything but a transform of torchvision is refused.
"""

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastload import _lib, registry
from fastload.images.chain import Chain, follow
from fastload.lowering.formats import check_files
from fastload.lowering.leaf import Leaf
from fastload.lowering.reading.stored import Stored, column_of, memory_of
from fastload.lowering.reading.values import Each, Objects, Rows, described
from fastload.lowering.torchvision_containers import flat
from fastload.registry import NotNative, name, refuse

__all__ = ["Picture", "call", "is_known", "leaf_of", "method"]


@dataclass(frozen=True, eq=False)
class Picture(Each):
    """One picture for each sample.

    Attributes:
        source: The paths of files, or arrays of bytes `(H, W)` or `(H, W, 3)`.
        mode: Pillow's; None as long as it is the file's own.
        transforms: Its transforms, in order.
    """

    source: Objects | Rows
    mode: str | None
    transforms: tuple[Any, ...] = ()


def is_known(function: Any) -> bool:
    """Returns true if a function makes pictures."""
    return any(
        function is known for known in (_pillows("open"), _pillows("fromarray"), *_loaders())
    )


def _pillows(function: str) -> Any:
    """Returns a function of Pillow's; None where there is none, or another one in its place."""
    module = sys.modules.get("PIL.Image")
    found: Any = getattr(module, function, None)
    own = getattr(found, "__globals__", None) is getattr(module, "__dict__", ())
    return found if own and found.__name__ == function else None


def _loaders() -> list[Any]:
    module = sys.modules.get("torchvision.datasets.folder")
    found = [getattr(module, each, None) for each in ("pil_loader", "default_loader")]
    backend = getattr(sys.modules.get("torchvision"), "get_image_backend", lambda: "")()
    return [
        each
        for each in found
        if getattr(each, "__module__", "") == "torchvision.datasets.folder" and backend == "PIL"
    ]


def call(reader: Any, function: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Returns the result of Pillow or a transform of torchvision; None for other functions."""
    pictures = [each for each in arguments if isinstance(each, Picture)]
    if pictures:
        if len(arguments) != 1 or named:
            refuse(f"{name(function)} of a picture and more is not known")
        if registry.find("transform", function) is None:
            refuse(
                f"{name(function)} is Python code", "use a transform of torchvision in its place"
            )
        (picture,) = pictures
        if picture.mode is None:
            refuse("a picture has the mode of its file", 'add .convert("RGB")')
        return replace(picture, transforms=(*picture.transforms, function))
    if not is_known(function):
        return None
    if len(arguments) != 1 or named:
        refuse(f"{name(function)} with these arguments is not known")
    if function is _pillows("fromarray"):
        return _of_array(arguments[0])
    reader.is_memory = False
    mode = None if function is _pillows("open") else "RGB"
    return Picture(_paths(arguments[0]), mode)


def _paths(value: Any) -> Objects:
    if not isinstance(value, Objects):
        refuse(f"a picture at {described(value)} is not known")
    kinds = value.kinds
    if kinds == {str}:
        return value
    if not all(kind.__module__.partition(".")[0] == "pathlib" for kind in kinds):
        refuse(f"a picture at {described(value)} is not known")
    return Objects(list(map(str, value.values)))


def _of_array(value: Any) -> Picture:
    is_bytes = isinstance(value, Rows) and not value.is_torch and value.dtype == np.uint8
    if not is_bytes or value.steps or value.picks is not None:
        refuse(f"a picture of {described(value)} is not known", "use an array of bytes")
    shape = value.shape
    if len(shape) != 2 and (len(shape) != 3 or shape[2] != 3):
        refuse(f"a picture of shape {shape} is not known")
    return Picture(value, "L" if len(shape) == 2 else "RGB")


def method(picture: Picture, what: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Returns the result of a method of a picture."""
    is_plain = not picture.transforms and not named
    is_rgb = len(arguments) == 1 and type(arguments[0]) is str and arguments[0] == "RGB"
    if what == "convert" and is_rgb and picture.mode in (None, "RGB") and is_plain:
        return replace(picture, mode="RGB")
    return refuse(f"{what} of a picture is not known")


def leaf_of(stored: Stored, picture: Picture, *, from_zero: bool) -> Leaf:
    """Returns the leaf of pictures.

    Args:
        stored: Keeps the column.
        picture: The pictures, with their transforms.
        from_zero: As of the leaf.

    Raises:
        NotNative: A transform is Python, or no transform makes a tensor.
    """
    in_memory = picture.source if isinstance(picture.source, Rows) else None
    paths = [] if isinstance(picture.source, Rows) else picture.source.values
    source: Any = [] if in_memory is None else column_of(in_memory.view)
    least = (0, 0) if in_memory is None else (in_memory.shape[0], in_memory.shape[1])
    chain = Chain(1 if picture.mode == "L" else 3, source, least=least)
    several = [step for each in picture.transforms for step in flat(each)]
    done, stop = follow(chain, several)
    if stop is not None:
        refuse(f"{stop.why}, at position {done} of the transforms", stop.change)
    if picture.mode is None or chain.on_pillow:
        refuse("a sample has a picture in it", "end with a transform that makes a tensor")
    settings: Any = ("RGB", chain.ops, chain.output())
    exact = "bit for bit what Pillow and torch make of them"
    if chain.random:
        exact += ", given equal random parameters; these are drawn by Philox from the same ranges"
    leaf = Leaf(
        None,
        "",
        transforms=tuple(chain.names),
        exact=exact,
        wrap=chain.wrap,
        is_read=True,
        draws=chain.random,
        from_zero=from_zero,
    )
    if in_memory is not None:
        use = "pictures", memory_of(in_memory.view)[:-1]
        native = stored.memo.of_objects(use, (), lambda: _lib.Image(source, *settings), settings)
        found = leaf.over(native, f"{len(native)} images in memory")
        return replace(found, heavy=len(chain.ops) > 1)
    return _of_files(stored, leaf, paths, settings)


def _of_files(stored: Stored, leaf: Leaf, paths: list[str], settings: Any) -> Leaf:
    def make() -> Any:
        foreign = check_files(paths)
        return foreign if foreign is not None else _lib.Image(paths, *settings)

    native = stored.memo.of_values(stored.place("images"), paths, make, settings)
    if isinstance(native, NotNative):
        raise native.again()
    exact = f"{leaf.exact}; not compared with the dataset, which would open files"
    found = replace(leaf, decode="JPEG, PNG and WebP files to RGB", heavy=True, exact=exact)
    return found.over(native, f"{len(paths)} files")
