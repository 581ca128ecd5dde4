"""Writes small files of a format for the fuzzer to start from: `python fuzz/seeds.py jpeg FOLDER`.

Images are Pillow's, the others those that the tests damage: `tests/columns/formats.py`.
"""

import io
import os
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by path; files are the tests'

from fastload.columns import Jsonl
from tests.columns.formats import FORMATS

SIZES = (1, 1), (9, 5), (17, 33)
"""Width and height: a pixel, less than a block, several blocks."""

TURNED = Image.Exif()
TURNED[0x0112] = 6

IMAGES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "jpeg": [
        *(("RGB", {"subsampling": each, "progressive": False}) for each in range(3)),
        *(("RGB", {"subsampling": each, "progressive": True}) for each in range(3)),
        *(("L", {}), ("CMYK", {})),
        ("RGB", {"restart_marker_blocks": 1, "exif": TURNED}),
    ],
    "png": [
        *((mode, {}) for mode in ("RGB", "L", "P", "RGBA", "LA", "1", "I;16")),
        *(("P", {"bits": bits}) for bits in (1, 2, 4)),
        *(("P", {"transparency": 3}), ("RGB", {"transparency": (1, 2, 3)})),
        ("RGB", {"exif": TURNED}),
    ],
    "webp": [
        *((mode, {"lossless": False}) for mode in ("RGB", "RGBA")),
        *((mode, {"lossless": True}) for mode in ("RGB", "RGBA")),
        *(("RGB", {"save_all": True}), ("RGB", {"exif": TURNED})),
    ],
}
"""For each format the modes of Pillow, and the arguments of `Image.save`."""

FILES = {
    "audio": ("WAV", "FLAC", "MP3", "Ogg"),
    "megatron": ("Megatron",),
    "npy": ("npy",),
    "npz": ("npz",),
    "parquet": ("Parquet",),
    "tar": ("tar",),
}
"""For each target the formats that it reads as they are."""

LINES, CHANGED_S = b"{}\n\n [1]\n2", 1_000_000_000
"""The file whose index `lines` reads, and the time of its last change."""


def picture(mode: str, width: int, height: int) -> Image.Image:
    """Returns a slope with noise."""
    draw = np.random.default_rng(width)
    slope = np.linspace(0, 200, width)[:, None] * draw.random(3)
    pixels = (slope + draw.integers(0, 55, (height, width, 3))).astype(np.uint8)
    image = Image.fromarray(pixels)
    return image.convert("L").convert("I").convert(mode) if mode == "I;16" else image.convert(mode)


def images(name: str) -> Iterator[bytes]:
    """Makes the files of a format of images."""
    for width, height in SIZES:
        for mode, arguments in IMAGES[name]:
            image, file = picture(mode, width, height), io.BytesIO()
            frames = {"append_images": [image.rotate(180)]} if "save_all" in arguments else {}
            image.save(file, name, **arguments, **frames)
            yield file.getvalue()


def lines() -> bytes:
    """Makes the index of the file that its target writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(LINES)
        os.utime(path, (CHANGED_S, CHANGED_S))
        Jsonl(path, (), index=True, dtype=str)
        return path.with_name("x.jsonl.index").read_bytes()


def arrow() -> Iterator[bytes]:
    """Makes the offsets and values of columns, in front of them which there are: see the target."""
    for wide, element in ((wide, element) for wide in (0, 1) for element in range(4)):
        offsets = np.array([0, 2, 2, 5], ("<i4", "<i8")[wide]).tobytes()
        yield bytes([wide + 2 * element, 4]) + offsets + "aé\0z".encode() * 8


def link() -> Iterator[bytes]:
    """Makes what a worker sends: an arena of two slots, then letters with no part and with both."""
    arena = b"\2" + struct.pack("<IIQ", 7, 2, 4096)
    parts = [struct.pack("<IIQQ", 7, slot, offset, 100) for slot, offset in ((0, 0), (1, 64))]
    gone = b"\4" + struct.pack("<I", 7)
    for last, payload in ((0, b"words"), (1, b"")):
        letter = struct.pack("<BI", last, 2) + b"".join(parts) + payload
        whole = [arena, b"\0" + letter, b"\1" + letter[:9], b"\0" + letter[9:], gone]
        yield b"".join(bytes([len(piece)]) + piece for piece in [b"\0" + bytes(5), *whole])


def seeds(name: str) -> Iterator[bytes]:
    """Makes the files of a target."""
    if name in IMAGES:
        yield from images(name)
    elif name == "json":
        for content in FORMATS["JSON lines"].files.values():
            yield from content.splitlines()
    elif name == "lines":
        yield lines()
    elif name in ("arrow", "link"):
        yield from {"arrow": arrow, "link": link}[name]()
    elif name == "pt":  # its target packs the pickle itself
        for content in FORMATS["pt"].files.values():
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                [pickle] = [each for each in archive.namelist() if each.endswith("data.pkl")]
                yield archive.read(pickle)
    else:
        for form in FILES[name]:
            yield from FORMATS[form].files.values()


def main(name: str, folder: Path) -> None:
    """Writes the files of one target."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds(name)):
        (folder / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
