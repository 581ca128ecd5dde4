"""A chain of transforms of one image, as it is lowered.

Owns what is known of the image at each step: whether it is a Pillow image still or a tensor, what
becomes of each byte value, and how small it can be. Bytes become elements by the user's own transforms,
run once on an image of all 256 values, so that no arithmetic is repeated here.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fastload import _lib, registry, transforms
from fastload.images import kernels
from fastload.images.operations import Op
from fastload.machine import pillow
from fastload.registry import NotNative

__all__ = [
    "FUNCTIONS",
    "Chain",
    "check_pillow",
    "filter_name",
    "follow",
    "lower",
    "on_tensor",
    "unknown",
]

FUNCTIONS = (
    "torchvision.transforms.functional",
    "torchvision.transforms._functional_pil",
    "torchvision.transforms._functional_tensor",
    "torchvision.transforms.v2.functional",
)
"""Modules of the functions that transforms call."""
_INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass
class Chain:
    """The native operations so far, and the image after them.

    Attributes:
        channels: 1 or 3.
        source: The images, as `_lib.Image` takes them; of files, none need be there.
        least: Height and width that the image has at least; 0 where nothing is known.
        values: The element of each byte, `(channels, 1, 256)`, of the tensor that the image is by
            now; None while it is a Pillow image.
        ops: Operations, as `_lib.Image` takes them.
        names: The transforms so far, in words.
        random: True if one of them draws.
        sealed: The operation so far that must come last, in words.
        spreads: True if arithmetic may make three channels of one.
        spread: True if it did.
    """

    channels: int
    source: Any
    least: tuple[int, int] = (0, 0)
    values: torch.Tensor | None = None
    ops: list[Op] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    random: bool = False
    sealed: str = ""
    spreads: bool = False
    spread: bool = False

    @property
    def on_pillow(self) -> bool:
        """True if the image is still a Pillow image."""
        return self.values is None

    @property
    def on_bytes(self) -> bool:
        """True if the image is a tensor of its own bytes."""
        return self.values is not None and _equal(self.values, _bytes(self.channels))

    def add(self, op: Op, *, least: tuple[int, int] | None = None) -> None:
        """Adds an operation, after which the image has at least `least` pixels.

        Raises:
            NotNative: Nothing native can come here any more.
        """
        if self.sealed:
            msg = f"it comes after {self.sealed}"
            raise NotNative(msg, f"put it before {self.sealed}")
        self.ops.append(op)
        self.least = (0, 0) if least is None else least

    def map(self, function: Callable[[Any], Any]) -> None:
        """Applies what maps each element on its own, by applying it to all 256 bytes.

        Raises:
            NotNative: It fails, or the result is none that can be written natively.
        """
        before = self._image()
        try:
            after = function(before if self.values is None else before.clone())
        except Exception as error:
            msg = f"it raises {type(error).__name__}: {error}"
            raise NotNative(msg, "take it out") from error
        if self.values is None and after is before:
            return
        if self.spreads and self.channels == 1 and getattr(after, "shape", None) == (3, 1, 256):
            self.channels, self.spread = 3, True
            before = before.expand(3, -1, -1)
        if not isinstance(after, torch.Tensor) or after.shape != (self.channels, 1, 256):
            msg = f"it makes {registry.name(type(after))} of an image"
            raise NotNative(msg, "take it out")
        if after.dtype not in _INTEGERS + _FLOATS:
            msg = f"it makes {after.dtype}, which is not written natively"
            raise NotNative(msg, "use another dtype")
        if after.device.type != "cpu":
            msg = f"it makes a tensor on torch's default device, {after.device}"
            raise NotNative(msg, "leave the default device at cpu while batches are loaded")
        if self.sealed and not _equal(after, before):
            msg = f"it comes after {self.sealed}"
            raise NotNative(msg, f"put it before {self.sealed}")
        self.values = after

    def part(self) -> "Chain":
        """Returns a chain that starts with this one's image and has no operations yet."""
        return replace(self, ops=[], names=[], random=False)

    def take(self, other: "Chain") -> None:
        """Becomes `other`, which started as this chain or a copy of it."""
        self.__dict__.update(other.__dict__)

    def copy(self) -> "Chain":
        """Returns a chain of its own that is like this one."""
        return replace(self, ops=list(self.ops), names=list(self.names))

    def output(self) -> tuple[Any, ...]:
        """Returns the output of `_lib.Image`."""
        if self.values is None:
            return "bytes", "hwc"
        if self.on_bytes:
            return "bytes", "chw"
        return transforms.table(self.values.as_subclass(torch.Tensor).reshape(-1, 256))

    @property
    def wrap(self) -> type | None:
        """The subclass of `torch.Tensor` that the image is of."""
        return None if type(self.values) in (torch.Tensor, type(None)) else type(self.values)

    def kernel(self, interpolation: Any, *, antialias: Any, version: int) -> tuple[str, str]:
        """Returns the kernel that scales the image: Pillow's, or torch's for bytes.

        Args:
            interpolation: Torchvision's.
            antialias: True if tensors are scaled with antialiasing.
            version: 1 for `torchvision.transforms`, which scales single-precision copies of tensors;
                2 for v2, which scales bytes.

        Raises:
            NotNative: Nothing native scales it so.
        """
        name = filter_name(interpolation)
        if self.on_pillow:
            return pillow.kernel("nearest" if name == "nearest-exact" else name)
        if not self.on_bytes or version == 1:
            msg = "it scales a tensor of other numbers than bytes"
            raise NotNative(msg, "put it before ToTensor, or use bytes and transforms.v2")
        kernel = kernels.torch_kernel(name, antialias=bool(antialias))
        if kernel is None:
            msg = f"it scales a tensor by a routine of torch that is not native here ({name})"
            raise NotNative(msg, "put it before the image becomes a tensor")
        return kernel

    def _image(self) -> Any:
        if self.values is not None:
            return self.values
        import PIL.Image  # such a chain exists only with Pillow

        pixels = torch.arange(256, dtype=torch.uint8, device="cpu").repeat_interleave(self.channels)
        mode = "RGB" if self.channels == 3 else "L"
        return PIL.Image.frombytes(mode, (256, 1), pixels.numpy().tobytes())


def on_tensor(channels: int, *, spreads: bool = False) -> Chain:
    """Returns a chain whose image is a tensor of bytes from the first."""
    return Chain(channels, [], values=_bytes(channels), spreads=spreads)


def filter_name(interpolation: Any) -> str:
    """Returns the name of an interpolation: torchvision's enum, its name, or Pillow's number.

    Raises:
        NotNative: It is none of them.
    """
    by_number = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
    name = getattr(interpolation, "value", interpolation)
    name = by_number.get(name, name)
    if not isinstance(name, str):
        msg = f"its interpolation is {interpolation!r}"
        raise NotNative(msg, "use an InterpolationMode")
    return name.lower()


def follow(chain: Chain, several: Iterable[Any]) -> tuple[int, NotNative | None]:
    """Extends a chain by transforms in order, up to the first that stops it.

    Returns:
        How many transforms are in the chain now, and what stopped the next one.
    """
    several = list(several)
    try:
        registry.check_functions("torchvision", *FUNCTIONS)
        if chain.on_pillow:
            check_pillow()
    except NotNative as stop:
        return 0, stop.again()
    with contextlib.suppress(NotNative):  # the native core is asked once if it can do all of them
        chain.take(_grown(chain, several))
        return len(several), None
    for place, each in enumerate(several):
        try:
            chain.take(_grown(chain, [each]))
        except NotNative as stop:
            return place, _named(stop, each)
    return len(several), None


def _grown(chain: Chain, several: list[Any]) -> Chain:
    """Returns a chain with further transforms, which the native core understands."""
    grown = chain.copy()
    for each in several:
        lower(each, grown)
    _probe(grown)
    return grown


def check_pillow() -> None:
    """Refuses a Pillow in which a function that opens or changes images is other code now."""
    if (name := pillow.replaced()) is not None:
        registry.refuse_replaced(name)


def unknown(several: Iterable[Any]) -> list[str]:
    """Returns the names of transforms that are Python wherever they stand, each once."""
    names: dict[str, None] = {}
    for each in several:
        with contextlib.suppress(NotNative):
            if registry.find("transform", each) is not None:
                continue
        names[registry.name(each)] = None
    return list(names)


def lower(transform: Any, chain: Chain) -> None:
    """Extends a chain by one transform.

    Raises:
        NotNative: Python does it, and why; the chain is not to be used any further then.
    """
    entry = registry.find("transform", transform)
    if entry is None:
        msg = f"{registry.name(transform)} is Python code"
        raise NotNative(msg, "use a transform of torchvision in its place")
    before = len(chain.names)
    try:
        entry.lower(transform, chain)
    except NotNative as stop:
        raise _named(stop, transform) from stop
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        msg = f"{_short(transform)} could not be tried on a test image: {type(error).__name__}: {error}"
        raise NotNative(msg) from error
    if len(chain.names) == before:
        chain.names.append(_short(transform))


def _probe(chain: Chain) -> None:
    """Refuses a chain that the native core does not understand."""
    try:
        _lib.Image(chain.source, "RGB", chain.ops, chain.output())
    except (OverflowError, TypeError, ValueError) as error:
        msg = f"it is not a native operation ({error})"
        raise NotNative(msg, "take it out") from error


def _named(stop: NotNative, transform: Any) -> NotNative:
    """Returns a reason that says "it" with the name of the transform."""
    if not stop.why.startswith("it "):
        return stop.again()
    return NotNative(f"{_short(transform)}: {stop.why}", stop.change)


def _short(transform: Any) -> str:
    return registry.name(transform).rpartition(".")[2]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns true if two tensors have the same elements, of one dtype."""
    plain = torch.Tensor
    return one.dtype == other.dtype and torch.equal(
        one.as_subclass(plain), other.as_subclass(plain)
    )


def _bytes(channels: int) -> torch.Tensor:
    return torch.arange(256, dtype=torch.uint8, device="cpu").expand(channels, 1, -1)
