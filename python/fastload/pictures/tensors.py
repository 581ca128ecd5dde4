"""What torchvision makes a tensor of an image by: `to_tensor` and `pil_to_tensor`, of images that wait.

The numbers are written where the pixels are made, without Pillow's image in between.
"""

import functools
import sys
from typing import Any

import torch

from fastload import transforms
from fastload.images.operations import Output
from fastload.pictures.swap import Swap
from fastload.pictures.waiting import Waiting

__all__ = ["install", "pil_to_tensor", "to_tensor", "uninstall"]

_swaps: dict[str, Swap] = {}


def install() -> bool:
    """Has torchvision's functions ask an image that waits; returns whether torchvision is imported."""
    functional = sys.modules.get("torchvision.transforms.functional")
    if functional is None:
        return False
    if not _swaps:
        _swaps["to_tensor"] = Swap(functional.to_tensor, _to_tensor_stub)
        _swaps["pil_to_tensor"] = Swap(functional.pil_to_tensor, _pil_to_tensor_stub)
    for swap in _swaps.values():
        swap.install()
    return True


def uninstall() -> None:
    """Has torchvision's functions be its own again."""
    for swap in _swaps.values():
        swap.uninstall()


def to_tensor(pic: Any) -> torch.Tensor:
    """Returns `(C, H, W)` of the default dtype, from 0 to 1."""
    made = _shared(pic) if isinstance(pic, Waiting) else None
    return _swaps["to_tensor"].original(pic) if made is None else made


def pil_to_tensor(pic: Any) -> torch.Tensor:
    """Returns `(C, H, W)` of uint8, a view of `(H, W, C)`."""
    made = pic.tensor(("bytes", "hwc")) if isinstance(pic, Waiting) else None
    if made is None:
        return _swaps["pil_to_tensor"].original(pic)  # type: ignore[no-any-return]
    return made.permute(2, 0, 1)


def _shared(image: Waiting) -> torch.Tensor | None:
    output = _shares(torch.get_default_dtype())
    if image.mode != "L":
        return image.tensor(output)
    made = image.tensor((output[0], "hwc", *output[2:]))
    return None if made is None else made.permute(2, 0, 1)  # its strides are torchvision's


@functools.cache
def _shares(dtype: torch.dtype) -> Output:
    """Returns what writes bytes as `to_tensor` does."""
    return transforms.table(torch.arange(256, dtype=torch.uint8).to(dtype).div(255).reshape(1, 256))


def _to_tensor_stub(pic):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.tensors import to_tensor

    return to_tensor(pic)


def _pil_to_tensor_stub(pic):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.tensors import pil_to_tensor

    return pil_to_tensor(pic)
