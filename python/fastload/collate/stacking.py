"""torch's default collation, with a note on errors about shapes that says what to write instead."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from fastload.collate.default import default_collate as _default_collate
from fastload.collate.fields import Path, title

__all__ = ["advice", "default_collate"]


def default_collate(samples: list[Any]) -> Any:
    """Returns what torch's `default_collate` returns; errors about sizes get a note.

    Raises:
        RuntimeError: Samples differ in shape; torch's own error.
        TypeError: torch cannot collate samples of this type; torch's own error.
    """
    try:
        return _default_collate(samples)
    except RuntimeError as error:
        with contextlib.suppress(Exception):  # whatever a user's class raises
            if note := _note(samples, ()):
                error.add_note(note)
        raise


def advice(path: Path, first: object, other: object) -> str:
    """Returns advice for a field whose samples cannot be stacked."""
    field = f"field {title(path)}" if path else "a sample"
    rule = f"{{{(path[0] if len(path) == 1 else path)!r}: Unpadded()}}" if path else "Unpadded()"
    return (
        f"{field} has shape {first} in one sample and {other} in another: pass "
        f"collate_fn=fastload.PadCollate() to pad it, or PadCollate({rule}) to keep its samples separate"
    )


def _note(values: list[Any], path: Path) -> str | None:
    """Returns the advice for the first field whose samples differ in shape."""
    first = values[0]
    if isinstance(first, torch.Tensor | np.ndarray):
        if getattr(first, "is_nested", False):
            return None
        shapes = [tuple(getattr(value, "shape", ())) for value in values]
        other = next((shape for shape in shapes if shape != shapes[0]), None)
        return None if other is None else advice(path, shapes[0], other)
    parts: Iterable[tuple[Any, list[Any]]]
    if isinstance(first, Mapping):
        parts = ((key, [value[key] for value in values]) for key in first)
    elif isinstance(first, tuple | list):
        sizes = [len(value) for value in values]
        other_size = next((size for size in sizes if size != sizes[0]), None)
        if other_size is not None:
            return advice(path, f"({sizes[0]},)", f"({other_size},)")
        names = getattr(type(first), "_fields", range(len(first)))
        parts = zip(names, map(list, zip(*values, strict=True)), strict=True)
    else:
        return None
    notes = (_note(part, (*path, key)) for key, part in parts)
    return next(filter(None, notes), None)
