"""A progress bar for reading many files, shown on terminals."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]


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
