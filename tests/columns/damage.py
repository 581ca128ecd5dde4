"""Damaged files: how they are made, and what becomes of them here and where their own library reads them."""

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.shared.compare import assert_same

FLIPS = (0x01, 0x20, 0x80, 0xFF)


def identical(ours: Any, theirs: Any) -> bool:
    """True if two structures of samples are the same, bit for bit."""
    try:
        assert_same(ours, theirs)
    except AssertionError:
        return False
    return True


@dataclass(frozen=True)
class Format:
    """A kind of file, and who reads it.

    Attributes:
        name: What its files are called; files lie in a folder of their own.
        files: Small ones of it, by what is special about them.
        ours: Makes samples of a file by this package.
        theirs: Makes the same of it by the format's own library.
        same: Whether both are equal.
        refusals: What this package may raise.
        beside: Other files of the folder, whole.
        can_tell: Whether decoders notice damage, or must read the same of it. Frames of MP3 have no
            checksum: of damaged sound each decoder makes its own.
        is_strict: Whether everything that the library refuses is refused here. The `parquet` crate reads some
            damaged headers that pyarrow refuses.
    """

    name: str
    files: dict[str, bytes]
    ours: Callable[[Path], Any]
    theirs: Callable[[Path], Any]
    same: Callable[[Any, Any], bool] = identical
    refusals: tuple[type[Exception], ...] = (OSError,)
    beside: dict[str, bytes] = field(default_factory=dict)
    can_tell: bool = True
    is_strict: bool = True


@dataclass
class Tally:
    """What became of damaged files."""

    equal: int = 0
    refused_by_both: int = 0
    refused_alone: int = 0
    read_alone: list[Any] = field(default_factory=list)
    differ: list[Any] = field(default_factory=list)

    def __iadd__(self, other: "Tally") -> "Tally":
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def wrong(self, form: Format) -> dict[str, list[Any]]:
        """What a format does not allow: files read that its library refuses, or read as something else."""
        return {
            "read alone": self.read_alone if form.is_strict else [],
            "differs": self.differ if form.can_tell else [],
        }


def tally(form: Format, folder: Path, damaged: Iterable[tuple[Any, bytes]]) -> Tally:
    """Counts what becomes of files, each given with a word for its damage."""
    for name, content in form.beside.items():
        (folder / name).write_bytes(content)
    path, table = folder / form.name, Tally()
    for what, content in damaged:
        path.write_bytes(content)
        theirs = read(form.theirs, path)
        try:
            ours = form.ours(path)
        except form.refusals as error:
            if isinstance(error, OSError) and str(folder) not in str(error):
                msg = f"{error} names no file"
                raise AssertionError(msg) from error
            if theirs is None:
                table.refused_by_both += 1
            else:
                table.refused_alone += 1
            continue
        if theirs is None:
            table.read_alone.append(what)
        elif form.same(ours, theirs):
            table.equal += 1
        else:
            table.differ.append(what)
    return table


def read(theirs: Callable[[Path], Any], path: Path) -> Any:
    """What another library makes of a file; None: it raises something, whatever that is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return theirs(path)
        except Exception:
            return None


def cut(file: bytes, step: int = 1) -> Iterator[tuple[Any, bytes]]:
    """A file cut at every byte, or at every `step`."""
    return ((("cut", length), file[:length]) for length in range(0, len(file), step))


def flipped(
    file: bytes, flips: Iterable[int] = FLIPS, step: int = 1
) -> Iterator[tuple[Any, bytes]]:
    """A file with bytes flipped, each for itself."""
    for place in range(0, len(file), step):
        for flip in flips:
            damaged = bytearray(file)
            damaged[place] ^= flip
            yield ("flip", place, flip), bytes(damaged)


def scattered(
    file: bytes, count: int, within: range | None = None, seed: int = 0
) -> Iterator[tuple[Any, bytes]]:
    """A file with one to six bytes replaced, `count` times, at random."""
    random = np.random.default_rng(seed)
    places = within or range(len(file))
    for _ in range(count):
        damaged, done = bytearray(file), []
        for place in random.integers(places.start, places.stop, random.integers(1, 7)).tolist():
            damaged[place] = int(random.choice([0, 1, 2, 0x7F, 0x80, 0xFF, random.integers(256)]))
            done.append((place, damaged[place]))
        yield ("scattered", tuple(done)), bytes(damaged)


def every_kind(file: bytes, most: int) -> Iterator[tuple[Any, bytes]]:
    """About `most` damaged files of each kind of damage, or fewer of a small file."""
    step = -(-len(file) // most)
    yield from cut(file, step)
    for number, flip in enumerate(FLIPS):
        yield from itertools.islice(flipped(file, [flip], step), number, None, len(FLIPS))
    yield from scattered(file, most)
