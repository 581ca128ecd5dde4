"""Gaussian blurs of a random strength, with weights of torch's making."""

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["STRENGTHS", "random_gaussian_blur"]

STRENGTHS = 1024
"""Number of strengths to draw from: the middles of as many equal parts of their range."""


def random_gaussian_blur(
    size: tuple[int, int],
    sigma: tuple[float, float],
    weights: Callable[[int, float], torch.Tensor],
) -> tuple[Any, ...]:
    """Returns the operation of `_lib.Image` that `GaussianBlur(size, sigma)` stands for.

    torch's exponential function gives other last bits elsewhere, so that the weights of each strength
    are made beforehand.

    Args:
        size: Width and height of the kernel.
        sigma: The least and the largest standard deviation, in pixels.
        weights: Makes the weights of one dimension from its size and a standard deviation: the
            function of the user's version of the transform.
    """
    least, most = torch.tensor(sigma, dtype=torch.float32)
    count = 1 if least == most else STRENGTHS
    middles = (torch.arange(count) + 0.5) / count
    sigmas = torch.lerp(least, most, middles).tolist()
    sides = [[weights(side, sigma).tolist() for sigma in sigmas] for side in size]
    return "random_gaussian_blur", list(zip(*sides, strict=True))
