"""The files of samples, where a dataset lists them: columns of files, torchvision's folders, and many others."""

import os
import re
from typing import Any

from torch.utils.data import ConcatDataset, Subset

from fastload.columns.dataset import Dataset as Columns

# Attributes in which columns, torchvision's datasets and many others list a file for each sample
_LISTS = ("_paths", "samples", "imgs", "image_files", "images", "paths", "files")

_LONGEST_PATH = 4096
_NAMES_FILE = re.compile(rf"\A[^\n]*({re.escape(os.sep)}[^\n]+|\.\w{{1,16}})\Z")
"""A name with a folder or a suffix, in one line."""


def listed_files(dataset: Any, index: Any) -> list[str]:
    """Returns the files that a dataset lists for a sample, whether they exist or not; empty if it lists none."""
    try:
        return _listed(dataset, index)
    except Exception:  # of the user's class, or an index that is not an integer
        return []


def first_file(dataset: Any, index: Any) -> str:
    """Returns the first file that a dataset lists for a sample; empty if it lists none."""
    return next(iter(listed_files(dataset, index)), "")


def stamp(path: str | None) -> tuple[int | None, int | None]:
    """Returns size and time of change, in nanoseconds, of a file; None for both if there is none."""
    try:
        status = os.stat(path) if path else None  # noqa: PTH116 (paths may be anything)
    except (OSError, ValueError):
        status = None
    return (None, None) if status is None else (status.st_size, status.st_mtime_ns)


def _listed(dataset: Any, index: int) -> list[str]:
    if isinstance(dataset, Subset):
        return _listed(dataset.dataset, int(dataset.indices[index]))
    if isinstance(dataset, ConcatDataset):
        for part in dataset.datasets:
            if index < len(part):  # type: ignore[arg-type]
                return _listed(part, index)
            index -= len(part)  # type: ignore[arg-type]
    if isinstance(dataset, Columns):
        return [path for _, column in dataset._leaves for path in _listed(column, index)]
    for name in _LISTS:
        listed = getattr(dataset, "__dict__", {}).get(name)
        if isinstance(listed, list | tuple) and len(listed) == len(dataset):
            entry = listed[index]
            first = entry[0] if isinstance(entry, tuple | list) and entry else entry
            return [str(first)] if name == "_paths" or _is_path(first) else []
    return []


def _is_path(entry: Any) -> bool:
    """Returns true if the entry of a list may be a path, rather than the text of a document."""
    if isinstance(entry, str):
        return len(entry) <= _LONGEST_PATH and _NAMES_FILE.search(entry) is not None
    return isinstance(entry, os.PathLike)
