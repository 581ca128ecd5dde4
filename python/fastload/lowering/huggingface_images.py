"""The feature `Image` of Hugging Face `datasets`: encoded images in Arrow's memory, or files.

Owns the way from Arrow's structs of `bytes` and `path` to native images. An image is decoded to the
feature's mode, or the file's own, and turned as its EXIF says: native code decodes those that need no
turning, Pillow the others, in the steps of `datasets`. Single images of the format torch are contiguous,
where torch's have the order of a Pillow image in memory.
"""

import re
from collections.abc import Sequence
from typing import Any

from fastload import _lib
from fastload.columns.arrow import joined
from fastload.lowering import arrow
from fastload.lowering.formats import check_files, check_images
from fastload.lowering.leaf import Leaf
from fastload.machine import pillow
from fastload.registry import NotNative

__all__ = ["images"]

_MODES = {None: "upright", "RGB": "upright RGB", "L": "upright L"}
"""The modes of `_lib.Image` by the feature's."""

_LAYOUTS = {"torch": "chw", "numpy": "array"}

_SCHEME = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:")
"""Prefixes of paths that `datasets` takes for URLs."""


def images(column: Any, feature: Any, kind: str | None) -> Leaf:
    """Returns the leaf of a column of images.

    Args:
        column: A chunked array of structs.
        feature: The feature, which decodes them.
        kind: The dataset's format.

    Raises:
        NotNative: Python makes them, and why.
    """
    if kind is None:
        msg = "the format none makes files opened by Pillow of images, with all that Pillow read in them"
        raise NotNative(msg, "use with_format('torch')")
    mode = _MODES.get(feature.mode)
    if mode is None:
        msg = f"its images are converted to Pillow's mode {feature.mode}"
        raise NotNative(msg, "use the mode RGB, L or None")
    if (name := pillow.replaced()) is not None:
        msg = f"{name} was replaced by other code"
        raise NotNative(msg, "leave it as it is")
    output = "bytes", _LAYOUTS[kind]
    sources, words = _sources(column, unchanged=feature.mode is None)
    made = [_lib.Image(source, mode, [], output) for source in sources]
    return Leaf(
        joined(made),
        f"{len(column)} {words}",
        form="tensor" if kind == "torch" else "array",
        decode=f"JPEG, PNG and WebP files to {feature.mode or 'their own mode'}, turned as EXIF says",
        exact="bit for bit what Pillow makes of them",
        heavy=True,
    )


def _sources(column: Any, *, unchanged: bool) -> tuple[Sequence[Any], str]:
    """Returns the source of native images, and its description.

    Raises:
        NotNative: Some are in memory and some in files, or what native code does not decode.
    """
    names = [field.name for field in column.type]
    fields = dict(zip(names, arrow.parts(column), strict=True))
    encoded, paths = fields["bytes"], fields["path"]
    sources: Sequence[Any]
    if not encoded.null_count:
        sources, words = arrow.binaries(encoded), "encoded images"
        foreign = check_images(_Buffers(encoded), unchanged=unchanged)
    elif encoded.null_count < len(encoded):
        msg = "some of its images are in memory, and some in files"
        raise NotNative(msg, "load all of them into memory, or none")
    else:
        sources, words = [_files(paths)], "files"
        foreign = check_files(sources[0], unchanged=unchanged)
    if foreign is not None:
        raise foreign
    return sources, words


def _files(column: Any) -> list[str]:
    """Returns paths of files.

    Raises:
        NotNative: There are none, or they are URLs.
    """
    arrow.check_nulls(column)
    paths: list[str] = column.to_pylist()
    if any(":" in path and _SCHEME.match(path) for path in paths):
        msg = "its images are at URLs"
        raise NotNative(msg, "download them")
    return paths


class _Buffers(Sequence[Any]):
    """The values of an Arrow column of bytes, without a copy."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        return self._column[place].as_buffer()
