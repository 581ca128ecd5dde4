"""The `transform` of a column: one transform or several, from `fastload.transforms` or torchvision."""

from typing import Any

from fastload import transforms
from fastload.images.chain import Chain, follow

__all__ = ["chain", "listed"]


def listed(transform: Any) -> list[Any]:
    """Returns None, one transform or several as a list."""
    if transform is None:
        return []
    return list(transform) if isinstance(transform, list | tuple) else [transform]


def chain(several: list[Any]) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Returns the operations and the output of `_lib.Image` that transforms stand for."""
    for each in several:
        if isinstance(each, type):
            msg = f"transform takes an instance, found the class {each.__qualname__}; write {each.__qualname__}()"
            raise TypeError(msg)
    if all(isinstance(each, transforms.Transform) for each in several):
        return transforms.chain(several)
    steps = Chain(3, [])
    _, stop = follow(steps, several)
    if stop is not None:
        msg = f"transform cannot be native: {stop}"
        raise TypeError(msg)
    return steps.ops, steps.output()
