"""Formats of image files: which ones native code decodes, and whether a dataset has too many others.

Judges whole datasets. When a single file is decoded, its format is checked again; files that native code
refuses go to Pillow or torchvision.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fastload.registry import NotNative

__all__ = ["check_decoded", "check_files", "check_images"]

_PNG = b"\x89PNG\r\n\x1a\n"
_HEADER = 32
_LONG_HEADER = 1 << 16
_LOOKED_AT = 200
_UNKNOWN = "unknown"

_FOREIGN = {
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    **dict.fromkeys((b"P1", b"P2", b"P3", b"P4", b"P5", b"P6"), "PPM"),
    b"\0\0\0\x0cjP": "JPEG 2000",
    b"8BPS": "PSD",
}


def check_files(paths: Sequence[str], *, unchanged: bool = False) -> NotNative | None:
    """Returns why Python workers suit files better: native code does not decode more than 1 % of them.

    Looks at the headers of at most 200 files, spread evenly. Unreadable files do not count, nor those of no known
    format unless they are most of them: they are damaged, and their errors are raised when they are loaded.

    Args:
        paths: The files.
        unchanged: True if they are decoded to their own mode, which must be grey or RGB then.
    """
    headers = (_header(path) for path in _some(paths))
    formats = (_format(header, unchanged=unchanged) for header in headers)
    return _check(formats, "Pillow", " of RGB" * unchanged)


def check_decoded(paths: Sequence[str], mode: str) -> NotNative | None:
    """Same as `check_files` for torchvision's `decode_image` with an `ImageReadMode`, which keeps bits and channels."""
    headers = (_header(path, _LONG_HEADER) for path in _some(paths))
    formats = (_decoded_format(header, mode) for header in headers)
    return _check(formats, "torchvision", " of 8 bits, grey or RGB")


def check_images(column: Any, *, unchanged: bool = False) -> NotNative | None:
    """Same as `check_files` for files in memory: an Arrow column of bytes."""
    headers = (bytes(memoryview(image.as_buffer())[:_HEADER]) for image in _some(column))
    formats = (_format(header, unchanged=unchanged) for header in headers)
    return _check(formats, "Pillow", " of RGB" * unchanged)


def _some(several: Sequence[Any]) -> Iterable[Any]:
    step = max(1, -(-len(several) // _LOOKED_AT))
    return (several[place] for place in range(0, len(several), step))


def _check(formats: Iterable[str | None], library: str, own: str) -> NotNative | None:
    looked = list(formats)
    foreign = [name for name in looked if name not in (None, _UNKNOWN)]
    unknown = looked.count(_UNKNOWN)
    if 2 * unknown > len(looked):
        foreign += [_UNKNOWN] * unknown
    if len(foreign) * 100 <= len(looked):
        return None
    names = ", ".join(sorted(set(foreign)))
    why = f"{len(foreign)} of {len(looked)} files looked at are {names}, decoded by {library}"
    return NotNative(why, f"convert them to JPEG, PNG or WebP{own}")


def _header(path: str, length: int = _HEADER) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (200 at once)
            return file.read(length)
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
    return next((name for start, name in _FOREIGN.items() if header.startswith(start)), _UNKNOWN)


def _decoded_format(header: bytes, mode: str) -> str | None:
    """Returns the name of a file's format, if `decode_image` makes of it what native code does not."""
    if header.startswith(_PNG):
        bits, colour = header[24:25], header[25:26]
        own = {"UNCHANGED": b"\0\2", "GRAY": b"\0", "RGB": b"\0\2\3\4\6"}[mode]
        is_native = colour in own and (bits == b"\x08" or (mode != "UNCHANGED" and bits < b"\x08"))
        return None if is_native else f"PNG that the mode {mode} does not make bytes of"
    if header[8:12] == b"WEBP" and mode != "RGB" and (mode == "GRAY" or _has_alpha(header)):
        return "WebP of other channels"
    if header.startswith(b"\xff\xd8") and mode != "RGB" and _components(header) == 4:
        return "CMYK JPEG"
    return _format(header, unchanged=False)


def _has_alpha(header: bytes) -> bool:
    """Returns true if a WebP says that it has transparent pixels."""
    kind, payload = header[12:16], header[20:25].ljust(5, b"\0")
    if kind == b"VP8L":
        return bool(payload[4] & 0x10)
    return kind == b"VP8X" and bool(payload[0] & 0x10)


def _components(header: bytes) -> int | None:
    """Returns how many components a JPEG has; None if its frame lies behind the header."""
    at = 2
    while at + 10 <= len(header) and header[at] == 0xFF:
        marker = header[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return header[at + 9]
        at += 1 if marker == 0xFF else 2 + int.from_bytes(header[at + 2 : at + 4], "big")
    return None
