"""Lowering: translates existing datasets to columns of the native core.

`lower` reads a dataset of a recognised class and returns the program that makes its samples, bit for bit; steps
without native code remain as Python calls at the end. Each library has a file with one small function per
class; `registry` finds them, `structure` follows datasets that hold others. Nothing here changes a dataset or
imports a library.
"""

from dataclasses import dataclass
from typing import Any

from fastload import _lib
from fastload.columns.structure import containers, fill, leaves
from fastload.lowering import (  # noqa: F401 (they register what they lower)
    huggingface,
    reading,
    timm,
    torch_datasets,
    torchvision_blur,
    torchvision_containers,
    torchvision_datasets,
    torchvision_random,
    torchvision_transforms,
)
from fastload.lowering.leaf import Leaf
from fastload.lowering.memo import Memo
from fastload.lowering.structure import has_own_code, structure
from fastload.registry import NotNative

__all__ = ["Leaf", "Lowered", "Memo", "NotNative", "has_own_code", "lower", "structure"]


@dataclass(frozen=True)
class Lowered:
    """The native form of a dataset.

    Attributes:
        sample: The structure of a sample, with a `Leaf` for each value.
        leaves: Each leaf with its path.
        program: The program that makes the samples, up to the Python calls at the end of leaves.
    """

    sample: Any
    leaves: list[tuple[str, Leaf]]
    program: _lib.Program

    @classmethod
    def of(cls, sample: Any) -> "Lowered":
        """Returns the native form of what `structure` returns.

        Raises:
            NotNative: Columns of different lengths, or a structure that has other containers.
        """
        each = list(leaves(sample))
        places = (_lib.Leaf(place, leaf.form) for place, (_, leaf) in enumerate(each))
        template = fill(sample, places)
        try:
            program = _lib.Program([leaf.native for _, leaf in each], template)
        except (TypeError, ValueError) as error:
            raise NotNative(str(error)) from error
        return cls(sample, each, program)

    @property
    def containers(self) -> set[type]:
        """The types of the containers in a sample."""
        return containers(self.sample)


def lower(dataset: Any, memo: Memo | None = None) -> Lowered:
    """Returns the native form of a dataset.

    Args:
        dataset: Anything.
        memo: The cache of earlier calls; drops entries that are no longer used.

    Raises:
        NotNative: Python makes its samples; carries the reason.
    """
    memo = memo or Memo()
    sample = structure(dataset, memo)
    memo.sweep()
    return Lowered.of(sample)
