"""The files of columns: lists and patterns of paths, and the bar that shows how far reading them is."""

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Paths = str | Iterable[str | os.PathLike[str]]


def expand(paths: Paths) -> list[str]:
    """Returns the paths of a list; of text that names no file, the sorted matches of a pattern like `"shards/*.tar"`.

    Raises:
        TypeError: A single path object, or a list of other things.
        ValueError: A pattern without matches, or a URL.
    """
    if isinstance(paths, str):
        _refuse_url(paths)
        if os.path.exists(paths):  # noqa: PTH110 (keeps the text as it is)
            return [paths]
        found = sorted(glob.glob(paths, recursive=True))  # noqa: PTH207 (absolute patterns too)
        if not found:
            msg = f"no file matches {paths!r}"
            raise ValueError(msg)
        return found
    if isinstance(paths, bytes | os.PathLike):
        msg = f"expected a list of paths or a pattern, found one {type(paths).__name__}"
        raise TypeError(msg)
    return [_path(place, path) for place, path in enumerate(paths)]


def one_or_more(paths: Paths | os.PathLike[str]) -> list[str]:
    """Returns the path of one file, which need not exist, or the paths of a list or a pattern.

    Raises:
        TypeError: A list of something else.
        ValueError: A pattern without matches, no path at all, or a URL.
    """
    if isinstance(paths, os.PathLike):
        return [_path(0, paths)]
    if isinstance(paths, str) and not glob.has_magic(paths):
        return [_path(0, paths)]
    found = expand(paths)
    if not found:
        msg = "no file is given"
        raise ValueError(msg)
    return found


def absolute(paths: list[str]) -> list[str]:
    """Returns paths that name the same files after the working directory has changed."""
    return [path if Path(path).is_absolute() else f"{Path.cwd()}{os.sep}{path}" for path in paths]


def _path(place: int, path: Any) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        msg = f"path {place} is a {type(path).__name__}; expected text or a path object"
        raise TypeError(msg)
    _refuse_url(text)
    return str(text)


def _refuse_url(path: str) -> None:
    scheme, found, _ = path.partition("://")
    if found and scheme.isalnum():
        msg = (
            f"{path!r} is a URL, and columns read files of this machine: download it first, or mount "
            "the storage and give the path there"
        )
        raise ValueError(msg)


@contextmanager
def progress(what: str, unit: str = " files") -> Iterator[Callable[[int, int], None] | None]:
    """Yields a function to call with (done, total) now and then; None without a terminal.

    The bar is tqdm's; it appears at the first call and is cleared at the end. Without tqdm there is none.
    """
    if not (sys.stderr is not None and sys.stderr.isatty()):
        yield None
        return
    try:
        from tqdm.auto import tqdm  # optional, and slow to import
    except ImportError:
        yield None
        return
    bars: list[Any] = []

    def tell(done: int, total: int) -> None:
        if not bars:
            bars.append(tqdm(desc=what, total=total, leave=False, unit=unit))
        bars[0].update(done - bars[0].n)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.close()
