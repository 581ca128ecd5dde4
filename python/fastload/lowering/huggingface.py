"""Hugging Face `datasets`: Arrow tables behind a format and an indices mapping.

Each format converts each type as `datasets` does for a list of indices, which is how torch's DataLoader reads
it: integers become int64; floats become float32 in the formats torch and numpy, Python floats without a format.
"""

from collections.abc import Callable
from typing import Any

import torch

from fastload import registry
from fastload.columns.structure import fill, leaves
from fastload.lowering import arrow, huggingface_images
from fastload.lowering.leaf import Form, Leaf, select
from fastload.lowering.memo import Memo
from fastload.registry import NotNative

_FLOATS = {None: "float64", "torch": "float32", "numpy": "float32"}

_PLAIN = ("Value", "ClassLabel", "Translation", "Array2D", "Array3D", "Array4D", "Array5D")
"""Features whose values are what Arrow holds."""


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
        msg = "its format leaves some columns in Python"
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
    """Returns the structure of one column's samples.

    Raises:
        NotNative: Python makes them; carries the reason.
    """
    feature = dataset._info.features[name]
    try:
        make = _maker(feature, kind)
        return memo.of_objects(
            f"column {name!r} of {feature!r} in format {kind}, {torch.get_default_dtype()}",
            (table,),
            lambda: make(table.column(name)),
        )
    except NotNative as reason:
        msg = f"column {name!r}: {reason.why}"
        raise NotNative(msg, reason.change) from reason


def _maker(feature: Any, kind: str | None) -> Callable[[Any], Any]:
    """Returns the function that makes the structure of a column from its Arrow array.

    Raises:
        NotNative: No native code makes values of this feature.
    """
    if type(feature).__name__ == "Image" and feature.decode:
        return lambda column: huggingface_images.images(column, feature, kind)
    _check_feature(feature)
    return lambda column: _structure(column, feature, kind)


def _check_feature(feature: Any) -> None:
    """Refuses features whose values are made of what Arrow holds by code of their own.

    Raises:
        NotNative: It is one, or one is in it.
    """
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

    Raises:
        NotNative: Python makes them; carries the reason.
    """
    if str(column.type).startswith("struct<"):
        names = [field.name for field in column.type]
        inner = feature if isinstance(feature, dict) else dict.fromkeys(names)
        fields = zip(names, arrow.parts(column), strict=True)
        return {name: _field(name, each, inner[name], kind) for name, each in fields}
    if arrow.is_bytes(column.type):
        return _bytes(column, kind, inside=inside)
    if arrow.is_text(column.type):
        return _texts(column, kind, inside=inside)
    is_array = type(feature).__name__.startswith("Array")
    floats = _scalars(kind) if inside and not _is_list(column) else _FLOATS[kind]
    stored = arrow.numbers(column, floats, keep_empty=kind is not None and not is_array)
    if kind == "numpy" and not stored.is_array:
        msg = "the format numpy makes arrays of objects of its lists, which differ in length"
        raise NotNative(msg, "pad them to one length, or use with_format('torch')")
    words = f"{len(column)} {'lists' if stored.dims else 'numbers'} of Arrow type {column.type}"
    alone = None
    single = kind == "numpy" and not stored.dims
    if single and not inside and stored.source not in ("int64", "float"):
        msg = f"the format numpy gives {stored.source} one by one, and another type in batches"
        alone = NotNative(msg, "load batches")
    return Leaf(
        stored.native,
        words,
        "cell" if single and inside else _form(kind, stored.dims),
        alone=alone,
        listed=kind is not None and stored.is_even and not inside,
    )


def _field(name: str, column: Any, feature: Any, kind: str | None) -> Any:
    """Returns the structure of a field of a struct.

    Raises:
        NotNative: Python makes it, and why.
    """
    try:
        return _structure(column, feature, kind, inside=True)
    except NotNative as reason:
        msg = f"in {name!r}, {reason.why}"
        raise NotNative(msg, reason.change) from reason


def _texts(column: Any, kind: str | None, *, inside: bool) -> Leaf:
    """Returns the leaf of a column of text, or of lists of it."""
    native, depth = arrow.strings(column)
    if depth:
        if kind == "numpy":
            msg = "the format numpy makes arrays of objects of its lists of text"
            raise NotNative(msg, "use with_format('torch')")
        return Leaf(native, f"{len(column)} lists of text", form="texts")
    if kind is not None and not inside:
        _check_ends(column, kind)
    form: Form = "array" if kind == "numpy" and not inside else "text"
    return Leaf(native, f"{len(column)} texts", form=form, listed=kind == "torch" and not inside)


def _bytes(column: Any, kind: str | None, *, inside: bool) -> Leaf:
    """Returns the leaf of a column of bytes, or of lists of them."""
    native, depth = arrow.strings(column)
    if depth:
        if kind == "numpy":
            msg = "the format numpy makes arrays of objects of its lists of bytes"
            raise NotNative(msg, "use with_format('torch')")
        return Leaf(native, f"{len(column)} lists of bytes", form="texts")
    if not inside:
        if kind == "numpy":
            msg = "the format numpy makes NumPy's bytes of it, and no single sample"
            raise NotNative(msg, "use with_format('torch')")
        if kind == "torch":
            _check_ends(column, kind)
    return Leaf(native, f"{len(column)} bytes objects", form="bytes")


def _check_ends(column: Any, kind: str) -> None:
    """Refuses text and bytes that NumPy shortens, through which some formats pass them.

    Raises:
        NotNative: A value ends in zeros.
    """
    if arrow.ends_in_zero(column):
        msg = f"the format {kind} cuts off the zeros that its values end in"
        raise NotNative(msg, "use with_format(None)")


def _is_list(column: Any) -> bool:
    return hasattr(column.type, "value_type") or hasattr(column.type, "storage_type")


def _scalars(kind: str | None) -> str:
    """Returns the type of floating point numbers that are fields of a struct."""
    if kind != "torch":
        return "float64"
    default = str(torch.get_default_dtype()).removeprefix("torch.")
    if default not in ("float32", "float64"):
        msg = f"the format torch makes {default} of its numbers, which is torch's default dtype"
        raise NotNative(msg, "leave torch's default dtype at float32")
    return default


def _form(kind: str | None, dims: int) -> Form:
    if kind is None:
        return "list" if dims else "number"
    return "tensor" if kind == "torch" else "array"
