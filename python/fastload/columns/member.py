"""A member of tar shards as a column, of a type that follows from its extension."""

import weakref
from typing import Any, final

import numpy as np

from fastload import _lib
from fastload.columns.column import Column, Form
from fastload.columns.files import progress
from fastload.columns.image import chain, listed
from fastload.columns.rows import Rows

KEY = "__key__"
"""The member that is a sample's name."""

_KINDS = {
    "image": "jpg jpeg png webp ppm pgm pbm pnm bmp gif tif tiff",
    "integer": "cls cls2 class count index inx id",
    "text": "txt text transcript",
    "npy": "npy",
    "pt": "pt pth",
    "audio": "wav flac mp3 ogg",
}
_FORMS: dict[str, Form] = {"key": "text", "text": "text", "bytes": "bytes"}
_KIND_OF = {extension: kind for kind, several in _KINDS.items() for extension in several.split()}


class Shards:
    """Tar files and their index, shared by all columns over the same files."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        with progress("shards") as tell:
            self.index = _lib.Tar(paths, tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths."""
        return shards, (self.paths,)


_known: weakref.WeakValueDictionary[tuple[str, ...], Shards] = weakref.WeakValueDictionary()


def shards(paths: list[str]) -> Shards:
    """Returns the index of tar files; reuses the one in use unless a file has changed."""
    known = _known.get(tuple(paths))
    if known is None or known.index.changed():
        _known[tuple(paths)] = known = Shards(paths)
    return known


class Chosen:
    """The samples of shards that have all wanted members.

    Raises:
        ValueError: A sample lacks a member, and `missing` is "error".
    """

    def __init__(self, shards: Shards, wanted: list[str], missing: str) -> None:
        self.shards = shards
        self._wanted = wanted
        self._missing = missing
        lacking: dict[int, str] = {}
        for member in wanted:
            if member != KEY:
                lacking |= dict.fromkeys(shards.index.lacking(extensions(member)), member)
        count = len(shards.index)
        if lacking and missing == "error":
            first = min(lacking)
            msg = (
                f"sample {shards.index.keys()[first]!r} of {shards.index.shard(first)} has no "
                f"{lacking[first]!r}, and {len(lacking)} of {count} samples lack a member; "
                'missing="drop" leaves them out'
            )
            raise ValueError(msg)
        self.samples = [sample for sample in range(count) if sample not in lacking]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments, not the samples found."""
        return Chosen, (self.shards, self._wanted, self._missing)


@final
class Member(Column):
    """One member of each sample."""

    def __init__(self, chosen: Chosen, member: str, transform: Any) -> None:
        self._chosen = chosen
        self._member = member
        self._arguments = (chosen, member, transform), {}
        kind = _kind(member)
        self._form, self._heavy = _FORMS.get(kind, "tensor"), kind == "image"
        index, samples = chosen.shards.index, chosen.samples
        if kind == "key":
            keys = index.keys()
            self._native = _text([keys[sample] for sample in samples])
        else:
            blobs = index.members(extensions(member), samples)
            self._native = _made(kind, blobs, transform)

    def __repr__(self) -> str:
        return f"{self._member} of {len(self._chosen.shards.paths)} tar files ({len(self)} samples)"


def extensions(member: str) -> list[str]:
    """Returns the alternatives of a member such as `"jpg;png"`."""
    return [part.strip().lower().removeprefix(".") for part in member.split(";")]


def _kind(member: str) -> str:
    if member == KEY:
        return "key"
    kinds = {_KIND_OF.get(each.rpartition(".")[2], "bytes") for each in extensions(member)}
    if len(kinds) > 1:
        msg = f"{member!r} names members of several kinds: {', '.join(sorted(kinds))}"
        raise ValueError(msg)
    return kinds.pop()


def _made(kind: str, blobs: _lib.Blobs, transform: Any) -> _lib.Column:
    """Returns the native column of members of a kind."""
    if kind == "image":
        ops, output = chain(listed(transform))
        return _lib.Image(blobs, "RGB", ops, output)
    if kind in ("integer", "text", "bytes"):
        return _lib.plain(blobs, kind)
    with progress("headers") as tell:
        if kind == "npy":
            return _lib.npy(blobs, [], tell)
        if kind == "pt":
            return _lib.pt(blobs, None, tell)
        whole: list[tuple[int, int | None]] = [(0, None)]
        return _lib.Audio(blobs, whole, "float32", False, None, tell)


def _text(values: list[str]) -> _lib.Column:
    encoded = [value.encode() for value in values]
    utf8 = Rows(np.frombuffer(b"".join(encoded), np.uint8))
    offsets = Rows(np.cumsum([0, *map(len, encoded)], dtype=np.int64))
    return _lib.text(_lib.Ragged(utf8._native, offsets._native))
