"""Which native kernel makes the pixels that torch and torchvision make here.

Owns what must hold for torch's own arithmetic on tensors of bytes, which depends on the CPU and on
`ATEN_CPU_CAPABILITY`. Refuses by returning None: then the original code is to be asked.
"""

import functools
import platform

import torch

from fastload import _lib
from fastload.images.operations import Op
from fastload.memory import layout

__all__ = ["carried_out", "torch_kernel", "torch_luma"]

_SCALED = ("bilinear", "bicubic")

_NOISE = 61, 83
_SIZES = (29, 40), (75, 101), (90, 33)


def torch_kernel(interpolation: str, *, antialias: bool = True) -> tuple[str, str] | None:
    """Returns the kernel of `_lib.Image` that scales as torchvision's v2 scales uint8 tensors.

    The pixels do not depend on the tensor's memory layout, nor on the number of threads. torchvision
    leaves an image that has the wanted size already as it is, and so does the native operation.

    Args:
        interpolation: The value of a `torchvision.transforms.InterpolationMode`.
        antialias: Of `torchvision.transforms.v2.functional.resize`.

    Returns:
        None where torch goes another way: without AVX2 through single precision (bilinear), or
        through a routine that is wrong for results one pixel wide; on other architectures than x86-64,
        where the results are unverified; for modes that torchvision has for Pillow alone; and
        where this torchvision scales noise to other bytes than the kernel (before 0.22, for one, it
        went through single precision on CPUs with AVX512).
    """
    if interpolation != "nearest" and not _has_avx2():
        return None
    if interpolation in _SCALED:
        kernel = "torch" if antialias else "torch_aliased", interpolation
    elif interpolation in ("nearest", "nearest-exact") or (
        interpolation == "lanczos" and antialias
    ):
        kernel = "torch", interpolation
    else:
        return None
    capability = torch.backends.cpu.get_cpu_capability()
    return kernel if _is_exact(kernel, capability) else None


def torch_luma(version: int) -> str | None:
    """Returns which sum of `_lib.Image`'s grayscale makes the grey of torchvision on uint8 tensors.

    Args:
        version: 1 for `torchvision.transforms`, 2 for `torchvision.transforms.v2`.

    Returns:
        `"torch"`: each product is rounded, then each sum. `"torch_fused"`: only sums are; v2 adds
        with `Tensor.add_(alpha=)`, which AVX2 does in one instruction. None: not known.
    """
    if version == 1:
        return "torch"
    return "torch_fused" if _has_avx2() else None


def carried_out(op: Op, image: torch.Tensor) -> torch.Tensor:
    """Returns the native result of an operation for one image, to be compared with a library's.

    Args:
        op: The operation.
        image: `(3, H, W)` bytes; so is the result.

    Raises:
        ValueError: The operation is refused.
    """
    rows = _lib.Rows(*layout.of_tensor(image.permute(1, 2, 0).contiguous()[None]))
    column = _lib.Image(rows, "RGB", [op], ("bytes", "chw"))
    made: torch.Tensor = _lib.Program([column], 0).sample(0)
    return made


def _has_avx2() -> bool:
    """Returns true if torch runs the routines that it compiled for AVX2."""
    return platform.machine() in ("x86_64", "AMD64") and (
        torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    )


@functools.cache
def _is_exact(kernel: tuple[str, str], _capability: str) -> bool:
    """Returns true if the kernel scales noise to the bytes of the torchvision that is installed."""
    try:
        from torchvision.transforms import (  # type: ignore[import-untyped]
            InterpolationMode,
        )
        from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]
    except ImportError:
        return False
    library, interpolation = kernel
    mode, antialias = InterpolationMode(interpolation), library == "torch"
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 256, (3, *_NOISE), generator=generator, device="cpu")
    image = noise.to(torch.uint8)
    for size in _SIZES:
        try:
            theirs = functional.resize(image, list(size), interpolation=mode, antialias=antialias)
        except (NotImplementedError, RuntimeError):
            return False
        if not torch.equal(carried_out(("resize", size, None, kernel), image), theirs):
            return False
    return True
