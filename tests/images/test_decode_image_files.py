"""Files of every kind for torchvision's `decode_image`; torch's DataLoader over them is the oracle."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import fastload
from fastload.images import torchvision_io
from fastload.lanes import choose
from tests.shared.compare import assert_same, assert_same_outcomes, outcomes
from tests.shared.sizes import SIZES

from .decoded import MARKS, asked, encode, folder, native, photograph, stray
from .encoded import by_torchvision, read
from .foreign import HEIGHT, WIDTH
from .test_jpeg import ycck
from .test_png import encode as encode_png

pytestmark = MARKS

MODES = ("UNCHANGED", "GRAY", "RGB")

NATIVE: dict[str, tuple[bytes, str]] = {
    "baseline": (encode("JPEG"), "UNCHANGED GRAY RGB"),
    "4:4:4": (encode("JPEG", subsampling="4:4:4"), "UNCHANGED GRAY RGB"),
    "progressive": (encode("JPEG", progressive=True), "UNCHANGED GRAY RGB"),
    "grey": (encode("JPEG", "L"), "UNCHANGED GRAY RGB"),
    "CMYK": (encode("JPEG", "CMYK"), "RGB"),
    "YCCK": (ycck(encode("JPEG", "CMYK")), "RGB"),
    "PNG": (encode("PNG"), "UNCHANGED RGB"),
    "PNG, grey": (encode("PNG", "L"), "UNCHANGED GRAY RGB"),
    "PNG, 1 bit": (encode("PNG", "1"), "GRAY RGB"),
    "PNG, palette": (encode("PNG", "P"), "RGB"),
    "PNG, transparent colour": (encode("PNG", transparency=(1, 2, 3)), "UNCHANGED RGB"),
    "PNG, transparent index": (encode("PNG", "P", transparency=3), "RGB"),
    "PNG, grey and alpha": (encode("PNG", "LA"), "RGB"),
    "PNG, alpha": (encode("PNG", "RGBA"), "RGB"),
    "PNG, interlaced": (encode_png(HEIGHT, WIDTH, 2, 8, interlaced=True), "UNCHANGED RGB"),
    "PNG, interlaced palette": (encode_png(HEIGHT, WIDTH, 3, 8, interlaced=True), "RGB"),
    "WebP": (encode("WEBP"), "UNCHANGED RGB"),
    "WebP, lossless": (encode("WEBP", lossless=True), "UNCHANGED RGB"),
    "WebP, alpha": (encode("WEBP", "RGBA"), "RGB"),
    "GIF": (encode("GIF"), ""),
}
"""Files, and the modes in which native code decodes them."""

ODD: dict[str, tuple[bytes, str]] = {
    "PNG, 16 bits": (encode_png(HEIGHT, WIDTH, 0, 16), "UNCHANGED GRAY RGB"),
    "GIF, animated": (
        encode("GIF", save_all=True, append_images=[photograph(1)]),
        "UNCHANGED GRAY RGB",
    ),
    "WebP, in grey": (encode("WEBP"), "GRAY"),
}
"""Files of which torchvision makes other things than images of bytes with the channels of a mode."""

DAMAGE: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"no image at all, but long enough to be looked at"),
    "BMP": lambda path: path.write_bytes(encode("BMP")),
    "cut short": lambda path: path.write_bytes(encode("JPEG")[:-100]),
    "without its end": lambda path: path.write_bytes(encode("JPEG")[:-2]),
    "PNG cut short": lambda path: path.write_bytes(encode("PNG")[:-500]),
    "WebP cut short": lambda path: path.write_bytes(encode("WEBP")[:-50]),
    "GIF cut short": lambda path: path.write_bytes(encode("GIF")[:200]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", NATIVE)
def test_every_format_and_mode(tmp_path: Path, kind: str, mode: str):
    encoded, modes = NATIVE[kind]
    if mode == "GRAY" and kind.startswith(("WebP", "GIF")):
        pytest.skip("torchvision makes no grey of it")
    data = stray(tmp_path, encoded, mode=mode)
    loader = native(data)
    assert_same(list(loader), list(DataLoader(data)))
    assert asked(loader) == (mode not in modes.split())


@pytest.mark.parametrize(("kind", "mode"), [(k, m) for k, v in ODD.items() for m in v[1].split()])
def test_what_is_no_image_of_bytes_is_left_to_torchvision(tmp_path: Path, kind: str, mode: str):
    data = stray(tmp_path, ODD[kind][0], mode=mode)
    assert_same(list(native(data)), list(DataLoader(data)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [*NATIVE, "PNG, 16 bits"])
def test_folders_of_other_formats_are_left_to_workers(tmp_path: Path, kind: str, mode: str):
    encoded, modes = (NATIVE | ODD)[kind]
    if kind == "PNG, 16 bits":
        modes = ""
    loader = fastload.Loader(folder(tmp_path, encoded, mode=mode), **SIZES)
    choice = choose(loader)
    assert choice.lane == ("native" if mode in modes.split() else "process")
    if choice.lane == "process":
        assert "1 of 1 files looked at are" in choice.why
        assert "decoded by torchvision" in loader.explain()


@pytest.mark.parametrize("batch_size", [1, 4, None])
@pytest.mark.parametrize("what", DAMAGE)
def test_errors_are_torchvisions(tmp_path: Path, what: str, batch_size: int | None):
    data = stray(tmp_path, encode("JPEG"))
    DAMAGE[what](tmp_path / "class" / "001.jpeg")
    loader = native(data, batch_size)
    got, want = outcomes(loader), outcomes(DataLoader(data, batch_size))
    if batch_size:
        assert_same_outcomes(got, want)
        assert isinstance(want[batch_size == 1], RuntimeError)
        assert asked(loader) == 1
    with pytest.raises(RuntimeError) as caught:
        data[1]
    [error] = [each for each in got if isinstance(each, Exception)]
    assert str(error) == str(caught.value)
    assert error.__notes__[0].startswith("while torchvision decoded ")
    assert "001.jpeg" in error.__notes__[0]


@pytest.mark.parametrize("interlaced", [False, True])
def test_damage_that_torchvision_does_not_survive(tmp_path: Path, interlaced: bool):
    encoded = bytearray(encode_png(HEIGHT, WIDTH, 2, 8, interlaced=interlaced))
    encoded[-20] ^= 1  # of the pixels
    results = outcomes(native(stray(tmp_path, bytes(encoded))))
    assert [type(result) for result in results] == [list, RuntimeError, list, list]
    assert "the pixels of the PNG are damaged" in str(results[1])


NEVER = {"different", "read alone"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["baseline", "progressive", "grey", "CMYK", "WebP"])
def test_damaged_anywhere_it_is_refused_or_torchvisions(kind: str, mode: str):
    encoded, draw, found = NATIVE[kind][0], random.Random(kind), []
    ends = [encoded[:end] for end in range(0, len(encoded), len(encoded) // 20)]
    for number in range(80):
        damaged = bytearray(ends[number] if number < len(ends) else encoded)
        if number >= len(ends):
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        found.append(_outcome(bytes(damaged), mode))
    assert not NEVER & set(found)
    assert ("equal" in found) == (mode in NATIVE[kind][1].split())


def _outcome(encoded: bytes, mode: str) -> str:
    try:
        ours = read(encoded, f"torchvision {mode}")
    except OSError:
        return "refused"
    try:
        return "equal" if np.array_equal(ours, by_torchvision(encoded, mode)) else "different"
    except (RuntimeError, ValueError):
        return "read alone"


def test_damaged_png_is_told_from_sound():
    """Of files that torchvision survives, all that are cut short and all that are sound."""
    for colour, depth in [(0, 1), (2, 8), (3, 4), (4, 16), (6, 8)]:
        for interlaced in (False, True):
            encoded = encode_png(9, 14, colour, depth, interlaced=interlaced)
            for end in range(8, len(encoded)):
                assert torchvision_io._is_sound(encoded[:end])
            for at in range(encoded.index(b"IDAT") + 4, len(encoded) - 12):
                damaged = bytearray(encoded)
                damaged[at] ^= 16
                assert not torchvision_io._is_sound(bytes(damaged))


@pytest.mark.skipif(os.name != "posix", reason="a directory is opened as a file")
def test_a_directory_is_torchvisions_error(tmp_path: Path):
    data = stray(tmp_path, encode("JPEG"))
    path = tmp_path / "class" / "001.jpeg"
    path.unlink()
    path.mkdir()
    results = outcomes(native(data))
    assert [type(result) for result in results] == [list, RuntimeError, list, list]
