"""The functions of torchvision that make tensors, for images that wait: `to_tensor`, `pil_to_tensor`, `Compose`.

The numbers are written where the pixels are made, without Pillow's image in between.
"""

import functools
import operator
import sys
from typing import Any

import torch

from fastload import transforms
from fastload.images.operations import Output
from fastload.machine.libraries import is_of_module
from fastload.pictures.chains import ending
from fastload.pictures.swap import Swap
from fastload.pictures.waiting import Waiting, tensor

__all__ = [
    "COMPOSE",
    "COMPOSE_V2",
    "composed",
    "install",
    "pil_to_tensor",
    "to_tensor",
    "uninstall",
]

_TO_TENSOR = "torchvision.transforms.functional", "to_tensor"
_PIL_TO_TENSOR = "torchvision.transforms.functional", "pil_to_tensor"
COMPOSE = "torchvision.transforms.transforms", "Compose.__call__"
COMPOSE_V2 = "torchvision.transforms.v2._container", "Compose.forward"

_swaps: dict[tuple[str, str], Swap] = {}


def install() -> None:
    """Has torchvision's functions ask an image that waits, as far as torchvision is imported."""
    for name, stub in _STUBS.items():
        module = sys.modules.get(name[0])
        if module is not None and name not in _swaps:
            function = operator.attrgetter(name[1])(module)
            if is_of_module(function, vars(module)):
                _swaps[name] = Swap(function, stub)
    for swap in _swaps.values():
        swap.install()


def uninstall() -> None:
    """Has torchvision's functions be its own again."""
    for swap in _swaps.values():
        swap.uninstall()


def to_tensor(pic: Any) -> torch.Tensor:
    """Returns `(C, H, W)` of the default dtype, from 0 to 1."""
    made = None
    if isinstance(pic, Waiting):
        output = _shares(torch.get_default_dtype())
        if pic.mode == "L" or pic.size == (1, 1):  # its strides are torchvision's
            output = (output[0], "hwc", *output[2:])
        made = tensor(pic, output)
    return _swaps[_TO_TENSOR].original(pic) if made is None else made


def pil_to_tensor(pic: Any) -> torch.Tensor:
    """Returns `(C, H, W)` of uint8, a view of `(H, W, C)`."""
    # torchvision copies to a default device
    waits = isinstance(pic, Waiting) and not torch._C._len_torch_function_stack()
    made = tensor(pic, ("bytes", "hwc")) if waits else None
    return _swaps[_PIL_TO_TENSOR].original(pic) if made is None else made


def composed(name: tuple[str, str], compose: Any, *inputs: Any) -> Any:
    """Returns the result of a `Compose`, by the method of this name."""
    waits = len(inputs) == 1 and isinstance(inputs[0], Waiting)
    return _swaps[name].original(ending(compose) if waits else compose, *inputs)


@functools.cache
def _shares(dtype: torch.dtype) -> Output:
    """Returns the output that writes bytes as `to_tensor` does."""
    levels = torch.arange(256, dtype=torch.uint8, device="cpu")
    return transforms.table(levels.to(dtype).div(255).reshape(1, 256))


def _to_tensor_stub(pic):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.tensors import to_tensor

    return to_tensor(pic)


def _pil_to_tensor_stub(pic):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.tensors import pil_to_tensor

    return pil_to_tensor(pic)


def _composed_stub(self, img):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures import tensors

    return tensors.composed(tensors.COMPOSE, self, img)


def _composed_v2_stub(self, *inputs):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002, ANN202
    from fastload.pictures import tensors

    return tensors.composed(tensors.COMPOSE_V2, self, *inputs)


_STUBS: dict[tuple[str, str], Any] = {
    _TO_TENSOR: _to_tensor_stub,
    _PIL_TO_TENSOR: _pil_to_tensor_stub,
    COMPOSE: _composed_stub,
    COMPOSE_V2: _composed_v2_stub,
}
