"""The files to which ranks append lines: their names, where all are given the same, and their ends."""

import os
from os import PathLike
from pathlib import Path

__all__ = ["file_of", "is_torn"]


def file_of(path: str | PathLike[str], rank: int) -> Path:
    """Returns the file of a rank: for `run.jsonl`, rank 0 writes that, and rank 3 `run.rank3.jsonl`."""
    path = Path(path)
    return path.with_suffix(f".rank{rank}{path.suffix}") if rank else path


def is_torn(path: str | PathLike[str]) -> bool:
    """Returns true if the last line of a file is not whole, as a killed process or a full disk leaves it.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
