"""Pictures that a method opens with Pillow, and torchvision's transforms of them.

Owns which calls make a picture: `Image.open(path).convert("RGB")`, torchvision's loader, and `Image.fromarray` of
bytes in an array. Whatever asks a picture for anything but a transform of torchvision is refused.
"""

import itertools
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

__all__ = ["Picture", "call", "check_draws", "leaf_of", "maker", "method"]


@dataclass(frozen=True, eq=False)
class Picture(Each):
    """One picture for each sample.

    Attributes:
        source: The paths of files, or arrays of bytes `(H, W)` or `(H, W, 3)`.
        mode: Pillow's; None as long as it is the file's own.
        transforms: Its transforms, in order.
        calls: An object for the call of each of them: pictures that share some are made of one picture.
    """

    source: Objects | Rows
    mode: str | None
    transforms: tuple[Any, ...] = ()
    calls: tuple[object, ...] = ()


def maker(function: Any) -> str | None:
    """Returns how a function makes pictures: by `"open"`, `"fromarray"` or a `"loader"`; None if it does not."""
    image, folder = sys.modules.get("PIL.Image"), sys.modules.get("torchvision.datasets.folder")
    if image is not None and getattr(function, "__globals__", None) is vars(image):
        found = [each for each in ("open", "fromarray") if function is vars(image).get(each)]
        return found[0] if found and function.__name__ == found[0] else None
    loaders = [getattr(folder, each, None) for each in ("pil_loader", "default_loader")]
    is_loader = any(function is each for each in loaders if each is not None)
    if not is_loader:
        return None
    registry.check_functions("torchvision", "torchvision.datasets.folder")
    return "loader" if sys.modules["torchvision"].get_image_backend() == "PIL" else None


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
        return replace(
            picture,
            transforms=(*picture.transforms, function),
            calls=(*picture.calls, object()),
        )
    made_by = maker(function)
    if made_by is None:
        return None
    if len(arguments) != 1 or named:
        refuse(f"{name(function)} with these arguments is not known")
    if made_by == "fromarray":
        return _of_array(arguments[0])
    reader.is_memory = False
    return Picture(_paths(arguments[0]), None if made_by == "open" else "RGB")


def _paths(value: Any) -> Objects:
    kinds = value.kinds if isinstance(value, Objects) else {type(value)}
    are_paths = all(kind.__module__.partition(".")[0] == "pathlib" for kind in kinds)
    if not isinstance(value, Objects) or not (kinds == {str} or are_paths):
        refuse(f"a picture at {described(value)} is not known")
    return value if kinds == {str} else Objects(list(map(str, value.values)))


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


def check_draws(picture: Picture, others: list[Picture]) -> None:
    """Refuses a picture if it and another are made of one picture that was drawn: each leaf draws for itself."""
    for other in others:
        both = zip(picture.calls, other.calls, strict=False)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], both))
        if shared and _chain_of(picture, picture.transforms[:shared])[0].random:
            refuse("one picture of random transforms is in a sample twice")


def _chain_of(picture: Picture, transforms: tuple[Any, ...]) -> tuple[Chain, int, NotNative | None]:
    """Returns the chain of transforms of a picture, and where and why it stops, if it does."""
    source, images, least = picture.source, [], (0, 0)
    if isinstance(source, Rows):
        images, least = column_of(source.view), (source.shape[0], source.shape[1])
    chain = Chain(1 if picture.mode == "L" else 3, images, least=least)
    return chain, *follow(chain, [step for each in transforms for step in flat(each)])


def leaf_of(stored: Stored, picture: Picture, *, from_zero: bool) -> Leaf:
    """Returns the leaf of pictures; `from_zero` is the leaf's."""
    source = picture.source
    chain, done, stop = _chain_of(picture, picture.transforms)
    if stop is not None:
        refuse(f"{stop.why}, at position {done} of the transforms", stop.change)
    if picture.mode is None or chain.on_pillow:
        refuse("a sample contains a Pillow image", "end with a transform that makes a tensor")
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
    if isinstance(source, Rows):
        use = "pictures", memory_of(source.view)[:-1]

        def make_of_arrays() -> Any:
            return _lib.Image(column_of(source.view), *settings)

        native = stored.memo.of_objects(use, (), make_of_arrays, settings)
        found = leaf.over(native, f"{len(native)} images in memory")
        return replace(found, heavy=len(chain.ops) > 1)
    paths = source.values

    def make() -> Any:
        foreign = check_files(paths)
        return foreign if foreign is not None else _lib.Image(paths, *settings)

    native = stored.memo.of_values(stored.place("images"), paths, make, settings)
    if isinstance(native, NotNative):
        raise native.again()
    exact = f"{leaf.exact}; not compared with the dataset, which would open files"
    found = replace(leaf, decode="JPEG, PNG and WebP files to RGB", heavy=True, exact=exact)
    return found.over(native, f"{len(paths)} files")
