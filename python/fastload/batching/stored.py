"""A cache of lengths, in memory and in files.

A file has one line of JSON, which identifies the dataset, and four bytes per sample, little-endian.
"""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastload import _lib

__all__ = ["Key", "lengths_by"]

Key = dict[str, Any]
"""The identity of a dataset in JSON; `fingerprint` is None if it is unknown."""

_KIND = "lengths of samples"
_LONGEST_HEADER = 1 << 16

_log = logging.getLogger("fastload")
_known: dict[str, _lib.Lengths] = {}


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
