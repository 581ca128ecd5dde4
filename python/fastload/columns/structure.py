"""Structures of samples: exact tuples, lists and dicts, and named tuples, whose parts are structures or leaves.

Anything else is a leaf.
"""

from collections.abc import Iterator
from typing import Any


def leaves(structure: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each leaf with its path, in the order of the sample's values."""
    if not _is_container(structure):
        yield path, structure
    elif isinstance(structure, dict):
        for key, part in structure.items():
            yield from leaves(part, f"{path}[{key!r}]")
    else:
        names = getattr(type(structure), "_fields", None)
        for place, part in enumerate(structure):
            yield from leaves(part, f"{path}.{names[place]}" if names else f"{path}[{place}]")


def fill(structure: Any, values: Iterator[Any]) -> Any:
    """Returns a new structure with a value in place of each leaf, in the order of `leaves`."""
    if not _is_container(structure):
        return next(values)
    if isinstance(structure, dict):
        return {key: fill(part, values) for key, part in structure.items()}
    return rebuild(structure, [fill(part, values) for part in structure])


def rebuild(container: Any, parts: list[Any]) -> Any:
    """Returns a tuple, list or named tuple of `parts`, of the type of `container`."""
    kind = type(container)
    return kind._make(parts) if hasattr(kind, "_fields") else kind(parts)


def containers(structure: Any) -> set[type]:
    """Returns the types of the containers in a structure."""
    if not _is_container(structure):
        return set()
    parts = structure.values() if isinstance(structure, dict) else structure
    return {type(structure)}.union(*map(containers, parts))


def _is_container(part: Any) -> bool:
    kind = type(part)
    return kind in (tuple, list, dict) or (isinstance(part, tuple) and hasattr(kind, "_fields"))
