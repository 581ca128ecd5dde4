"""Images of Pillow that have no pixels yet, and record the operations on them.

Owns which of Pillow's methods are recorded: `load`, `convert`, `crop`, `resize`, `reduce`, `thumbnail`, `transpose`
and `copy`, and what Pillow makes of those, such as `rotate` by right angles. Everything else reaches for `im`,
Pillow's pixels, and there they are made: the image has then Pillow's own class and is Pillow's. Another thread may
do that at any time, so methods reach for what an image waits for by functions, which hold its lock.
"""

import contextlib
import functools
import threading
import weakref
from typing import Any

import torch
from PIL import Image

from fastload.images.operations import Output
from fastload.pictures import steps
from fastload.pictures.source import REFUSALS, Source
from fastload.pictures.steps import Step

__all__ = ["NATIVE", "Access", "Waiting", "become", "begun", "settled", "tensor"]

NATIVE = ("RGB", "L")
"""The modes that native code makes."""


class Waiting(Image.Image):
    """An image without pixels.

    Its methods record what is done to it where native code does the same, and return another one; or settle
    it and are Pillow's.
    """

    _source: Source
    _steps: list[Step]
    _lock: contextlib.AbstractContextManager[Any]

    def settle(self) -> None:
        """Makes the pixels; the image is Pillow's own from then on. Only `settled` calls it, with the lock held.

        Raises:
            Late: They cannot be made, and Pillow would have said so before.
        """
        source, recorded = self._source, self._steps
        try:
            image = Image.frombytes(self._mode, self._size, source.pixels(recorded))
        except REFUSALS:
            image = source.by_pillow(recorded)
        self._im = image.im  # before other threads see Pillow's class
        become(self, Image.Image)
        del self._source, self._steps, self._lock

    def finish(self) -> None:
        """Is Pillow's own from then on: with pixels, unless Pillow would not have read them yet either."""
        settled(self)

    def begin(self, mode: str) -> tuple[Source, list[Step]] | None:
        """Returns the source and the steps of an image in this mode; None where native code does not make it.

        Only `begun` calls it, with the lock held.
        """
        return (self._source, self._steps) if mode == self._mode else None

    def replace(self, image: "Waiting") -> None:
        """Takes over the size, mode and pixels of another image."""
        self._source, self._steps = image._source, image._steps
        self._mode, self._size = image._mode, image._size

    @property
    def im(self) -> Any:
        """Pillow's pixels."""
        return settled(self).im

    @im.setter
    def im(self, im: Any) -> None:
        settled(self).im = im

    def load(self) -> Any:
        """Returns the object that reads and writes single pixels."""
        return Access.of(self)

    def copy(self) -> Image.Image:
        """Returns an image that can be changed by itself."""
        return _after(self, steps.copy(self._size)) or settled(self).copy()

    __copy__ = copy

    def convert(self, mode: str | None = None, *args: Any, **named: Any) -> Image.Image:
        """Returns the image in another mode."""
        plain = not args and not (named.keys() - {"dither", "palette", "colors"})
        waits = plain and mode in NATIVE and "transparency" not in self.info
        made = _after(self, steps.copy(self._size), mode) if waits else None
        return made or settled(self).convert(mode, *args, **named)

    def crop(self, box: Any = None) -> Image.Image:
        """Returns a part of the image."""
        if box is None:
            return self.copy()
        return _after(self, steps.crop(self._size, box)) or settled(self).crop(box)

    def resize(
        self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None
    ) -> Image.Image:
        """Returns the image, or a part of it, scaled; with a gap in two steps, as Pillow does it."""
        how = Image.Resampling.BICUBIC if resample is None else resample
        part = (0, 0, *self._size) if box is None else box
        step = steps.resize(self._size, size, how, part)
        if step is not None and reducing_gap is not None and begun(self, self._mode) is not None:
            if reducing_gap < 1:
                step = None  # Pillow refuses it
            elif step.ops and how != Image.Resampling.NEAREST:
                left, top, right, bottom = part
                across = int((right - left) / size[0] / reducing_gap) or 1
                down = int((bottom - top) / size[1] / reducing_gap) or 1
                if max(across, down) > 1:
                    safe = self._get_safe_box(tuple(size), how, part)
                    sides = (left - safe[0]) / across, (top - safe[1]) / down
                    ends = (right - safe[0]) / across, (bottom - safe[1]) / down
                    return self.reduce((across, down), safe).resize(size, how, (*sides, *ends))
        return _after(self, step) or settled(self).resize(size, resample, box, reducing_gap)

    def reduce(self, factor: Any, box: Any = None) -> Image.Image:
        """Returns the image, or a part of it, with one pixel for each block of `factor` columns and rows."""
        factors = factor if isinstance(factor, tuple) else (factor, factor)
        return _after(self, steps.reduce(self._size, factors, box)) or settled(self).reduce(
            factor, box
        )

    def thumbnail(self, *args: Any, **named: Any) -> None:
        """Makes the image itself smaller."""
        # what `load` returned stays with the pixels of now
        if vars(self).get("_accessed", _no_access)() is not None:
            settled(self).thumbnail(*args, **named)
            return
        asked = _Thumbnail(self)
        Image.Image.thumbnail(asked, *args, **named)  # type: ignore[arg-type]
        if isinstance(asked.made, Waiting):
            self.replace(asked.made)
        elif asked.made is not None:
            self.im = asked.made.im
            self._mode, self._size = asked.made.mode, asked.made.size
        if "readonly" in vars(asked):
            self.readonly = asked.readonly

    def transpose(self, method: Any) -> Image.Image:
        """Returns the image mirrored or turned."""
        return _after(self, steps.transpose(self._size, method)) or settled(self).transpose(method)

    def putpalette(self, *args: Any, **named: Any) -> None:
        """Attaches a palette, which makes indices of the pixels: Pillow sets the mode before it asks for them."""
        self.finish()
        self.putpalette(*args, **named)

    def close(self) -> None:
        """Gives the image up."""
        become(self, Image.Image)
        self.close()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The array interface that NumPy reads: `(H, W)` or `(H, W, 3)` of uint8."""
        start = begun(self, self._mode)
        if start is None:
            return settled(self).__array_interface__
        source, recorded = start
        try:
            data = source.pixels(recorded)
        except REFUSALS:
            return settled(self).__array_interface__
        width, height = self._size
        shape = (height, width) if self._mode == "L" else (height, width, 3)
        return {"version": 3, "shape": shape, "typestr": "|u1", "data": data}

    def __eq__(self, other: object) -> bool:
        """Returns true if another image has the same pixels."""
        if isinstance(other, Waiting):
            settled(other)
        return settled(self) == other

    __hash__ = None  # type: ignore[assignment] # Pillow's images have none

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles the image with its pixels."""
        return settled(self).__reduce_ex__(protocol)


# what says of itself that it is Pillow's image is one
Waiting.__module__, Waiting.__qualname__ = Image.__name__, "Image"
Waiting.__name__ = "Image"


class Access:
    """Reads and writes single pixels of an image: those that it has when it is settled.

    Args:
        image: One that waits.
    """

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    @classmethod
    def of(cls, image: Image.Image) -> "Access":
        """Returns that of an image that waits."""
        access: Access = vars(image).get("_accessed", _no_access)() or cls(image)
        vars(image)["_accessed"] = weakref.ref(access)
        return access

    def __getitem__(self, xy: Any) -> Any:
        return self.pixels[xy]

    def __setitem__(self, xy: Any, value: Any) -> None:
        self.pixels[xy] = value

    @functools.cached_property
    def pixels(self) -> Any:
        """Those of Pillow."""
        return settled(self._image).load()


def _no_access() -> None:
    """Returns what a weak reference to an `Access` returns once it is gone."""


class _Thumbnail:
    """Stands for an image in Pillow's `thumbnail`, which computes the size, and asks the image for the rest.

    Args:
        image: One that waits.

    Attributes:
        made: The image that it was resized to; None if it was not.
        im: The object that Pillow takes for pixels.
    """

    made: Image.Image | None = None
    readonly: int

    def __init__(self, image: Waiting) -> None:
        self._image = image
        self.im = self

    def resize(self, *args: Any, **named: Any) -> "_Thumbnail":
        """Resizes the image."""
        self.made = self._image.resize(*args, **named)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._image, name)


def become(image: Any, kind: type) -> None:
    """Has an image be Pillow's own."""
    image.__class__ = kind


def settled(image: Image.Image) -> Image.Image:
    """Returns an image once it has pixels; it is Pillow's own then."""
    with getattr(image, "_lock", contextlib.nullcontext()):
        if isinstance(image, Waiting):  # no other thread has settled it meanwhile
            accessed = vars(image).pop("_accessed", _no_access)
            image.settle()
            if (access := accessed()) is not None:
                _ = access.pixels
    return image


def begun(image: Image.Image, mode: str) -> tuple[Source, list[Step]] | None:
    """Returns the source and the steps of an image in this mode; None where native code does not make it."""
    with getattr(image, "_lock", contextlib.nullcontext()):
        return image.begin(mode) if isinstance(image, Waiting) else None


def tensor(image: Image.Image, output: Output, wrap: Any = None) -> torch.Tensor | None:
    """Returns `(C, H, W)`, of a class if one is given, a view of `(H, W, C)` where the output says so.

    None where native code does not make it, as of an image to which another thread has given pixels.
    """
    start = begun(image, image.mode)
    if start is None:
        return None
    source, recorded = start
    try:
        made = source.tensor(recorded, output)
    except REFUSALS:
        return None
    made = made.permute(2, 0, 1) if output[1] == "hwc" else made
    return made if wrap is None else made.as_subclass(wrap)


def _after(image: Waiting, step: Step | None, mode: str | None = None) -> Image.Image | None:
    """Returns an image in a mode, its own by default, after a step; None where native code does not make it."""
    mode = image.mode if mode is None else mode
    start = None if step is None else begun(image, mode)
    if step is None or start is None:
        return None
    made = Waiting()
    made._lock = threading.RLock()
    made._source, before = start
    made._steps = [*before, step]
    made._mode, made._size = mode, step.size
    made.info = {k: v.copy() if isinstance(v, list) else v for k, v in image.info.items()}
    return made
