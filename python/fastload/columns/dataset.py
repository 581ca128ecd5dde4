"""`Dataset`: a structure of columns.

The structure is that of a sample, with a column in place of each value. Refuses structures that torch's
collation would change in ways that depend on the sample (mappings and sequences of other types), and columns of
different lengths.
"""

import itertools
from typing import Any

from fastload import _lib
from fastload.columns.column import Column, Native
from fastload.columns.structure import fill, leaves


class Dataset(Native):
    """A map-style dataset whose samples are made natively.

    Args:
        structure: A column, or an exact tuple, list, dict or named tuple of structures.

    Raises:
        TypeError: A leaf that is not a column, or a container of another type.
        ValueError: Columns of different lengths, or none at all.

    Examples:
        >>> images = Image(paths, [Resize(256), CenterCrop(224), ToTensor()])
        >>> dataset = Dataset({"image": images, "label": Rows(labels)})
        >>> dataset[0]["image"].shape
        torch.Size([3, 224, 224])
    """

    def __init__(self, structure: Any) -> None:
        # a copy, which the caller cannot change, with each column of several fields as a dict of columns
        self._structure = fill(structure, itertools.starmap(_expanded, leaves(structure)))
        self._leaves = list(leaves(self._structure))
        if not self._leaves:
            msg = "a dataset needs at least one column, found none in its structure"
            raise ValueError(msg)
        _check_lengths(self._leaves)
        forms = (column._form for _, column in self._leaves)
        self._numbered = fill(self._structure, itertools.starmap(_lib.Leaf, enumerate(forms)))
        self._made = self._make()

    def _make(self) -> _lib.Program:
        return _lib.Program([column._core for _, column in self._leaves], self._numbered)

    def __len__(self) -> int:
        """Returns the number of samples."""
        return len(self._program)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the structure, and what a subclass added; columns open again."""
        own = {"_structure", "_leaves", "_numbered", "_made"}
        added = {name: value for name, value in vars(self).items() if name not in own}
        return _restore, (type(self), self._structure), added or None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._structure!r})"


def _restore(kind: type[Dataset], structure: Any) -> Dataset:
    """Makes a dataset without calling a subclass's constructor."""
    dataset = kind.__new__(kind)
    Dataset.__init__(dataset, structure)
    return dataset


def _expanded(path: str, column: Any) -> Any:
    """Returns a column, or its fields as a dict of columns.

    Raises:
        TypeError: It is not a column.
    """
    if isinstance(column, Column):
        return column if column._parts is None else column._parts
    place = f"dataset{path} is" if path else "the structure of a dataset is"
    kind = type(column)
    hint = (
        "use an exact tuple, list, dict or named tuple"
        if isinstance(column, tuple | list | dict)
        else "wrap data in fastload.columns.Rows"
    )
    msg = f"{place} a {kind.__module__}.{kind.__qualname__}, not a column; {hint}"
    raise TypeError(msg)


def _check_lengths(leaves: list[tuple[str, Column]]) -> None:
    (first_path, first), *others = leaves
    for path, column in others:
        if len(column) != len(first):
            msg = (
                f"columns of different lengths: dataset{first_path} has {len(first)} samples, "
                f"dataset{path} has {len(column)}"
            )
            raise ValueError(msg)
