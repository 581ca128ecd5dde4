"""What torchvision makes a tensor of an image by: `to_tensor` and `pil_to_tensor`, of images that wait.

The numbers are written where the pixels are made, without Pillow's image in between.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from fastload import transforms
from fastload.operations import Output
from fastload.pictures.waiting import Waiting

__all__ = ["install"]

_V1 = "torchvision.transforms.functional"
_V2 = "torchvision.transforms.v2.functional"

_exchanged: list[str] = []


def install() -> bool:
    """Exchanges the functions in torchvision's modules; returns whether these are imported."""
    first = sys.modules.get(_V1)
    if first is None or _exchanged:
        return first is not None
    _exchange("to_tensor", _to_tensor, first)
    seconds = (sys.modules.get(_V2), sys.modules.get(f"{_V2}._type_conversion"))
    _exchange("pil_to_tensor", _pil_to_tensor, first, *filter(None, seconds))
    return True


def _exchange(name: str, waiting: Callable[[Waiting], Any], *modules: Any) -> None:
    torchvisions = getattr(modules[0], name)

    @functools.wraps(torchvisions)
    def converted(pic: Any) -> Any:
        made = waiting(pic) if isinstance(pic, Waiting) else None
        return torchvisions(pic) if made is None else made

    _exchanged.append(name)
    for module in modules:
        if getattr(module, name) is torchvisions:
            setattr(module, name, converted)


def _to_tensor(image: Waiting) -> torch.Tensor | None:
    """`(C, H, W)` of the default dtype, from 0 to 1."""
    output = _shares(torch.get_default_dtype())
    if image.mode != "L":
        return image.tensor(output)
    made = image.tensor((output[0], "hwc", *output[2:]))
    return None if made is None else made.permute(2, 0, 1)  # its strides are torchvision's


def _pil_to_tensor(image: Waiting) -> torch.Tensor | None:
    """`(C, H, W)` of uint8, a view of `(H, W, C)`."""
    made = image.tensor(("bytes", "hwc"))
    return None if made is None else made.permute(2, 0, 1)


@functools.cache
def _shares(dtype: torch.dtype) -> Output:
    """Returns what writes bytes as `to_tensor` does."""
    return transforms.table(torch.arange(256, dtype=torch.uint8).to(dtype).div(255).reshape(1, 256))
