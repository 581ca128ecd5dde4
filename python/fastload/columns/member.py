"""A member of tar shards as a column: its extension says what it is."""

import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np

from fastload import _lib
from fastload.columns.chain import chain, listed
from fastload.columns.column import Column, Form
from fastload.columns.progress import progress
from fastload.columns.rows import Rows

__all__ = ["KEY", "Member", "Shards", "extensions", "shards"]

KEY = "__key__"
"""What stands for a sample's name."""

_KINDS = {
    "image": "jpg jpeg png webp ppm pgm pbm pnm bmp gif tif tiff",
    "integer": "cls cls2 class count index inx id",
    "text": "txt text transcript",
    "npy": "npy",
}
_KIND_OF = {extension: kind for kind, several in _KINDS.items() for extension in several.split()}


class Shards:
    """Tar files and their index, which all columns over the same files share while it is in use."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        with progress("shards") as tell:
            self.index = _lib.Tar(paths, tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths."""
        return shards, (self.paths,)


_known: weakref.WeakValueDictionary[tuple[str, ...], Shards] = weakref.WeakValueDictionary()


def shards(paths: list[str]) -> Shards:
    """Returns the index of tar files; one that is in use already, unless a file has changed since."""
    known = _known.get(tuple(paths))
    if known is None or known.index.changed():
        _known[tuple(paths)] = known = Shards(paths)
    return known


@final
class Member(Column):
    """One member of each sample."""

    def __init__(self, shards: Shards, samples: list[int], member: str, transform: Any) -> None:
        self._shards = shards
        self._samples = samples
        self._member = member
        self._transform = transform
        self._kind = _kind(member)
        if self._kind == "key":
            keys = shards.index.keys()
            self._native = _text([keys[sample] for sample in samples])
        else:
            blobs = shards.index.members(extensions(member), samples)
            self._native = _MAKERS[self._kind](blobs, transform)

    @property
    def _form(self) -> Form:
        return _FORMS.get(self._kind, "tensor")

    @property
    def _heavy(self) -> bool:
        return self._kind == "image"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths and what is wanted."""
        return Member, (self._shards, self._samples, self._member, self._transform)

    def __repr__(self) -> str:
        return f"{self._member} of {len(self._shards.paths)} tar files ({len(self)} samples)"


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


def _image(blobs: _lib.Blobs, transform: Any) -> _lib.Column:
    ops, output = chain(listed(transform))
    return _lib.Image(blobs, "RGB", ops, output)


def _npy(blobs: _lib.Blobs, _: Any) -> _lib.Column:
    with progress("headers") as tell:
        return _lib.Npy(blobs, [], tell)


def _plain(what: str) -> Callable[[_lib.Blobs, Any], _lib.Column]:
    return lambda blobs, _: _lib.Plain(blobs, what)


def _text(values: list[str]) -> _lib.Text:
    encoded = [value.encode() for value in values]
    letters = Rows(np.frombuffer(b"".join(encoded), np.uint8))
    offsets = Rows(np.cumsum([0, *map(len, encoded)], dtype=np.int64))
    return _lib.Text(_lib.Ragged(letters._native, offsets._native))


_MAKERS: dict[str, Callable[[_lib.Blobs, Any], _lib.Column]] = {
    "image": _image,
    "npy": _npy,
    "integer": _plain("integer"),
    "text": _plain("text"),
    "bytes": _plain("bytes"),
}
_FORMS: dict[str, Form] = {"key": "text", "text": "text", "bytes": "bytes"}
