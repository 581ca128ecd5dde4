"""Pictures that a method opens with Pillow, and torchvision's transforms of them.

Owns which calls make a picture: `Image.open(path).convert("RGB")`, torchvision's loader, and `Image.fromarray` of
bytes in an array. Whatever asks a picture for anything but a transform of torchvision is refused.
"""

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastload import registry
from fastload.lowering.reading.values import Each, Objects, Rows, described
from fastload.registry import name, refuse

__all__ = ["Picture", "call", "is_known", "method"]


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
    """Returns the result of Pillow or a transform of torchvision; None for other functions.

    Raises:
        NotNative: It is given what is not known, or the transform is Python code.
    """
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
    is_bytes = isinstance(value, Rows) and not value.is_torch and value.probe.dtype == np.uint8
    if not is_bytes or value.steps or value.picks is not None:
        refuse(f"a picture of {described(value)} is not known", "use an array of bytes")
    shape = value.shape
    if len(shape) != 2 and (len(shape) != 3 or shape[2] != 3):
        refuse(f"a picture of shape {shape} is not known")
    return Picture(value, "L" if len(shape) == 2 else "RGB")


def method(
    reader: Any, picture: Picture, what: str, arguments: list[Any], named: dict[str, Any]
) -> Any:
    """Returns the result of a method of a picture.

    Raises:
        NotNative: It is not `convert("RGB")`.
    """
    del reader
    is_plain = not picture.transforms and not named
    is_rgb = len(arguments) == 1 and type(arguments[0]) is str and arguments[0] == "RGB"
    if what == "convert" and is_rgb and picture.mode in (None, "RGB") and is_plain:
        return replace(picture, mode="RGB")
    return refuse(f"{what} of a picture is not known")
