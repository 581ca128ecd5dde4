"""Transforms of timm: what its `create_transform` puts around torchvision's."""

from typing import Any

from fastload import registry
from fastload.images.chain import Chain
from fastload.lowering.torchvision_random import resized_crop

__all__: list[str] = []

_TRANSFORMS = "timm.data.transforms"


@registry.transform(f"{_TRANSFORMS}.RandomResizedCropAndInterpolation", notes="Pillow images")
def _random_resized_crop(transform: Any, chain: Chain) -> None:
    several = transform.interpolation
    several = several if isinstance(several, tuple | list) else (several,)
    kernels = [chain.kernel(each, antialias=True, version=1) for each in several]
    resized_crop(transform, chain, kernels)


@registry.transform(
    f"{_TRANSFORMS}.MaybeToTensor",
    f"{_TRANSFORMS}.MaybePILToTensor",
    f"{_TRANSFORMS}.ToTensor",
    notes="",
)
def _each_element(transform: Any, chain: Chain) -> None:
    chain.map(transform)
