"""Hugging Face `datasets`: Arrow tables behind a format and an indices mapping.

What each format makes of each type is what `datasets` makes of a list of indices, which is how torch's
DataLoader asks it: whole numbers become int64; floating point numbers float32 in the formats torch and
numpy, Python floats in none.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastload import _lib
from fastload.lowering import arrow, huggingface_images, registry
from fastload.lowering.leaf import Form, Leaf, fill, leaves
from fastload.lowering.memo import Memo
from fastload.lowering.registry import NotNative

_FLOATS = {None: "float64", "torch": "float32", "numpy": "float32"}


@registry.dataset(
    "datasets.arrow_dataset.Dataset",
    methods=("__getitem__", "__getitems__", "__len__", "_getitem"),
    notes=(
        "formats None, torch and numpy, with columns chosen, selected, shuffled or sharded; ints, floats, "
        "bools, text, lists of numbers of any length, nested lists of one length, structs; no nulls; "
        "images in the formats torch and numpy"
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
    picked = memo.of_object("indices", mapping, lambda: arrow.indices(mapping.column(0)))
    use, count = f"selection by {id(picked)}", f"{len(picked)} of "
    selected = (
        leaf.over(
            memo.of_object(use, leaf.native, partial(_lib.Select, leaf.native, picked)),
            count + leaf.column,
        )
        for _, leaf in leaves(sample)
    )
    return fill(sample, selected)


def _column(dataset: Any, table: Any, name: str, kind: str | None, memo: Memo) -> Any:
    """Returns the structure of one column's samples.

    Raises:
        NotNative: Python makes them, and why.
    """
    feature = dataset._info.features[name]
    try:
        make = _maker(feature, kind)
        return memo.of_object(
            f"column {name!r} of {feature!r} in format {kind}",
            table,
            lambda: make(table.column(name)),
        )
    except NotNative as reason:
        msg = f"column {name!r}: {reason.why}"
        raise NotNative(msg, reason.change) from reason


def _maker(feature: Any, kind: str | None) -> Callable[[Any], Any]:
    """Returns what makes the structure of a column from its Arrow array.

    Raises:
        NotNative: No native code makes values of this feature.
    """
    name = type(feature).__name__
    if name in ("dict", "Value", "ClassLabel", "List", "LargeList", "Sequence"):
        return lambda column: _structure(column, kind)
    if name == "Image":
        return lambda column: huggingface_images.images(column, feature, kind)
    msg = f"its feature is {name}"
    raise NotNative(msg, "remove it, or cast it to a plain one")


def _structure(column: Any, kind: str | None, *, inside: bool = False) -> Any:
    """Returns the structure of a column's samples in a format.

    Raises:
        NotNative: Python makes them, and why.
    """
    arrow_type = str(column.type)
    if arrow_type.startswith("struct<"):
        if kind == "numpy":
            msg = "the format numpy makes of its structs what their Python values say"
            raise NotNative(msg, "flatten() the dataset, or use with_format('torch')")
        names = [field.name for field in column.type]
        fields = zip(names, arrow.parts(column), strict=True)
        return {name: _structure(field, kind, inside=True) for name, field in fields}
    if arrow_type in ("string", "large_string"):
        form: Form = "array" if kind == "numpy" else "text"
        return Leaf(
            arrow.strings(column),
            f"{len(column)} texts",
            form=form,
            listed=kind == "torch" and not inside,
        )
    stored = arrow.numbers(column, _FLOATS[kind])
    has_empty = len(column) > 0 and not stored.least
    if kind is not None and has_empty and (inside or stored.dims > 1):
        msg = f"the format {kind} makes no tensors of its empty lists"
        raise NotNative(msg, "drop their rows")
    words = f"{len(column)} {'lists' if stored.dims else 'numbers'} of Arrow type {arrow_type}"
    alone = None
    if kind == "numpy" and not stored.dims and stored.source not in ("int64", "float"):
        msg = f"the format numpy gives {stored.source} one by one, and another type in batches"
        alone = NotNative(msg, "load batches")
    return Leaf(
        stored.native,
        words,
        _form(kind, stored.dims),
        alone=alone,
        listed=kind is not None and stored.is_even and not inside,
    )


def _form(kind: str | None, dims: int) -> Form:
    if kind is None:
        return "list" if dims else "number"
    return "tensor" if kind == "torch" else "array"
