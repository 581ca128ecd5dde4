"""torchvision's `decode_image` as the loader of a folder: images are tensors of bytes from the first.

Owns what the mode means for the transforms. Files decoded unchanged have one channel or three, and one
native chain must be right for both: transforms are followed as far as it is.
"""

import functools
import sys
from dataclasses import dataclass
from typing import Any

import torch

from fastload import registry, transforms
from fastload.images.chain import Chain, follow, on_tensor
from fastload.registry import NotNative

__all__ = ["Decoding", "Followed", "decoding", "follow_decoded", "followed"]

_IMAGE = "torchvision.io.image"
_CHANNELS = {"RGB": 3, "GRAY": 1, "UNCHANGED": None}
_BROADCAST = "output with shape"
"""The beginning of torch's error for arithmetic in place that needs more channels; native code raises the same."""


@dataclass(frozen=True)
class Decoding:
    """The parameters with which files are decoded.

    Attributes:
        mode: The name of an `ImageReadMode`.
        upright: True if the orientation of EXIF is applied.
    """

    mode: str
    upright: bool


@dataclass(frozen=True)
class Followed:
    """Transforms that were followed from the first.

    Attributes:
        chain: The operations on an image.
        mode: The mode that it is decoded to, as `_lib.Image` takes it.
        output: The output of `_lib.Image`.
        done: Number of transforms in the chain.
        stop: The refusal of the next one.
    """

    chain: Chain
    mode: str
    output: tuple[Any, ...]
    done: int
    stop: NotNative | None


def decoding(loader: Any) -> Decoding | None:
    """Returns how a loader decodes that is `decode_image` or `read_image`; None if it is neither.

    Raises:
        NotNative: It is, with arguments that are not known here.
    """
    function, given = loader, {}
    if type(loader) is functools.partial and not loader.args:
        function, given = loader.func, dict(loader.keywords)
    module = sys.modules.get(_IMAGE)
    known = [getattr(module, name, None) for name in ("decode_image", "read_image")]
    if getattr(function, "__globals__", None) is not vars(module or sys) or function not in known:
        return None
    mode = given.pop("mode", "UNCHANGED")
    name = mode.upper() if isinstance(mode, str) else getattr(mode, "name", None)
    upright = given.pop("apply_exif_orientation", False)
    if name not in _CHANNELS or type(upright) is not bool or given:
        msg = f"its loader calls {function.__name__} with {loader.keywords}"
        raise NotNative(msg, "decode to RGB, GRAY or UNCHANGED")
    return Decoding(name, upright)


def followed(chain: Chain, flat: list[Any], mode: str) -> Followed:
    """Follows transforms of images that are decoded to a mode, up to the first that stops them."""
    done, stop = follow(chain, flat)
    return Followed(chain, mode, chain.output(), done, stop)


def follow_decoded(how: Decoding, flat: list[Any]) -> Followed:
    """Follows transforms of decoded images up to the first that stops them."""
    prefix = "torchvision upright " if how.upright else "torchvision "
    channels = _CHANNELS[how.mode]
    if channels is not None:
        return followed(on_tensor(channels), flat, prefix + how.mode)
    done, stop = follow(on_tensor(3), flat)
    while True:
        chain, grey = on_tensor(3), on_tensor(1, spreads=True)
        follow(chain, flat[:done])
        reached, _ = follow(grey, flat[:done])
        mode = _mode(chain, grey, flat[reached:done])
        if mode is not None:
            output = chain.output() if reached < done else _output(chain, grey)
            return Followed(chain, prefix + mode, output, done, stop)
        done -= 1  # with none at all, images of either kind are their own bytes
        msg = f"{registry.name(flat[done])} treats grey images differently from RGB images"
        stop = NotNative(msg, 'decode to RGB: functools.partial(decode_image, mode="RGB")')


def _mode(chain: Chain, grey: Chain, rest: list[Any]) -> str | None:
    """Returns how files are decoded so that one native chain is right for RGB and grey.

    Args:
        chain: That of RGB images.
        grey: That of grey ones, as far as it goes.
        rest: The transforms that are not in it.

    Returns:
        None if there is no such way.
    """
    mixes = _mixes(chain.ops)
    if rest:
        raises = not mixes and chain.channels == 3 and not chain.on_bytes and _raises(rest[0], grey)
        return "UNCHANGED" if raises else None
    if chain.ops != grey.ops or type(chain.values) is not type(grey.values):
        return None
    if grey.spread:
        return None if mixes or not _same(chain, grey) else "SPREAD"
    return "UNCHANGED" if _same(chain, grey) else None


def _same(chain: Chain, grey: Chain) -> bool:
    """Returns true if each channel of RGB becomes what the channels of grey become."""
    one, other = chain.values, grey.values
    if one is None or other is None or grey.channels not in (1, chain.channels):
        return False
    return one.dtype == other.dtype and torch.equal(one, other.expand_as(one))


def _output(chain: Chain, grey: Chain) -> tuple[Any, ...]:
    """Returns the output of images of one channel or three."""
    if chain.on_bytes or grey.values is None or chain.channels == grey.channels:
        return chain.output()
    return transforms.table(grey.values.as_subclass(torch.Tensor).reshape(-1, 256))


def _raises(transform: Any, grey: Chain) -> bool:
    """Returns true if torch refuses to apply a transform to a grey image, for want of channels."""
    if grey.values is None:
        return False
    try:
        transform(grey.values.clone())
    except Exception as error:
        return isinstance(error, RuntimeError) and str(error).startswith(_BROADCAST)
    return False


def _mixes(op: Any) -> bool:
    """Returns true if an operation, or one inside of it, makes one channel of several."""
    if isinstance(op, tuple | list):
        return any(map(_mixes, op))
    return op in ("grayscale", "random_grayscale")
