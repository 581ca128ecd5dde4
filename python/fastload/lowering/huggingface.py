"""Hugging Face `datasets`: Arrow tables behind a format and an indices mapping.

Each format converts each type as `datasets` does for a list of indices, which is how torch's DataLoader reads
it: integers become int64; floats become float32 in the formats torch and numpy, Python floats without a format.

The feature `Image` is encoded images in Arrow's memory, or files. An image is decoded to the feature's mode, or the
file's own, and turned as its EXIF says: native code decodes those that need no turning, Pillow the others, in the
steps of `datasets`. Single images of the format torch are contiguous, where torch's have the order of a Pillow
image in memory.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from fastload import _lib, registry
from fastload.columns.arrow import joined
from fastload.columns.structure import fill, leaves
from fastload.images.chain import check_pillow
from fastload.lowering import arrow
from fastload.lowering.formats import check_files, check_images
from fastload.lowering.leaf import Form, Leaf, select
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

_FLOATS = {None: "float64", "torch": "float32", "numpy": "float32"}

_PLAIN = ("Value", "ClassLabel", "Translation", "Array2D", "Array3D", "Array4D", "Array5D")
"""Features whose values are what Arrow holds."""

_MODES = {None: "upright", "RGB": "upright RGB", "L": "upright L"}
"""The modes of `_lib.Image` by the feature's."""

_LAYOUTS = {"torch": "chw", "numpy": "array"}

_SCHEME = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:")
"""Prefixes of paths that `datasets` takes for URLs."""


@registry.dataset(
    "datasets.arrow_dataset.Dataset",
    methods=("__getitem__", "__getitems__", "__len__", "_getitem"),
    notes=(
        "formats None, torch and numpy, with columns chosen, selected, shuffled or sharded; ints, floats, "
        "bools, text, bytes, lists of them of any lengths and depth, arrays, structs; no nulls; images in the "
        "formats torch and numpy; the format numpy without bytes and lists of text, and without lists in lists "
        "whose lengths differ within a sample"
    ),
)
def _dataset(dataset: Any, memo: Memo) -> Any:
    kind = dataset._format_type
    if kind not in _FLOATS:
        msg = (
            "the dataset has a transform in Python" if kind == "custom" else f"its format is {kind}"
        )
        raise NotNative(msg, "use with_format('torch')")
    if dataset._format_kwargs:
        msg = f"its format has arguments: {', '.join(dataset._format_kwargs)}"
        raise NotNative(msg, "leave them out")
    table = dataset._data.table
    chosen = dataset._format_columns
    if (
        chosen is not None
        and dataset._output_all_columns
        and set(chosen) != set(table.column_names)
    ):
        msg = "output_all_columns=True adds columns that are not formatted"
        raise NotNative(msg, "leave output_all_columns out")
    names = [name for name in table.column_names if chosen is None or name in chosen]
    if not names:
        msg = "no column is chosen"
        raise NotNative(msg, "choose one in set_format")
    sample = {name: _column(dataset, table, name, kind, memo) for name in names}
    if dataset._indices is None:
        return sample
    mapping = dataset._indices
    picked = memo.of_objects("indices", (mapping,), lambda: arrow.indices(mapping.column(0)))
    count = f"{len(picked)} of"
    selected = (select(leaf, picked, count, memo) for _, leaf in leaves(sample))
    return fill(sample, selected)


def _column(dataset: Any, table: Any, name: str, kind: str | None, memo: Memo) -> Any:
    """Returns the structure of one column's samples."""
    feature = dataset._info.features[name]
    is_image = type(feature).__name__ == "Image" and feature.decode

    def make() -> Any:
        column = table.column(name)
        if is_image:
            return _images(column, feature, kind)
        return _structure(column, feature, kind)

    use = f"column {name!r} of {feature!r} in format {kind}, {torch.get_default_dtype()}"
    with _named(f"column {name!r}:"):
        if is_image:
            check_pillow()  # at each epoch, as it may be replaced after the first
        else:
            _check_feature(feature)
        return memo.of_objects(use, (table,), make)


@contextlib.contextmanager
def _named(words: str) -> Iterator[None]:
    """Puts words before the reason why something within is Python."""
    try:
        yield
    except NotNative as reason:
        msg = f"{words} {reason.why}"
        raise NotNative(msg, reason.change) from reason


def _check_feature(feature: Any) -> None:
    """Refuses features whose values, or values in them, are made of what Arrow holds by code of their own."""
    name = type(feature).__name__
    if name in ("Audio", "Image") and not feature.decode:
        return  # bytes and a path, as Arrow holds them
    if name == "dict":
        for part in feature.values():
            _check_feature(part)
    elif name in ("List", "LargeList", "Sequence"):
        _check_feature(feature.feature)
    elif name not in _PLAIN:
        msg = f"its feature is {name}" if name != "list" else "its feature is a Python list"
        raise NotNative(msg, "remove it, or cast it to a plain one")


def _structure(column: Any, feature: Any, kind: str | None, *, inside: bool = False) -> Any:
    """Returns the structure of a column's samples in a format.

    Args:
        column: A chunked array.
        feature: Its feature in `datasets`.
        kind: The dataset's format.
        inside: True if it is a field of a struct, where numbers and text are Python's at first.
    """
    if str(column.type).startswith("struct<"):
        fields = arrow.parts(column)
        inner = feature if isinstance(feature, dict) else dict.fromkeys(fields)
        for name, each in fields.items():
            with _named(f"in {name!r},"):
                fields[name] = _structure(each, inner[name], kind, inside=True)
        return fields
    if (strings := arrow.strings(column)) is not None:
        return _strings(column, *strings, kind, inside=inside)
    is_array = type(feature).__name__.startswith("Array")
    is_list = hasattr(column.type, "value_type") or hasattr(column.type, "storage_type")
    floats = _scalars(kind) if inside and not is_list else _FLOATS[kind]
    stored = arrow.numbers(column, floats, keep_empty=kind is not None and not is_array)
    if kind == "numpy" and not stored.is_array:
        msg = "the format numpy makes arrays of objects of its lists, which differ in length"
        raise NotNative(msg, "pad them to one length, or use with_format('torch')")
    alone = None
    single = kind == "numpy" and not stored.dims
    if single and not inside and stored.source not in ("int64", "float"):
        msg = f"the format numpy gives {stored.source} one by one, and another type in batches"
        alone = NotNative(msg, "load batches")
    form: Form = "array"
    if kind is None:
        form = "list" if stored.dims else "number"
    elif kind == "torch":
        form = "tensor"
    elif single and inside:
        form = "cell"
    return Leaf(
        stored.native,
        f"{len(column)} {'lists' if stored.dims else 'numbers'} of Arrow type {column.type}",
        form,
        alone=alone,
        listed=kind is not None and stored.is_even and not inside,
    )


def _strings(
    column: Any, native: Any, what: str, depth: int, kind: str | None, *, inside: bool
) -> Leaf:
    """Returns the leaf of a column of text or bytes, or of lists of them."""
    if depth:
        if kind == "numpy":
            msg = f"the format numpy makes arrays of objects of its lists of {what}"
            raise NotNative(msg, "use with_format('torch')")
        return Leaf(native, f"{len(column)} lists of {what}", form="texts")
    if what == "bytes" and kind == "numpy" and not inside:
        msg = "the format numpy makes NumPy's bytes of it, and no single sample"
        raise NotNative(msg, "use with_format('torch')")
    # such formats pass values through NumPy, which shortens them
    if kind is not None and not inside and arrow.ends_in_zero(column):
        msg = f"the format {kind} cuts off the zeros that its values end in"
        raise NotNative(msg, "use with_format(None)")
    if what == "bytes":
        return Leaf(native, f"{len(column)} bytes objects", form="bytes")
    form: Form = "array" if kind == "numpy" and not inside else "text"
    return Leaf(native, f"{len(column)} texts", form=form, listed=kind == "torch" and not inside)


def _scalars(kind: str | None) -> str:
    """Returns the type of floating point numbers that are fields of a struct."""
    if kind != "torch":
        return "float64"
    default = str(torch.get_default_dtype()).removeprefix("torch.")
    if default not in ("float32", "float64"):
        msg = f"the format torch makes {default} of its numbers, which is torch's default dtype"
        raise NotNative(msg, "leave torch's default dtype at float32")
    return default


def _images(column: Any, feature: Any, kind: str | None) -> Leaf:
    """Returns the leaf of a column of images.

    Args:
        column: A chunked array of structs.
        feature: The feature, which decodes them.
        kind: The dataset's format.
    """
    if kind is None:
        msg = "without a format, images are open Pillow files, which are made in Python"
        raise NotNative(msg, "use with_format('torch')")
    mode = _MODES.get(feature.mode)
    if mode is None:
        msg = f"its images are converted to Pillow's mode {feature.mode}"
        raise NotNative(msg, "use the mode RGB, L or None")
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
    """Returns the source of native images, and its description."""
    fields = arrow.parts(column)
    encoded, paths = fields["bytes"], fields["path"]
    sources: Sequence[Any]
    if not encoded.null_count:
        sources, words = arrow.binaries(encoded), "encoded images"
        foreign = check_images(encoded, unchanged=unchanged)
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
    """Returns paths of files."""
    arrow.check_nulls(column)
    paths: list[str] = column.to_pylist()
    if any(":" in path and _SCHEME.match(path) for path in paths):
        msg = "its images are at URLs"
        raise NotNative(msg, "download them")
    return paths
