"""`Image`: images in files, decoded and transformed."""

import os
from collections.abc import Iterable
from typing import Any, Literal, final

from fastload import _lib
from fastload.columns.chain import chain, listed
from fastload.columns.column import Column, Form
from fastload.columns.paths import expand

__all__ = ["Image"]


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
        self._paths = expand(paths)
        self._transforms = listed(transform)
        self._layout = layout
        ops, (kind, order, *table) = chain(self._transforms)
        if layout is not None:
            order = "chw" if layout == "CHW" else "hwc"
        self._native = _lib.Image(self._paths, "RGB", ops, (kind, order, *table))

    @property
    def _form(self) -> Form:
        return "channels_last" if self._layout == "channels_last" else "tensor"

    @property
    def _heavy(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths, the transforms and the layout."""
        return _image, (self._paths, self._transforms, self._layout)

    def __repr__(self) -> str:
        steps = ", ".join(map(repr, self._transforms))
        return f"Image({len(self)} files{f', [{steps}]' if steps else ''})"


def _image(paths: list[str], several: list[Any], layout: Any) -> Image:
    return Image(paths, several, layout=layout)
