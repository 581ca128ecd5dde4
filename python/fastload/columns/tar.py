"""`Tar`: samples in tar shards, as a map-style dataset."""

from functools import partial
from typing import Any, Literal

from torch.utils.data import Dataset

from fastload.columns.column import Column
from fastload.columns.dataset import Dataset as Columns
from fastload.columns.files import Paths, expand
from fastload.columns.member import KEY, Chosen, Member, Shards, shards
from fastload.columns.structure import fill, leaves


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
        if missing not in ("error", "drop"):
            msg = f'missing is "error" or "drop", not {missing!r}'
            raise ValueError(msg)
        self._shards = shards(expand(paths))
        self._members = _everything(self._shards) if members is None else members
        self._transform = transform
        self._missing = missing
        wanted = _wanted(self._members)
        self._chosen = Chosen(self._shards, wanted, missing)
        self._structure = fill(self._members, map(self.column, wanted))
        self._dataset: Dataset[Any] | None = None

    def column(self, member: str) -> Column:
        """Returns one member of each sample: an extension, `"jpg;png"`, or `"__key__"`.

        Raises:
            ValueError: A sample lacks it, or the extensions are of several kinds.
        """
        return Member(self._chosen, member, self._transform)

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
        """Pickles the arguments; the shards are indexed again."""
        arguments = self._shards.paths, self._members, self._transform
        return partial(Tar, missing=self._missing), arguments

    def __repr__(self) -> str:
        return f"Tar({len(self._shards.paths)} shards, {len(self)} samples of {self._members!r})"


def _everything(tar: Shards) -> dict[str, str]:
    """Returns the key and the extensions that all samples have."""
    counts = tar.index.extensions()
    common = [name for name, count in counts.items() if count == len(tar.index)]
    if counts and not common:
        found = ", ".join(f"{name} ({count})" for name, count in counts.items())
        msg = f"no extension is in all {len(tar.index)} samples, found {found}: name the members"
        raise ValueError(msg)
    return {KEY: KEY, **{name: name for name in common}}


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
