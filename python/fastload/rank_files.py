"""The files that ranks write where all are given the same name."""

from os import PathLike
from pathlib import Path

__all__ = ["file_of"]


def file_of(path: str | PathLike[str], rank: int) -> Path:
    """Returns the file of a rank: for `run.jsonl`, rank 0 writes that, and rank 3 `run.rank3.jsonl`."""
    path = Path(path)
    return path.with_suffix(f".rank{rank}{path.suffix}") if rank else path
