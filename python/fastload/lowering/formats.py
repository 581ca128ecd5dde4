"""Which image formats are decoded natively, and how a folder of images is looked at for others.

Owns the judgement of whole datasets: the format of one file is found anew when it is decoded, and what
is not decoded natively goes to Pillow.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fastload.lowering.registry import NotNative

__all__ = ["check_files", "check_images"]

_PNG = b"\x89PNG\r\n\x1a\n"
_HEADER = 32
_LOOKED_AT = 200

_FOREIGN = {
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"P1": "PPM",
    b"P2": "PPM",
    b"P3": "PPM",
    b"P4": "PPM",
    b"P5": "PPM",
    b"P6": "PPM",
    b"\0\0\0\x0cjP": "JPEG 2000",
    b"8BPS": "PSD",
}


def check_files(paths: Sequence[str], *, unchanged: bool = False) -> NotNative | None:
    """Returns why files are better left to Python workers: more than one per cent are foreign.

    Looks at the headers of at most 200 files, spread evenly. Files that cannot be read are none's:
    their errors are raised when they are loaded.

    Args:
        paths: The files.
        unchanged: Whether they are decoded to their own mode, which must be grey or RGB then.
    """
    return _check((_header(path) for path in _some(paths)), unchanged=unchanged)


def check_images(images: Sequence[Any], *, unchanged: bool = False) -> NotNative | None:
    """Does as `check_files` with files in memory: a sequence of what `memoryview` takes."""
    headers = (bytes(memoryview(image)[:_HEADER]) for image in _some(images))
    return _check(headers, unchanged=unchanged)


def _some(several: Sequence[Any]) -> Iterable[Any]:
    step = max(1, -(-len(several) // _LOOKED_AT))
    return (several[place] for place in range(0, len(several), step))


def _check(headers: Iterable[bytes], *, unchanged: bool) -> NotNative | None:
    looked = [_format(header, unchanged=unchanged) for header in headers]
    foreign = [name for name in looked if name is not None]
    if len(foreign) * 100 <= len(looked):
        return None
    names = ", ".join(sorted(set(foreign)))
    why = f"{len(foreign)} of {len(looked)} files looked at are {names}, decoded by Pillow"
    return NotNative(why, "convert them to JPEG, PNG or WebP" + " of RGB" * unchanged)


def _header(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (200 at once)
            return file.read(_HEADER)
    except OSError:
        return b""


def _format(header: bytes, *, unchanged: bool) -> str | None:
    """Returns the name of a file's format, if that is known not to be decoded natively."""
    if header.startswith(_PNG):
        own = header[24:26] in (b"\x08\0", b"\x08\x02")  # bits of a sample, kind of colour
        return None if own or not unchanged else "PNG of other pixels than grey or RGB bytes"
    native = (
        header.startswith(b"\xff\xd8\xff")
        or (header[:4] == b"RIFF" and header[8:12] == b"WEBP")
        or not header
    )
    if native:
        return None
    if header[4:8] == b"ftyp":
        return "AVIF or HEIF"
    return next((name for start, name in _FOREIGN.items() if header.startswith(start)), "unknown")
