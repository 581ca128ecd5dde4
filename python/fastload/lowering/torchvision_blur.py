"""torchvision's Gaussian blur, v1 and v2.

Its pixels depend on the order in which a convolution adds, and its weights on an exponential function;
both are torch's own. So the weights are made by torchvision, for evenly spaced strengths in place of any
in the range; and the blur is native only where it gives torchvision's bytes in this process.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from fastload import registry
from fastload.images import kernels
from fastload.images.chain import Chain
from fastload.images.operations import Op
from fastload.registry import NotNative

__all__ = ["STRENGTHS", "random_gaussian_blur"]

STRENGTHS = 1024
"""Number of strengths to draw from: the middles of as many equal parts of their range."""

_PLACES = {
    "torchvision.transforms.transforms": "torchvision.transforms._functional_tensor",
    "torchvision.transforms.v2._misc": "torchvision.transforms.v2.functional._misc",
}


@registry.transform(
    *(f"{place}.GaussianBlur" for place in _PLACES),
    notes=f"Pillow images of mode RGB, on CPUs with AVX2; sigma is one of {STRENGTHS} "
    "evenly spaced values of its range",
)
def _gaussian_blur(transform: Any, chain: Chain) -> None:
    if not chain.on_pillow or chain.channels != 3:
        msg = "it blurs a tensor, or a grey image"
        raise NotNative(msg, "put it where the image is a Pillow image of mode RGB")
    size = int(transform.kernel_size[0]), int(transform.kernel_size[-1])
    low, high = map(float, transform.sigma)
    place = _PLACES[type(transform).__module__]
    if not _is_exact(place, size, bool(torch._C._get_mkldnn_enabled())):
        msg = "torch convolves in another order on this machine than native code does"
        raise NotNative(msg, "take it out")
    chain.add(_op(place, size, low, high), least=chain.least)
    chain.random = chain.random or low < high


@functools.lru_cache(maxsize=16)
def _op(place: str, size: tuple[int, int], low: float, high: float) -> Op:
    """Returns the operation, with torchvision's weights."""
    make: Any = getattr(sys.modules.get(place), "_get_gaussian_kernel1d", None)

    def weights(side: int, sigma: float) -> Any:
        return make(side, sigma, torch.float32, torch.device("cpu"))

    try:
        return random_gaussian_blur(size, (low, high), weights)
    except TypeError as error:
        msg = "this version of torchvision makes its weights in a way that is not known"
        raise NotNative(msg, "take it out") from error


def random_gaussian_blur(
    size: tuple[int, int],
    sigma: tuple[float, float],
    weights: Callable[[int, float], torch.Tensor],
) -> Op:
    """Returns the operation that `GaussianBlur(size, sigma)` stands for.

    torch's exponential function gives other last bits elsewhere, so that the weights of each strength
    are made beforehand.

    Args:
        size: Width and height of the kernel.
        sigma: The least and the largest standard deviation, in pixels.
        weights: Makes the weights of one dimension from its size and a standard deviation: the
            function of the user's version of the transform.
    """
    least, most = torch.tensor(sigma, dtype=torch.float32, device="cpu")
    count = 1 if least == most else STRENGTHS
    middles = (torch.arange(count, device="cpu") + 0.5) / count
    sigmas = torch.lerp(least, most, middles).tolist()
    sides = [[weights(side, sigma).tolist() for sigma in sigmas] for side in size]
    return "random_gaussian_blur", list(zip(*sides, strict=True))


@functools.lru_cache(maxsize=64)
def _is_exact(place: str, size: tuple[int, int], *_switches: Any) -> bool:
    """Returns true if the native blur of noise is torchvision's, under torch's switches of now."""
    import torchvision.transforms.functional as v1  # type: ignore[import-untyped]
    import torchvision.transforms.v2.functional as v2  # type: ignore[import-untyped]

    height, width = size[1] + 37, size[0] + 53
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 256, (3, height, width), generator=generator, device="cpu")
    image = noise.to(torch.uint8)
    functional = v2 if ".v2." in place else v1
    theirs = functional.gaussian_blur(v1.to_pil_image(image), list(size), [0.8, 0.8])
    try:
        ours = kernels.carried_out(_op(place, size, 0.8, 0.8), image)
    except ValueError:
        return False
    return torch.equal(ours, v1.pil_to_tensor(theirs))
