"""Files that wait: of which only the header was read, by Pillow.

Owns which files wait, and `PIL.Image.open`, which gives them while a sample is made. The header is Pillow's own:
size, mode, format, `info`, and errors that a file's first bytes raise.
"""

import contextlib
import functools
import io
import itertools
import threading
from typing import Any

from PIL import Image

from fastload.machine.libraries import is_of_module
from fastload.pictures.source import REFUSALS, Making, Source, fail, making
from fastload.pictures.steps import Step
from fastload.pictures.swap import Swap
from fastload.pictures.waiting import NATIVE, Access, Waiting, become, begun, settled

__all__ = ["install", "opened", "uninstall"]

_KINDS = {("PIL.JpegImagePlugin", "JpegImageFile"), ("PIL.PngImagePlugin", "PngImageFile")}
"""Those of which decoding changes no more than the pixels; a WebP's `info` has more afterwards."""

_TAIL_BYTES = 4096
"""Of a file's end, in which its last marker is looked for."""

_READ_BYTES = 1 << 20

_RECORDED = ("convert", "copy", "crop", "load", "reduce", "resize", "thumbnail", "transpose")


class _File(Waiting):
    """An image whose header was read, and no more.

    Attributes:
        plain: Pillow's class.
    """

    plain: type
    fp: Any
    tile: list[Any]
    decoderconfig: tuple[int, int]
    _exclusive_fp: bool
    _data: bytes | None = None
    _draft: tuple[Any, Any] | None = None
    """Arguments of the call that changed the decoding."""
    _is_luma = False
    """True if that made it grey."""
    _smaller: Waiting | None = None
    """The result of `thumbnail`."""
    _kept: dict[str, Source]
    _sample: Making
    """The sample that it was opened for."""

    def settle(self) -> None:
        """Has Pillow decode the file.

        Raises:
            Late: It cannot be decoded, and Pillow would have said so before.
            Exception: Pillow's own, at the time at which Pillow would raise it.
        """
        if self._data is None:
            self._be_plain()
            self.load()
            return
        kept, smaller = self.__dict__.get("_kept", {}), self._smaller
        if self.format != "JPEG" or not (smaller or _took(self, kept)):
            try:
                image = self._reopened()()
                known = set(image.info)
                image.load()
            except Exception as error:
                if kept:
                    fail(error, self._sample)
                raise
            for name in image.info.keys() - known:  # what the code took out stays out
                self.info.setdefault(name, image.info[name])
            left = ("info", "filename", "_exif")
            self.__dict__.update({k: v for k, v in image.__dict__.items() if k not in left})
        if smaller is not None:
            self._im = smaller.im
            self._mode, self._size = smaller.mode, smaller.size
        self._be_plain()

    def finish(self) -> None:
        """Is Pillow's own from then on; a file that was only opened stays unread, as Pillow leaves it."""
        if self._data is None:
            self._be_plain()
        else:
            settled(self)

    def begin(self, mode: str) -> tuple[Source, list[Step]] | None:
        """Returns the source and the steps of an image in this mode; None where native code does not make it."""
        if self._smaller is not None:
            return begun(self._smaller, mode)
        is_other = self._mode == "YCbCr" or (self._is_luma and mode != self._mode)
        if mode not in NATIVE or is_other:  # Pillow converts what a draft made
            return None
        kept = self.__dict__.setdefault("_kept", {})
        if mode not in kept and (data := self._read()) is not None and _has_end(data):
            draft = None if self._draft is None else (self.decoderconfig[0], self._is_luma)
            with contextlib.suppress(*REFUSALS):
                kept[mode] = Source(data, mode, self._size, draft, self._reopened(), self._sample)
        return (kept[mode], []) if mode in kept else None

    def replace(self, image: Waiting) -> None:
        """Becomes what another one is; the file's other attributes stay."""
        self._smaller = image
        self._mode, self._size = image.mode, image.size

    def load(self) -> Any:
        """Reads the file; the pixels of a JPEG are made later, of others also what follows them is read."""
        if self.format == "JPEG" and begun(self, self._mode) is not None:
            return Access.of(self)
        return settled(self).load()

    def draft(self, mode: Any, size: Any) -> Any:
        """Asks for a smaller or grey image, if the file has not been read."""
        if self._data is not None:
            return None
        before = self._mode
        made = self.plain.draft(self, mode, size)  # type: ignore[attr-defined]
        if made is not None:
            self._draft, self._is_luma = (mode, size), self._mode != before
        return made

    def close(self) -> None:
        """Gives the image up."""
        self._be_plain()
        self.close()

    def verify(self) -> None:
        """Looks for damage; an image that was loaded keeps its pixels."""
        self.finish()
        self.verify()

    def seek(self, frame: int) -> None:
        """Goes to a frame; nothing happens if it is the first, where an image is that was only opened."""
        if frame != 0 and self._data is None and self._smaller is None:
            self._be_plain()  # of a damaged file Pillow may find that there is no such frame
            self.seek(frame)
        elif frame != 0:
            settled(self).seek(frame)

    def _be_plain(self) -> None:
        become(self, self.plain)
        for name in (
            "_data",
            "_draft",
            "_is_luma",
            "_smaller",
            "_kept",
            "_sample",
            "_lock",
            "_accessed",
        ):
            self.__dict__.pop(name, None)

    def _read(self) -> bytes | None:
        """Returns the file's bytes, after which Pillow no longer needs the file; None where there are none."""
        if self._data is None and self.fp is not None and self.tile:
            file = self.fp
            if type(file) is io.BytesIO:
                self._data = file.getvalue()
            else:
                file.seek(0)
                try:
                    self._data = file.read()
                except TypeError:  # it needs a size, which Pillow always gives
                    self._data = b"".join(iter(functools.partial(file.read, _READ_BYTES), b""))
            if self._exclusive_fp:
                file.close()
            self.fp = None
            self.tile, self.readonly = [], 0  # as of an image that is loaded
        return self._data

    def _reopened(self) -> functools.partial[Image.Image]:
        return functools.partial(_reopen, self._data, self._draft)


_File.__module__, _File.__qualname__ = Image.__name__, "Image"


def _took(image: Image.Image, kept: dict[str, Source]) -> bool:
    """Takes the pixels of a JPEG, which are all that loading adds; returns true if native code made them."""
    if image.mode in kept:
        with contextlib.suppress(*REFUSALS):
            pixels = kept[image.mode].pixels([])
            image._im = Image.frombytes(image.mode, image.size, pixels).im
            return True
    return False


def _reopen(data: Any, draft: tuple[Any, Any] | None) -> Image.Image:
    """Returns an image that does not wait."""
    image: Image.Image = _open(io.BytesIO(data))
    if draft is not None:
        image.draft(*draft)
    return image


def _has_end(data: bytes) -> bool:
    """Returns true if a file is not cut short, which would better be noticed at once.

    A PNG also has nothing behind its pixels, which Pillow would add to `info`.
    """
    if data.startswith(b"\xff\xd8"):
        return b"\xff\xd9" in data[-_TAIL_BYTES:]
    last = data.rfind(b"IDAT")
    end = last + 8 + int.from_bytes(data[max(0, last - 4) : max(0, last)])  # behind its checksum
    return last > 0 and data[end + 4 : end + 8] == b"IEND"


@functools.cache
def _waiting(kind: Any) -> type | None:
    """Returns the class of images that wait in place of one of Pillow's, if there is one."""
    if (kind.__module__, kind.__name__) not in _KINDS:
        return None
    names = {"plain": kind, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made: type = type(kind)(kind.__name__, (_File, kind), names)
    return made


def opened(*args: Any, **named: Any) -> Image.Image:
    """Opens an image as `PIL.Image.open` does; where this thread makes a sample, one that waits."""
    image: Image.Image = _open(*args, **named)
    sample = making()
    kind = _waiting(type(image)) if sample.is_on else None  # type: ignore[arg-type]
    if kind is not None and not getattr(image, "is_animated", False):
        image._sample = sample  # type: ignore[attr-defined]
        image._lock = threading.RLock()  # type: ignore[attr-defined]
        become(image, kind)
        sample.opened += 1
    return image


def _stub(fp, mode="r", formats=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    from fastload.pictures.files import opened

    return opened(fp, mode, formats)


_swap = Swap(Image.open, _stub)
_open: Any = _swap.original


def install() -> bool:
    """Has `PIL.Image.open` give images that wait, where this thread makes a sample.

    Returns:
        Whether it does: neither where it, or what is recorded, has been replaced, nor with a Pillow that has
        no `Image.im` to ask for.
    """
    own, names = vars(Image.Image), vars(Image)
    has_pixels = isinstance(own.get("im"), property)
    methods = Image.open, *map(own.__getitem__, _RECORDED)
    are_pillows = all(map(is_of_module, methods, itertools.repeat(names)))
    if not has_pixels or not are_pillows or Image.open is not _swap.function:
        return False
    _swap.install()
    return True


def uninstall() -> None:
    """Has `PIL.Image.open` be Pillow's own again."""
    _swap.uninstall()
