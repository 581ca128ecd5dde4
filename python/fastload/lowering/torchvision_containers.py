"""Transforms that hold transforms."""

from typing import Any

from fastload import registry
from fastload.images.chain import Chain, lower
from fastload.images.operations import Op
from fastload.lowering.torchvision_transforms import both
from fastload.registry import NotNative

__all__ = ["flat", "steps"]

_IN_ORDER = (
    "torchvision.transforms.transforms.Compose",
    "torchvision.transforms.v2._container.Compose",
    "torch.nn.modules.container.Sequential",
)


def steps(transform: Any) -> list[Any] | None:
    """Returns the transforms that one stands for, one after the other; None if it stands for itself.

    Raises:
        NotNative: The methods of its class were replaced.
    """
    entry = registry.find("transform", transform)
    if entry is None or entry.path not in _IN_ORDER:
        return None
    return list(transform if entry.path.endswith("Sequential") else transform.transforms)


def flat(transform: Any) -> list[Any]:
    """Returns the transforms that are called one after the other."""
    several = steps(transform)
    return [transform] if several is None else [step for each in several for step in flat(each)]


@registry.transform(*_IN_ORDER, notes="also nested; what is before the first Python step is native")
def _compose(transform: Any, chain: Chain) -> None:
    for each in steps(transform) or ():
        lower(each, chain)


@registry.transform(
    *both("_container", "RandomApply"), notes="of transforms that keep a Pillow image one"
)
def _random_apply(transform: Any, chain: Chain) -> None:
    ops = [op for each in transform.transforms for op in _part(each, chain)]
    chain.add(("apply", float(transform.p), ops))
    chain.random = True


@registry.transform(
    *both("_container", "RandomChoice"), notes="of transforms that keep a Pillow image one"
)
def _random_choice(transform: Any, chain: Chain) -> None:
    parts = [_part(each, chain) for each in transform.transforms]
    weights = transform.p or [1.0] * len(parts)
    chain.add(("choice", [float(weight) for weight in weights], parts))
    chain.random = True


@registry.transform(
    *both("_container", "RandomOrder"), notes="of transforms that keep a Pillow image one"
)
def _random_order(transform: Any, chain: Chain) -> None:
    parts = [_part(each, chain) for each in transform.transforms]
    ops = [part[0] if len(part) == 1 else ("apply", 1.0, part) for part in parts if part]
    chain.add(("order", ops))
    chain.random = True


def _part(transform: Any, chain: Chain) -> list[Op]:
    """Returns the operations of a transform that may or may not be made, and keeps what kind of image it is."""
    part = chain.part()
    lower(transform, part)
    if part.values is not chain.values or part.channels != chain.channels or part.sealed:
        name = registry.name(transform)
        msg = f"{name} changes the type or the channels of the image inside a random choice"
        raise NotNative(msg, "move it before or after")
    return part.ops
