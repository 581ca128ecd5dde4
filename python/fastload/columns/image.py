"""`Image`: images in files, decoded and transformed."""

import os
from collections.abc import Iterable
from typing import Any, Literal, final

from fastload import _lib, transforms
from fastload.checks import check_choice
from fastload.columns.column import Column
from fastload.columns.files import expand
from fastload.images.chain import Chain, follow


@final
class Image(Column):
    """Encoded images, one file each.

    Args:
        paths: Files, or a pattern such as `"photos/**/*.jpg"`, whose matches are sorted.
        transform: One of torchvision's transforms that run natively, or of `fastload.transforms`; or
            a sequence of either. None: uint8 `(H, W, 3)`.
        layout: Layout of a sample: `"CHW"`, `"HWC"`, or `"channels_last"` for `(C, H, W)` in torch's memory
            format of that name. None: that of the transforms' result.

    Raises:
        TypeError: Paths that are neither text nor path objects, or a transform that is Python code.
        ValueError: A pattern without matches, transforms that do not fit together, or an unknown
            layout.
    """

    _heavy = True

    def __init__(
        self,
        paths: str | Iterable[str | os.PathLike[str]],
        transform: Any = None,
        *,
        layout: Literal["CHW", "HWC", "channels_last"] | None = None,
    ) -> None:
        check_choice("layout", layout, ("CHW", "HWC", "channels_last", None))
        self._paths = expand(paths)
        self._transforms = listed(transform)
        self._arguments = (self._paths, self._transforms), {"layout": layout}
        if layout == "channels_last":
            self._form = "channels_last"
        ops, (kind, order, *table) = chain(self._transforms)
        if layout is not None:
            order = "chw" if layout == "CHW" else "hwc"
        self._native = _lib.Image(self._paths, "RGB", ops, (kind, order, *table))

    def __repr__(self) -> str:
        steps = ", ".join(map(repr, self._transforms))
        return f"Image({len(self)} files{f', [{steps}]' if steps else ''})"


def listed(transform: Any) -> list[Any]:
    """Returns None, one transform or several as a list."""
    if transform is None:
        return []
    return list(transform) if isinstance(transform, list | tuple) else [transform]


def chain(several: list[Any]) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns the operations and the output of `_lib.Image` that transforms stand for."""
    for each in several:
        if isinstance(each, type):
            msg = f"transform takes an instance, found the class {each.__qualname__}; write {each.__qualname__}()"
            raise TypeError(msg)
    if all(isinstance(each, transforms.Transform) for each in several):
        return transforms.chain(several)
    steps = Chain(3, [])
    _, stop = follow(steps, several)
    if stop is not None:
        msg = f"transform cannot be native: {stop}"
        raise TypeError(msg)
    return steps.ops, steps.output()
