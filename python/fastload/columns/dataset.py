"""`Dataset`: a structure of columns.

The structure is that of a sample, with a column in place of each value. Refuses structures that torch's
collation would change in ways that depend on the sample (mappings and sequences of other types), and columns of
different lengths.
"""

import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data

from fastload import _lib
from fastload.columns.column import Column, draw_sample

__all__ = ["Dataset"]


class Dataset(torch.utils.data.Dataset[Any]):
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
        structure = _expanded(structure)
        leaves = list(_leaves(structure, ""))
        if not leaves:
            msg = "a dataset needs at least one column, found none in its structure"
            raise ValueError(msg)
        _check_lengths(leaves)
        self._structure = _fill(
            structure, (column for _, column in leaves)
        )  # a copy, which the caller cannot change
        self._leaves = leaves
        self._containers = frozenset(_container_types(structure))
        self._numbered = _fill(
            structure, (_lib.Leaf(place, column._form) for place, (_, column) in enumerate(leaves))
        )
        self._made = self._make()

    def _make(self) -> _lib.Program:
        return _lib.Program([column._core for _, column in self._leaves], self._numbered)

    @property
    def _program(self) -> _lib.Program:
        if self._made.moved():
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        """Returns the number of samples."""
        return len(self._program)

    def __getitem__(self, index: int) -> Any:
        """Returns one sample: the structure, with a tensor in place of each column.

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: A file cannot be read or decoded.
        """
        return draw_sample(self._program, operator.index(index))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the structure, and what a subclass added; columns open again."""
        own = {"_structure", "_leaves", "_containers", "_numbered", "_made"}
        added = {name: value for name, value in vars(self).items() if name not in own}
        return _restore, (type(self), self._structure), added or None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._structure!r})"


def _restore(kind: type[Dataset], structure: Any) -> Dataset:
    """Makes a dataset without calling a subclass's constructor."""
    dataset = kind.__new__(kind)
    Dataset.__init__(dataset, structure)
    return dataset


def _expanded(structure: Any) -> Any:
    """Returns a structure with each column of several fields replaced by a dict of columns."""
    if isinstance(structure, Column):
        return structure if structure._parts is None else structure._parts
    if type(structure) is dict:
        return {key: _expanded(part) for key, part in structure.items()}
    if type(structure) in (tuple, list):
        return type(structure)(map(_expanded, structure))
    return (
        type(structure)._make(map(_expanded, structure))
        if _is_named_tuple(structure)
        else structure
    )


def _container_types(structure: Any) -> set[type]:
    """Returns the types of the containers in a structure."""
    if isinstance(structure, Column):
        return set()
    return {type(structure)}.union(*(_container_types(part) for _, part in _parts(structure)))


def _leaves(structure: Any, path: str) -> Iterator[tuple[str, Column]]:
    """Yields each column with its path, in the order of the sample's values."""
    if isinstance(structure, Column):
        yield path, structure
    elif type(structure) in (tuple, list, dict) or _is_named_tuple(structure):
        for step, part in _parts(structure):
            yield from _leaves(part, path + step)
    else:
        place = f"dataset{path} is" if path else "the structure of a dataset is"
        kind = type(structure)
        hint = (
            "wrap data in fastload.columns.Rows"
            if not isinstance(structure, tuple | list | dict)
            else "use an exact tuple, list, dict or named tuple"
        )
        msg = f"{place} a {kind.__module__}.{kind.__qualname__}, not a column; {hint}"
        raise TypeError(msg)


def _parts(structure: Any) -> Iterator[tuple[str, Any]]:
    """Yields the elements of a container, each with the step of its path."""
    if isinstance(structure, dict):
        yield from ((f"[{key!r}]", part) for key, part in structure.items())
    elif _is_named_tuple(structure):
        yield from ((f".{n}", part) for n, part in zip(structure._fields, structure, strict=True))
    else:
        yield from ((f"[{place}]", part) for place, part in enumerate(structure))


def _fill(structure: Any, values: Iterator[Any]) -> Any:
    """Returns a new structure with a value in place of each column, in the order of `_leaves`."""
    if isinstance(structure, Column):
        return next(values)
    if isinstance(structure, dict):
        return {key: _fill(part, values) for key, part in structure.items()}
    parts = [_fill(part, values) for part in structure]
    if _is_named_tuple(structure):
        return type(structure)._make(parts)
    return type(structure)(parts)


def _is_named_tuple(structure: Any) -> bool:
    return isinstance(structure, tuple) and hasattr(type(structure), "_fields")


def _check_lengths(leaves: list[tuple[str, Column]]) -> None:
    (first_path, first), *others = leaves
    for path, column in others:
        if len(column) != len(first):
            msg = (
                f"columns of different lengths: dataset{first_path} has {len(first)} samples, "
                f"dataset{path} has {len(column)}"
            )
            raise ValueError(msg)
