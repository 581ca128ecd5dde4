"""The images that native code refuses, decoded by torchvision's `decode_image`: a GIF, a palette, a missing file.

Owns the call, and what is made of results that are no image of bytes. Refuses PNGs whose pixels are
damaged: torchvision 0.29 does not survive an error of libpng behind the header, where it jumps into a
function that has returned.
"""

import struct
import zlib
from typing import Any

import torch

__all__ = ["decode"]

_PNG = b"\x89PNG\r\n\x1a\n"
_HEADER_END = 33

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel, by PNG's type of colour."""

_PASSES = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)
"""First row, first column and their steps in the passes of an interlaced PNG."""


def decode(source: str | bytes, mode: str) -> tuple[bytes, tuple[int, int, int]]:
    """Decodes a file as `decode_image` does.

    Args:
        source: The path of the file, or its bytes.
        mode: `"torchvision"` and the name of an `ImageReadMode`, or `"SPREAD"`: unchanged, with grey
            made equal red, green and blue. With `"upright"` between them the orientation of EXIF is
            applied.

    Returns:
        The pixels, row after row, and (height, width, channels).

    Raises:
        RuntimeError: torchvision's own, or its image is not one of bytes that native code could go on
            with; a note names the file.
    """
    _, *upright, name = mode.split(" ")
    try:
        image = _decoded(source, "UNCHANGED" if name == "SPREAD" else name, upright=bool(upright))
        if name == "SPREAD" and image.ndim == 3 and len(image) == 1:
            image = image.expand(3, -1, -1)
        _check(image, name)
    except Exception as error:
        what = f"{len(source)} bytes" if isinstance(source, bytes) else repr(source)
        error.add_note(f"while torchvision decoded {what}")
        raise
    pixels = image.permute(1, 2, 0).contiguous()
    height, width, channels = pixels.shape
    return pixels.numpy().tobytes(), (height, width, channels)


def _decoded(source: str | bytes, mode: str, *, upright: bool) -> torch.Tensor:
    """Calls what `decode_image` calls: that itself warns of its deprecation, each time."""
    from torchvision.io.image import ImageReadMode  # type: ignore[import-untyped]

    ops: Any = torch.ops.image
    if isinstance(source, str):
        data = ops.read_file(source)
    else:
        data = torch.frombuffer(bytearray(source), dtype=torch.uint8)
    encoded = data.numpy()
    if encoded[: len(_PNG)].tobytes() == _PNG and not _is_sound(encoded.tobytes()):
        msg = "the pixels of the PNG are damaged; torchvision was not asked, for it would crash"
        raise RuntimeError(msg)
    image: torch.Tensor = ops.decode_image(data, ImageReadMode[mode].value, upright)
    return image


def _check(image: torch.Tensor, mode: str) -> None:
    """Refuses results other than images of bytes with the channels of their mode."""
    wanted = {"RGB": 3, "SPREAD": 3, "GRAY": 1}.get(mode)
    if image.dtype == torch.uint8 and image.ndim == 3 and wanted in (None, len(image)):
        return
    msg = (
        f"torchvision makes {image.dtype} of shape {tuple(image.shape)} of this file, where native images are "
        f"bytes of shape ({wanted or 'C'}, H, W)"
    )
    raise NotImplementedError(msg)


def _is_sound(encoded: bytes) -> bool:
    """Returns true if libpng finds no error in a PNG's pixels, but for their end."""
    rows = _rows(encoded)
    if not rows:
        return True  # an error of the header, which torchvision survives
    packed, is_cut = _pixel_chunks(encoded)
    if packed is None:
        return False
    inflate = zlib.decompressobj()
    try:
        filtered = inflate.decompress(packed, sum(rows))
        if not inflate.eof:
            inflate.decompress(inflate.unconsumed_tail, 1)
    except zlib.error:
        return False
    at = 0
    for row in rows:
        if filtered[at : at + 1] > b"\4":  # the row's filter
            return False
        at += row
    return is_cut or (inflate.eof and at <= len(filtered))


def _rows(encoded: bytes) -> list[int]:
    """Returns the bytes of each row, that of its filter included; none if the header is no PNG's."""
    head = encoded[16:_HEADER_END]
    if len(head) < _HEADER_END - 16:
        return []
    width, height, depth, colour, _, _, interlaced, _ = struct.unpack(">IIBBBBBI", head)
    bits = _SAMPLES.get(colour, 0) * depth
    if not bits or max(width, height) > 1_000_000:  # libpng's own limit
        return []
    rows = []
    for top, left, down, across in _PASSES if interlaced else ((0, 0, 1, 1),):
        columns = len(range(left, width, across))
        if columns:
            rows += [1 + (columns * bits + 7) // 8] * len(range(top, height, down))
    return rows


def _pixel_chunks(encoded: bytes) -> tuple[bytes | None, bool]:
    """Returns the deflated pixels, None if a checksum is wrong, and whether the file ends there."""
    parts: list[bytes] = []
    at = _HEADER_END
    while at + 8 <= len(encoded):
        length, name = struct.unpack_from(">I4s", encoded, at)
        end = at + 8 + length
        if name == b"IDAT":
            parts.append(encoded[at + 8 : end])
            if end + 4 > len(encoded):
                return b"".join(parts), True
            if zlib.crc32(encoded[at + 4 : end]) != struct.unpack_from(">I", encoded, end)[0]:
                return None, False
        elif parts:
            return b"".join(parts), False
        at = end + 4
    return b"".join(parts), True
