"""`Tar`: samples in tar shards, as a map-style dataset: each member is a column, of a type that its extension says."""

import weakref
from typing import Any, Literal, final

import numpy as np
from torch.utils.data import Dataset

from fastload import _lib
from fastload.checks import check_choice
from fastload.columns.column import Column, Form
from fastload.columns.dataset import Dataset as Columns
from fastload.columns.files import Paths, absolute, expand, progress
from fastload.columns.image import chain, listed
from fastload.columns.rows import Rows
from fastload.columns.structure import fill, leaves

_KEY = "__key__"
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
_OWN = {
    "_shards",
    "_paths",
    "_members",
    "_transform",
    "_missing",
    "_chosen",
    "_structure",
    "_dataset",
}
_KIND_OF = {extension: kind for kind, several in _KINDS.items() for extension in several.split()}


class Tar(Dataset[Any]):
    """A map-style dataset over tar files in WebDataset's layout: adjacent members of one key are a sample.

    The headers of all shards are scanned once, when the dataset is made; samples are then read at random. The
    last part of an extension gives a member's type: images (`jpg`, `png`, `webp`, …) are decoded to RGB and
    transformed, integers (`cls`, `id`, …) become int64, `txt` becomes text, `npy` an array, `pt` a tensor,
    recordings (`wav`, `flac`, `mp3`, `ogg`) float32 of shape (channels, frames); anything else stays bytes.

    Args:
        paths: Tar files, or a pattern such as `"train-*.tar"`, whose matches are sorted.
        members: The structure of a sample: extensions in a tuple, list or dict, or one of them;
            `"jpg;png"` is the first one that a sample has; `"__key__"` is its name. None: a dict of
            `"__key__"` and of every extension that all samples have.
        transform: Transform of images, as for `Image`.
        missing: `"error"` or `"drop"`: treatment of samples that lack a member.

    Raises:
        OSError: A shard cannot be read, or is damaged, compressed or sparse.
        ValueError: No shard matches, or a sample lacks a member.
        TypeError: A structure of other things, or a transform that is Python code.

    Examples:
        >>> dataset = Tar("train-*.tar", ("jpg;png", "cls"), transform=ToTensor())
        >>> image, label = dataset[0]
        >>> for images, labels in Loader(dataset, batch_size=64, shuffle=True):
        ...     pass
    """

    def __init__(
        self,
        paths: Paths,
        members: Any = None,
        transform: Any = None,
        *,
        missing: Literal["error", "drop"] = "error",
    ) -> None:
        check_choice("missing", missing, ("error", "drop"))
        self._shards = _shards(absolute(expand(paths)))
        self._paths = self._shards.paths
        self._members = _everything(self._shards.index) if members is None else members
        self._transform = transform
        self._missing = missing
        wanted = _wanted(self._members)
        self._chosen = _Chosen(self._shards, wanted, missing)
        self._structure = fill(self._members, map(self.column, wanted))
        self._dataset: Dataset[Any] | None = None

    def column(self, member: str) -> Column:
        """Returns one member of each sample: an extension, `"jpg;png"`, or `"__key__"`.

        Raises:
            ValueError: A sample lacks it, or the extensions are of several kinds.
        """
        return _Member(self._chosen, member, self._transform)

    @property
    def keys(self) -> list[str]:
        """The names of the samples."""
        keys = self._shards.index.keys()
        return [keys[sample] for sample in self._chosen.samples]

    def __fastload__(self) -> Any:
        """Returns the structure of columns."""
        return self._structure

    def __len__(self) -> int:
        """Returns the number of samples."""
        return len(self._chosen.samples)

    def __getitem__(self, index: int) -> Any:
        """Returns one sample.

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: A shard cannot be read, or a member cannot be decoded.
        """
        if self._dataset is None:
            self._dataset = Columns(self._structure)
        return self._dataset[index]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments, and what a subclass added; the shards are indexed again."""
        arguments = type(self), self._paths, self._members, self._transform, self._missing
        added = {name: value for name, value in vars(self).items() if name not in _OWN}
        return _restore, arguments, added or None

    def __repr__(self) -> str:
        return f"Tar({len(self._paths)} shards, {len(self)} samples of {self._members!r})"


def _restore(kind: type[Tar], paths: list[str], members: Any, transform: Any, missing: Any) -> Tar:
    """Makes a dataset without calling a subclass's constructor."""
    dataset = kind.__new__(kind)
    Tar.__init__(dataset, paths, members, transform, missing=missing)
    return dataset


def _everything(index: _lib.Tar) -> dict[str, str]:
    """Returns the key and the extensions that all samples have."""
    counts = index.extensions()
    common = [name for name, count in counts.items() if count == len(index)]
    if counts and not common:
        found = ", ".join(f"{name} ({count})" for name, count in counts.items())
        msg = f"no extension is in all {len(index)} samples, found {found}: name the members"
        raise ValueError(msg)
    return {_KEY: _KEY, **{name: name for name in common}}


def _wanted(members: Any) -> list[str]:
    """Returns the members in a structure."""
    wanted = [member for _, member in leaves(members)]
    for each in wanted:
        if not isinstance(each, str):
            msg = (
                "members are extensions, as 'jpg' or 'jpg;png', in tuples, lists and dicts; found "
                f"{type(each).__name__}"
            )
            raise TypeError(msg)
    return wanted


class _Shards:
    """Tar files and their index, shared by all columns over the same files."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        with progress("shards") as tell:
            self.index = _lib.Tar(paths, tell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths."""
        return _shards, (self.paths,)


_known: weakref.WeakValueDictionary[tuple[str, ...], _Shards] = weakref.WeakValueDictionary()


def _shards(paths: list[str]) -> _Shards:
    """Returns the index of tar files; reuses the one in use unless a file has changed."""
    known = _known.get(tuple(paths))
    if known is None or known.index.changed():
        _known[tuple(paths)] = known = _Shards(paths)
    return known


class _Chosen:
    """The samples of shards that have all wanted members.

    Raises:
        ValueError: A sample lacks a member, and `missing` is "error".
    """

    def __init__(self, shards: _Shards, wanted: list[str], missing: str) -> None:
        self.shards = shards
        self._wanted = wanted
        self._missing = missing
        lacking: dict[int, str] = {}
        for member in wanted:
            if member != _KEY:
                lacking |= dict.fromkeys(shards.index.lacking(_extensions(member)), member)
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
        return _Chosen, (self.shards, self._wanted, self._missing)


@final
class _Member(Column):
    """One member of each sample."""

    def __init__(self, chosen: _Chosen, member: str, transform: Any) -> None:
        self._chosen = chosen
        self._member = member
        self._paths = chosen.shards.paths
        self._arguments = (chosen, member, transform), {}
        kind = _kind(member)
        self._form, self._heavy = _FORMS.get(kind, "tensor"), kind == "image"
        index, samples = chosen.shards.index, chosen.samples
        if kind == "key":
            keys = index.keys()
            self._native = _text([keys[sample] for sample in samples])
        else:
            blobs = index.members(_extensions(member), samples)
            self._native = _made(kind, blobs, transform)

    def __repr__(self) -> str:
        return f"{self._member} of {len(self._paths)} tar files ({len(self)} samples)"


def _extensions(member: str) -> list[str]:
    """Returns the alternatives of a member such as `"jpg;png"`."""
    return [part.strip().lower().removeprefix(".") for part in member.split(";")]


def _kind(member: str) -> str:
    if member == _KEY:
        return "key"
    kinds = {_KIND_OF.get(each.rpartition(".")[2], "bytes") for each in _extensions(member)}
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
