"""Lengths of one field of a dataset: from its storage, or by making each sample once, and cached then.

Lengths are cached in memory and in files. A file has one line of JSON, which identifies the dataset, and four bytes
per sample, little-endian.
"""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fastload import _lib
from fastload.batching.fingerprint import fingerprint
from fastload.batching.lengths import Field, along, lengths_of, part_of, words
from fastload.batching.scan import Workers, scan, scan_leaf
from fastload.lowering import Leaf, NotNative, lower

__all__ = ["Key", "field_lengths", "lengths_by", "lengths_for"]

Key = dict[str, Any]
"""The identity of a dataset in JSON; `fingerprint` is None if it is unknown."""

_KIND = "lengths of samples"
_LONGEST_HEADER = 1 << 16

_log = logging.getLogger("fastload")
_known: dict[str, _lib.Lengths] = {}


def field_lengths(
    dataset: Any,
    field: Field,
    workers: Workers,
    *,
    cache: str | os.PathLike[str] | None = None,
    dim: int | None = None,
) -> _lib.Lengths:
    """Returns the lengths of a field, one per sample; `fastload.lengths` returns them as a tensor."""
    leaf = _leaf(dataset, field)
    if leaf is not None and (stored := _stored_lengths(leaf, field, dim)) is not None:
        return stored

    def look() -> _lib.Lengths:
        found = scan(dataset, field, workers) if leaf is None else scan_leaf(leaf, field, workers)
        return lengths_of(along(found, dim, field))

    if type(dataset) in (list, tuple) or not hasattr(dataset, "__len__"):
        return look()  # as fast as a fingerprint
    kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    name = fingerprint(dataset, field, dim)
    if name is None and cache is not None:
        _log.info(
            "no fingerprint of %s: cache %s is used for any dataset of the same length", kind, cache
        )
    key = {"fingerprint": name, "class": kind, "field": words(field), "dim": dim}
    return lengths_by({**key, "samples": len(dataset)}, cache, look)


def lengths_for(dataset: Any, length: Any, workers: Workers) -> _lib.Lengths:
    """Returns the lengths given as a list, an array or a tensor; else those of a field."""
    if isinstance(length, list | np.ndarray | torch.Tensor):
        return lengths_of(length)
    return field_lengths(dataset, length, workers)


def _leaf(dataset: Any, field: Field) -> Leaf | None:
    """Returns the native leaf of a field; None if Python code makes it.

    Raises:
        KeyError: Samples have no such field.
        TypeError: It is several fields, or not an array.
    """
    if callable(field):
        return None
    try:
        part = part_of(lower(dataset).sample, field)
    except NotNative:
        return None
    if not isinstance(part, Leaf):
        msg = f"{words(field)} is a {type(part).__name__}; name one of its fields by a tuple"
        raise TypeError(msg)
    if part.tail:
        return None
    if part.form in ("text", "bytes"):
        msg = f"{words(field)}, {part.column}, has no lengths: its samples are not arrays"
        raise TypeError(msg)
    return part


def _stored_lengths(leaf: Leaf, field: Field, dim: int | None) -> _lib.Lengths | None:
    """Returns the lengths known from storage; None if they are unknown."""
    if (known := _lib.shapes(leaf.native)) is None:
        return None
    data, dimensions = known
    if dimensions > 0:
        shapes = np.frombuffer(data, np.int64).reshape(-1, dimensions)
        return lengths_of(along(shapes, dim, field))
    rows = leaf.native
    if not isinstance(rows, _lib.Rows):
        return None
    [(_, dtype)] = _lib.Program([rows], _lib.Leaf(0, leaf.form)).layout()
    return _lib.Lengths(rows) if dtype in ("int64", "int32") else None


def lengths_by(
    key: Key, path: str | os.PathLike[str] | None, look: Callable[[], _lib.Lengths]
) -> _lib.Lengths:
    """Returns cached lengths; else looks them up and caches them.

    In memory they stay under their fingerprint as long as the process lives.

    Args:
        key: The identity of the dataset.
        path: The file, rewritten if it belongs to another dataset; None for none.
        look: Looks them up.

    Raises:
        ValueError: `path` is not a file of lengths.
        OSError: The file cannot be read or written.
    """
    name = key["fingerprint"]
    stored = None if path is None else _read(Path(path), key)
    found = stored or (_known.get(name) if name else None) or look()
    if name:
        _known[name] = found
    if path is not None and stored is None:
        _write(Path(path), key, found)
    return found


def _read(path: Path, key: Key) -> _lib.Lengths | None:
    """Returns the lengths in a file; None if there are none or they belong to another dataset."""
    try:
        with path.open("rb") as file:
            header, data = file.readline(_LONGEST_HEADER), file.read()
    except FileNotFoundError:
        return None
    if not header and not data:
        return None
    try:
        said = json.loads(header)
        said = said if isinstance(said, dict) and said.pop("kind") == _KIND else None
    except (KeyError, ValueError):
        said = None
    if said is None:
        msg = f"cache {str(path)!r} is not a file of lengths and is left as it is; pass another path, or remove it"
        raise ValueError(msg)
    if len(data) != 4 * key["samples"] and said == key:
        _log.warning("cache %s is damaged: lengths are looked up and stored again", path)
        return None
    if said != key:
        different = ", ".join(sorted(name for name in key if said.get(name) != key[name]))
        _log.warning(
            "cache %s belongs to another dataset, by its %s: lengths are looked up and stored again",
            path,
            different,
        )
        return None
    return _lib.Lengths.from_bytes(data)


def _write(path: Path, key: Key, lengths: _lib.Lengths) -> None:
    """Writes a file atomically."""
    header = json.dumps({"kind": _KIND, **key}) + "\n"
    _lib.write_file(path, header.encode() + lengths.to_bytes())
