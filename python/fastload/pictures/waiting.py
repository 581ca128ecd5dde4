"""Images of Pillow that have no pixels yet, and note down what is done to them.

Owns which of Pillow's methods are noted down: `load`, `convert`, `crop`, `resize`, `transpose` and `copy`, and what
Pillow makes of those, such as `rotate` by right angles. Everything else reaches for `im`, Pillow's pixels, and there
they are made: the image has then Pillow's own class and is Pillow's. The header is Pillow's own, too: size, mode,
format, `info`, and errors that a file's first bytes raise.
"""

import contextlib
import functools
import io
import operator
import threading
from typing import Any

import torch
from PIL import Image

from fastload import _lib
from fastload.images.operations import Op, Output
from fastload.machine import pillow
from fastload.pictures.swap import Swap

__all__ = ["Late", "Waiting", "install", "making", "opened", "uninstall"]

_REFUSALS = (OSError, ValueError, RuntimeError)
"""What native code raises where it leaves an image to Pillow."""

_FILES = {("PIL.JpegImagePlugin", "JpegImageFile"), ("PIL.PngImagePlugin", "PngImageFile")}
"""Those of which decoding changes no more than the pixels; a WebP's `info` has more afterwards."""
_FILTERS = {
    Image.Resampling.NEAREST: "nearest",
    Image.Resampling.BOX: "box",
    Image.Resampling.BILINEAR: "bilinear",
    Image.Resampling.HAMMING: "hamming",
    Image.Resampling.BICUBIC: "bicubic",
    Image.Resampling.LANCZOS: "lanczos",
}
_TRANSPOSED: dict[int, list[Op]] = {
    Image.Transpose.FLIP_LEFT_RIGHT: [("flip_fixed", False)],
    Image.Transpose.FLIP_TOP_BOTTOM: [("flip_fixed", True)],
    Image.Transpose.ROTATE_90: [("turn", 1)],
    Image.Transpose.ROTATE_180: [("turn", 2)],
    Image.Transpose.ROTATE_270: [("turn", 3)],
    Image.Transpose.TRANSPOSE: [("turn", 1), ("flip_fixed", True)],
    Image.Transpose.TRANSVERSE: [("turn", 1), ("flip_fixed", False)],
}
_SIDEWAYS = (
    Image.Transpose.ROTATE_90,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSPOSE,
    Image.Transpose.TRANSVERSE,
)
_TAIL_BYTES = 4096
"""Of a file's end, in which its last marker is looked for."""

_NATIVE = ("RGB", "L")
"""The modes that native code makes."""


class Late(BaseException):
    """Pixels cannot be made of a file that Pillow would have refused earlier: the sample has to be made again."""


class _Making(threading.local):
    """The sample that this thread makes, and what became of its images.

    Attributes:
        is_on: Whether files that are opened wait.
        failed: Whether one of them failed late.
        opened: How many waited so far.
        sources: What the images of this sample are made from.
    """

    is_on = False
    failed = False

    def __init__(self) -> None:
        self.opened = 0
        self.sources: list[_Source] = []


making = _Making()


class _Source:
    """An encoded image, from which others are made.

    Args:
        data: The file's bytes.
        mode: What it is decoded to.
        size: Width and height, as Pillow tells them.

    Attributes:
        runs: How often pixels were made of it.

    Raises:
        OSError: It is not decoded natively.
        ValueError: Native code finds another size.
    """

    _used = _used_again = 0
    """How many images were made pixels of, and of how many of them more than once."""

    def __init__(self, data: bytes, mode: str, size: tuple[int, int]) -> None:
        self._native = _lib.Picture(data, mode, **pillow.switches())
        if self._native.size != size:
            msg = f"an image of {size} is one of {self._native.size} natively"
            raise ValueError(msg)
        self._data = data
        self._mode = mode
        self.runs = 0

    def pixels(self, ops: list[Op]) -> bytes:
        """Returns rows of pixels after `ops`."""
        return self._native.pixels(ops, keep=self._keeps())

    def tensor(self, ops: list[Op], output: Output) -> torch.Tensor:
        """Returns what is written after `ops`."""
        tensor: torch.Tensor = self._native.tensor(ops, output, keep=self._keeps())
        return tensor

    def by_pillow(self, ops: list[Op]) -> Image.Image:
        """Returns the image that Pillow makes.

        Raises:
            Exception: Pillow's own, where no sample is being made.
            Late: Pillow's own was raised while one is.
        """
        try:
            image: Image.Image = _open(io.BytesIO(self._data)).convert(self._mode)
            for name, *values in ops:
                image = _DONE[name](image, *values)
        except Exception as error:
            _fail(error)
            raise
        return image

    def check(self) -> None:
        """Looks for damage in an image that nothing has been made of.

        Raises:
            Late: There is some.
        """
        try:
            self._native.pixels([("crop", (0, 0, 1, 1))], keep=True)
        except _REFUSALS:
            self.by_pillow([])

    def _keeps(self) -> bool:
        """Returns true if the whole image is decoded and kept, because it, or most others, are reused."""
        self.runs += 1
        _Source._used += self.runs == 1
        _Source._used_again += self.runs == 2
        return self.runs > 1 or 2 * _Source._used_again > _Source._used


def _fail(error: Exception) -> None:
    """Has the sample made again that this thread makes, if it does."""
    if making.is_on:
        making.failed = True
        raise Late from error


def _crop(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    top, left, height, width = box
    return image.crop((left, top, left + width, top + height))


def _resize(
    image: Image.Image, size: tuple[int, int], _: None, kernel: tuple[str, str]
) -> Image.Image:
    return image.resize(size[::-1], Image.Resampling[kernel[1].upper()])


def _flip(image: Image.Image, vertical: bool) -> Image.Image:  # noqa: FBT001 (an operation's)
    how = Image.Transpose.FLIP_TOP_BOTTOM if vertical else Image.Transpose.FLIP_LEFT_RIGHT
    return image.transpose(how)


def _turn(image: Image.Image, quarters: int) -> Image.Image:
    how = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)
    return image.transpose(how[quarters - 1])


_DONE: dict[str, Any] = {"crop": _crop, "resize": _resize, "flip_fixed": _flip, "turn": _turn}
"""What Pillow does for each operation that is noted down."""


class Waiting(Image.Image):
    """An image without pixels.

    Its methods note down what is done to it where native code does the same, and return another one; or settle
    it and are Pillow's.
    """

    _source: _Source
    _ops: list[Op]

    def settle(self) -> None:
        """Makes the pixels; the image is Pillow's own from then on.

        Raises:
            Late: They cannot be made, and Pillow would have said so before.
        """
        source, ops = self._source, self._ops
        try:
            image = Image.frombytes(self._mode, self._size, source.pixels(ops))
        except _REFUSALS:
            image = source.by_pillow(ops)
        del self._source, self._ops
        _become(self, Image.Image)
        self.im = image.im

    def _begun(self, mode: str) -> tuple[_Source, list[Op]] | None:
        """Returns what an image in this mode begins with; None where native code does not make it."""
        return (self._source, self._ops) if mode == self._mode else None

    @property
    def im(self) -> Any:
        """Pillow's pixels."""
        self.settle()
        return self.im

    @im.setter
    def im(self, im: Any) -> None:
        self.settle()
        self.im = im

    def load(self) -> Any:
        """Returns what reads and writes single pixels."""
        return _Access(self)

    def copy(self) -> Image.Image:
        """Returns an image that can be changed by itself."""
        return _then(self, self._mode, [], self._size) or _settled(self).copy()

    __copy__ = copy

    def convert(self, mode: str | None = None, *args: Any, **named: Any) -> Image.Image:
        """Returns the image in another mode."""
        plain = not args and not (named.keys() - {"dither", "palette", "colors"})
        waits = plain and mode in _NATIVE and "transparency" not in self.info
        made = _then(self, str(mode), [], self._size) if waits else None
        return made or _settled(self).convert(mode, *args, **named)

    def crop(self, box: Any = None) -> Image.Image:
        """Returns a part of the image."""
        if box is None:
            return self.copy()
        made = None
        whole = _box(box)
        if whole is not None:
            left, top, right, bottom = whole
            width, height = self._size
            if 0 <= left < right <= width and 0 <= top < bottom <= height:
                op = ("crop", (top, left, bottom - top, right - left))
                made = _then(self, self._mode, [op], (right - left, bottom - top))
        return made or _settled(self).crop(box)

    def resize(
        self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None
    ) -> Image.Image:
        """Returns the image scaled."""
        sides = _sides(size)
        name = "bicubic" if resample is None else _FILTERS.get(resample)
        made = None
        is_whole = box is None or tuple(box) == (0, 0, *self._size)
        if sides is not None and name is not None and is_whole and reducing_gap is None:
            op = ("resize", sides[::-1], None, pillow.kernel(name))
            made = _then(self, self._mode, [] if sides == self._size else [op], sides)
        return made or _settled(self).resize(size, resample, box, reducing_gap)

    def transpose(self, method: Any) -> Image.Image:
        """Returns the image mirrored or turned."""
        ops = _TRANSPOSED.get(method)
        size = self._size[::-1] if method in _SIDEWAYS else self._size
        made = None if ops is None else _then(self, self._mode, ops, size)
        return made or _settled(self).transpose(method)

    def tensor(self, output: Output) -> torch.Tensor | None:
        """Returns a tensor of the pixels; None where native code does not make it."""
        begun = self._begun(self._mode)
        if begun is not None:
            source, ops = begun
            with contextlib.suppress(*_REFUSALS):
                return source.tensor(ops, output)
        return None

    def close(self) -> None:
        """Gives the image up."""
        _become(self, Image.Image)
        self.close()

    def thumbnail(self, *args: Any, **named: Any) -> None:
        """Makes the image smaller."""
        _settled(self).thumbnail(*args, **named)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What NumPy makes an array of: `(H, W)` or `(H, W, 3)` of uint8."""
        begun = self._begun(self._mode)
        if begun is None:
            return _settled(self).__array_interface__
        source, ops = begun
        try:
            data = source.pixels(ops)
        except _REFUSALS:
            return _settled(self).__array_interface__
        width, height = self._size
        shape = (height, width) if self._mode == "L" else (height, width, 3)
        return {"version": 3, "shape": shape, "typestr": "|u1", "data": data}

    def __eq__(self, other: object) -> bool:
        """Returns true if another image has the same pixels."""
        if isinstance(other, Waiting):
            other.settle()
        return _settled(self) == other

    __hash__ = None  # type: ignore[assignment] # Pillow's images have none

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles the image with its pixels."""
        return _settled(self).__reduce_ex__(protocol)


class _File(Waiting):
    """An image whose header was read, and no more.

    Attributes:
        plain: Pillow's class.
    """

    plain: type
    fp: Any
    tile: list[Any]
    _exclusive_fp: bool
    _data: bytes | None = None
    _kept: dict[str, _Source]

    def settle(self) -> None:
        """Has Pillow decode the file.

        Raises:
            Late: It cannot be decoded, and Pillow would have said so before.
            Exception: Pillow's own, at the time at which Pillow would raise it.
        """
        data, kept = self._data, self.__dict__.pop("_kept", {})
        self._be_plain()
        if data is None:
            self.load()
            return
        if self.format == "JPEG" and self._mode in kept:  # its pixels are all that loading adds
            with contextlib.suppress(*_REFUSALS):
                pixels = kept[self._mode].pixels([])
                self.im = Image.frombytes(self._mode, self._size, pixels).im
                self.tile = []
                self.readonly = 0
                return
        try:
            image = _open(io.BytesIO(data))
            image.load()
        except Exception as error:
            if kept:
                _fail(error)
            raise
        for name, value in image.info.items():
            self.info.setdefault(name, value)
        left = ("info", "filename", "_exif")
        self.__dict__.update({k: v for k, v in image.__dict__.items() if k not in left})

    def _be_plain(self) -> None:
        self.__dict__.pop("_data", None)
        _become(self, self.plain)

    def _begun(self, mode: str) -> tuple[_Source, list[Op]] | None:
        if mode not in _NATIVE:
            return None
        kept = self.__dict__.setdefault("_kept", {})
        if mode not in kept and (data := self._read()) is not None and _has_end(data):
            with contextlib.suppress(*_REFUSALS):
                kept[mode] = _Source(data, mode, self._size)
                if making.is_on:
                    making.sources.append(kept[mode])
        return (kept[mode], []) if mode in kept else None

    def _read(self) -> bytes | None:
        """Returns the file's bytes, after which Pillow needs the file no more; None where there is none."""
        if self._data is None and self.fp is not None and self.tile:
            file = self.fp
            if type(file) is io.BytesIO:
                self._data = file.getvalue()
            else:
                file.seek(0)
                self._data = file.read()
            if self._exclusive_fp:
                file.close()
            self.fp = None
        return self._data

    def load(self) -> Any:
        """Reads the file; the pixels of a JPEG are made later, of others also what follows them is read."""
        if self.format == "JPEG" and self._begun(self._mode) is not None:
            return _Access(self)
        return _settled(self).load()

    def draft(self, mode: Any, size: Any) -> Any:
        """Asks for a smaller image."""
        if self._data is not None:
            return None  # as of an image that is loaded
        self._be_plain()
        return self.draft(mode, size)

    def close(self) -> None:
        """Gives the image up."""
        self._be_plain()
        self.close()

    def verify(self) -> None:
        """Looks for damage."""
        self._be_plain()
        self.verify()

    def seek(self, frame: int) -> None:
        """Goes to a frame."""
        _settled(self).seek(frame)


class _Access:
    """Reads and writes single pixels of an image.

    Args:
        image: One that waits.
    """

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    def __getitem__(self, xy: Any) -> Any:
        return self._of_pixels()[xy]

    def __setitem__(self, xy: Any, value: Any) -> None:
        self._of_pixels()[xy] = value

    def _of_pixels(self) -> Any:
        if isinstance(self._image, Waiting):
            self._image.settle()
        return self._image.load()


def _has_end(data: bytes) -> bool:
    """Returns true if a file is not cut short, which would better be noticed at once.

    A PNG also has nothing behind its pixels, which Pillow would add to `info`.
    """
    if data.startswith(b"\xff\xd8"):
        return b"\xff\xd9" in data[-_TAIL_BYTES:]
    last = data.rfind(b"IDAT")
    end = last + 8 + int.from_bytes(data[max(0, last - 4) : max(0, last)])  # behind its checksum
    return last > 0 and data[end + 4 : end + 8] == b"IEND"


def _become(image: Any, kind: type) -> None:
    """Has an image be Pillow's own."""
    image.__class__ = kind


def _settled(image: Waiting) -> Image.Image:
    """Returns an image once it has pixels; it is Pillow's own then."""
    image.settle()
    return image


def _then(image: Waiting, mode: str, ops: list[Op], size: tuple[int, int]) -> Image.Image | None:
    """Returns what `ops` make of an image, once that is in a mode; None where native code does not make it."""
    begun = image._begun(mode)
    if begun is None:
        return None
    made = Waiting()
    made._source, before = begun
    made._ops = before + ops
    made._mode, made._size = mode, size
    made.info = {k: v.copy() if isinstance(v, list) else v for k, v in image.info.items()}
    return made


def _box(box: Any) -> tuple[int, int, int, int] | None:
    """Returns the sides of a crop as Pillow rounds them."""
    try:
        left, top, right, bottom = map(int, map(round, box))
    except (TypeError, ValueError, OverflowError):
        return None
    return left, top, right, bottom


def _sides(size: Any) -> tuple[int, int] | None:
    """Returns width and height, if they are such."""
    try:
        width, height = (operator.index(side) for side in size)
    except (TypeError, ValueError):
        return None
    return (width, height) if min(width, height) > 0 else None


for _kind in (Waiting, _File):  # what says of itself that it is Pillow's image is one
    _kind.__module__, _kind.__qualname__ = Image.__name__, "Image"
Waiting.__name__ = "Image"


@functools.cache
def _waiting(kind: Any) -> type | None:
    """Returns the class of images that wait in place of one of Pillow's, if there is one."""
    if (kind.__module__, kind.__name__) not in _FILES:
        return None
    names = {"plain": kind, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made: type = type(kind)(kind.__name__, (_File, kind), names)
    return made


def opened(*args: Any, **named: Any) -> Image.Image:
    """Returns what `PIL.Image.open` returns; where this thread makes a sample, one that waits."""
    image: Image.Image = _open(*args, **named)
    kind = _waiting(type(image)) if making.is_on else None  # type: ignore[arg-type]
    if kind is not None and not getattr(image, "is_animated", False):
        _become(image, kind)
        making.opened += 1
    return image


def _stub(fp, mode="r", formats=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.waiting import opened

    return opened(fp, mode, formats)


_swap = Swap(Image.open, _stub)
_open: Any = _swap.original


def install() -> bool:
    """Has `PIL.Image.open` give images that wait, where this thread makes a sample.

    Returns:
        Whether it does: neither where it, or what is noted down, has been replaced, nor with a Pillow that has
        no `Image.im` to ask for.
    """
    own = vars(Image.Image)
    has_pixels = isinstance(own.get("im"), property)
    noted = [own[name] for name in ("convert", "copy", "crop", "load", "resize", "transpose")]
    are_pillows = all(
        getattr(method, "__code__", None) is not None
        and method.__code__.co_filename == Image.__file__
        for method in (_open, *noted)
    )
    if not has_pixels or not are_pillows or Image.open is not _swap.function:
        return False
    _swap.install()
    return True


def uninstall() -> None:
    """Has `PIL.Image.open` be Pillow's own again."""
    _swap.uninstall()
