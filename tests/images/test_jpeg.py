"""JPEG files of every kind, sound and damaged; Pillow is the oracle, run in the test."""

import io
import random
import warnings
from collections import Counter

import numpy as np
import PIL.Image
import PIL.ImageFile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastload.columns import Image
from fastload.images import foreign

from .encoded import by_pillow, by_torchvision, outcome, read

KINDS = {
    "4:4:4": {"subsampling": "4:4:4"},
    "4:2:2": {"subsampling": "4:2:2"},
    "4:2:0": {"subsampling": "4:2:0"},
    "progressive": {"progressive": True},
    "restart markers": {"restart_marker_blocks": 3},
    "optimized": {"optimize": True, "quality": 30},
    "best": {"quality": 100},
    "RGB": {"keep_rgb": True},
}


def photograph(height, width, seed=0):
    """Waves and noise: every coefficient of a block is used."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 17 + y / 31), np.cos(x / 7 - y / 13), np.sin(x * y / 977)]
    noise = np.random.default_rng(seed).normal(0, 15, (height, width, 3))
    return np.clip(np.stack(waves, -1) * 100 + 128 + noise, 0, 255).astype(np.uint8)


def encode(pixels, mode=None, **options):
    buffer = io.BytesIO()
    image = PIL.Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def with_sampling(encoded, *factors):
    """Claims other sampling factors of a 4:4:4 file whose components are one block large."""
    start = encoded.index(b"\xff\xc2" if b"\xff\xc2" in encoded else b"\xff\xc0")
    patched = bytearray(encoded)
    for component, (across, down) in enumerate(factors):
        patched[start + 11 + 3 * component] = across << 4 | down
    return bytes(patched)


@pytest.fixture
def decode(tmp_path, monkeypatch):
    """Decodes natively or raises: Pillow is not asked."""
    monkeypatch.setattr(foreign, "decoder", lambda: None)
    path = tmp_path / "image.jpg"
    column = Image([path])

    def decode(encoded):
        path.write_bytes(encoded)
        return column[0].numpy()

    return decode


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (8, 8), (17, 16), (101, 203)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_pillow(decode, kind, size):
    encoded = encode(photograph(*size), **KINDS[kind])
    np.testing.assert_array_equal(decode(encoded), by_pillow(encoded))


@given(
    height=st.integers(1, 70),
    width=st.integers(1, 70),
    quality=st.integers(1, 100),
    kind=st.sampled_from(sorted(KINDS)),
    mode=st.sampled_from(["RGB", "L"]),
)
def test_equals_pillow_at_any_size_and_quality(decode, height, width, quality, kind, mode):
    options = KINDS[kind] | {"quality": quality}
    if mode == "L":
        options = {key: value for key, value in options.items() if key != "keep_rgb"}
    encoded = encode(photograph(height, width, quality), mode, **options)
    np.testing.assert_array_equal(decode(encoded), by_pillow(encoded))


@pytest.mark.parametrize("factors", [(4, 1), (1, 4), (1, 2), (2, 4), (3, 1)], ids=str)
def test_unusual_sampling_equals_pillow(decode, factors):
    encoded = with_sampling(encode(photograph(64, 64), subsampling=0), factors)
    with warnings.catch_warnings(action="ignore"):
        try:
            expected = by_pillow(encoded)
        except OSError:
            with pytest.raises(OSError, match=r"image\.jpg"):
                decode(encoded)
        else:
            np.testing.assert_array_equal(decode(encoded), expected)


@pytest.mark.parametrize("size", [(5000, 3), (2, 5000), (1500, 1100)], ids=str)
def test_large_files_equal_pillow(decode, size):
    encoded = encode(photograph(*size), quality=95)
    np.testing.assert_array_equal(decode(encoded), by_pillow(encoded))


def test_a_file_without_tables_does_not_use_those_of_the_file_before(decode):
    whole = encode(photograph(16, 16))
    tables = whole.index(b"\xff\xdb")
    without = whole[:tables] + whole[whole.index(b"\xff\xc0") :]
    decode(whole)
    with pytest.raises(OSError, match=r"broken data stream.*uantization"):
        decode(without)


DAMAGED = ["4:2:0", "4:4:4", "progressive", "restart markers"]


@pytest.mark.parametrize("kind", DAMAGED)
def test_cut_anywhere_it_is_read_or_refused_as_pillow_does(kind):
    encoded = encode(photograph(40, 48), **KINDS[kind])
    found = Counter(outcome(encoded[:end]) for end in range(len(encoded) + 1))
    assert set(found) == {"equal", "refused by both"}, found


PHOTOSHOP = b"Photoshop 3.0\0"


def segment(marker, body, more=0):
    """A segment whose length says `more` bytes more than there are."""
    return bytes([0xFF, marker]) + max(0, len(body) + 2 + more).to_bytes(2, "big") + body


def resource(number, name, body, more=0):
    """A resource of Photoshop."""
    length = (len(body) + more).to_bytes(4, "big")
    name = bytes([len(name)]) + name
    return b"8BIM" + number.to_bytes(2, "big") + name + bytes(len(name) & 1) + length + body


@st.composite
def segments(draw):
    """What applications and encoders write before a scan, whole or not."""
    cut = draw(st.integers(0, 24))
    marker, body = draw(
        st.sampled_from(
            [
                (0xE0, b"JFIF\0\1\1\1\0\x48\0\x48\0\0"),
                (0xE0, b"JFXX\0\x10"),
                (0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"),
                (0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
                (0xE2, b"ICC_PROFILE\0\1\1profile"),
                (0xE2, b"ICC_PROFILE\0\2\2profile"),
                (0xE2, b"FPXR\0\0"),
                (0xED, PHOTOSHOP + resource(0x3ED, b"", bytes(16)) + resource(7, b"abc", b"xyz")),
                (0xED, PHOTOSHOP + resource(0x3ED, b"", bytes(6)) + b"8BIM\0\7"),
                (0xED, PHOTOSHOP + resource(5, b"name", b"12345", 3)),
                (0xEE, b"Adobe\0\x64\0\0\0\0\1"),
                (0xFE, b"a comment"),
                (0xDB, b"\2" + bytes(range(1, 65))),
                (0xDB, b"\x12" + bytes([0, 9] * 64)),
                (0xDB, b"\2" + bytes(range(1, 65)) + b"\3" + bytes(range(1, 65))),
                (0xC0, b"\x08\0\x10\0\x18\3\1\x11\0\2\x11\1\3\x11\1"),
                (0xC8, b"junk"),
                (0xDC, b"\0\x10"),
                (0xDD, b"\0\1"),
                (0xF0, b"JPG0"),
                (0xD0, b""),
                (0x01, b""),
            ]
        )
    )
    if draw(st.booleans()):
        body = body[: len(body) - cut] if draw(st.booleans()) else body[:cut]
    more = draw(st.sampled_from([0, 0, 0, -1, 1, -len(body), -len(body) - 2, 40]))
    around = st.sampled_from([b"", b"", b"", b"\0", b"\xff", b"\xff\xff", b"\xff\0", b"x"])
    return draw(around) + segment(marker, body, more) + draw(around)


@settings(max_examples=400)
@given(
    st.lists(segments(), min_size=1, max_size=3),
    st.sampled_from(["4:2:0", "progressive"]),
    st.integers(0, 4),
)
@pytest.mark.slow
def test_segments_are_walked_over_as_pillow_does(added, kind, behind):
    encoded = encode(photograph(16, 24), **KINDS[kind])
    at = 2
    for _ in range(behind):
        at += 2 + int.from_bytes(encoded[at + 2 : at + 4], "big")
    with warnings.catch_warnings(action="ignore"):  # a malformed list of pictures is warned of
        assert outcome(encoded[:at] + b"".join(added) + encoded[at:]) in {
            "equal",
            "refused by both",
        }


@pytest.mark.parametrize(
    "body", [b"JFIF\0", b"JFIF\0\1", b"JFIF\0\1\1"], ids=lambda body: str(len(body))
)
def test_a_short_segment_is_refused_in_pillows_words(tmp_path, body):
    encoded = encode(photograph(16, 24))
    length = 2 + int.from_bytes(encoded[4:6], "big")
    damaged = encoded[:2] + segment(0xE0, body) + encoded[2 + length :]
    path = tmp_path / "image.jpg"
    path.write_bytes(damaged)
    try:
        expected = by_pillow(damaged)
    except OSError as error:
        with pytest.raises(type(error), match="cannot identify image file"):
            Image([path])[0]
    else:
        np.testing.assert_array_equal(Image([path])[0].numpy(), expected)


def with_scans(encoded, count):
    """Repeats the last scan of a progressive file until there are `count`."""
    first, last = encoded.count(b"\xff\xda"), encoded.rindex(b"\xff\xda")
    return encoded[:-2] + encoded[last:-2] * (count - first) + encoded[-2:]


def test_scans_are_limited_and_pillow_is_not_asked_beyond(tmp_path):
    path = tmp_path / "image.jpg"
    encoded = encode(photograph(16, 24), progressive=True)
    path.write_bytes(with_scans(encoded, 500))
    np.testing.assert_array_equal(Image([path])[0].numpy(), by_pillow(path.read_bytes()))
    path.write_bytes(with_scans(encoded, 501))
    with pytest.raises(
        OSError, match=r"image\.jpg.*more than 500 progressive scans.*write it anew"
    ):
        Image([path])[0]


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_anywhere_its_pixels_are_pillows(kind):
    encoded = encode(photograph(40, 48), **KINDS[kind])
    draw = random.Random(kind)
    found = Counter()
    for _ in range(1000):
        damaged = bytearray(encoded)
        for _ in range(draw.choice([1, 1, 2, 5])):
            damaged[draw.randrange(len(damaged))] = draw.choice(
                [0, 0xD9, 0xFF, draw.randrange(256)]
            )
        if draw.random() < 0.3:
            del damaged[draw.randrange(len(damaged)) :]
        found[outcome(bytes(damaged))] += 1
    assert found.keys() <= {"equal", "refused by both"}, found


def test_a_truncated_file_says_so_and_names_itself(decode):
    encoded = encode(photograph(40, 48))
    with pytest.raises(OSError, match=r"image\.jpg.*image file is truncated"):
        decode(encoded[: len(encoded) // 2])


def other(format, **options):
    buffer = io.BytesIO()
    PIL.Image.fromarray(photograph(8, 8)).save(buffer, format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"", "the file is empty, or cannot be read"),
        (b"text", "unknown image format"),
        (b"\xff\xd8", "unknown image format"),
        (other("GIF"), "native code does not decode a GIF"),
        (other("BMP"), "native code does not decode a BMP"),
        (other("TIFF"), "native code does not decode a TIFF"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_decoded_is_named(decode, encoded, reason):
    with pytest.raises(OSError, match=reason):
        decode(encoded)


def ycck(encoded):
    """Claims that the four channels of a CMYK file are YCCK."""
    patched = bytearray(encoded)
    patched[encoded.index(b"Adobe") + 11] = 2
    return bytes(patched)


def plain(encoded):
    """Takes Adobe's segment out of a CMYK file: Pillow takes it for inverted all the same."""
    start = encoded.index(b"Adobe") - 4
    return encoded[:start] + encoded[start + 16 :]


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive"])
@pytest.mark.parametrize("change", [lambda encoded: encoded, ycck, plain])
def test_four_channels_equal_pillow(kind, change, mode):
    encoded = change(encode(photograph(37, 51), "CMYK", **KINDS[kind]))
    np.testing.assert_array_equal(read(encoded, mode), by_pillow(encoded, mode))


@pytest.mark.parametrize("source", ["RGB", "L"])
@pytest.mark.parametrize("kind", ["4:2:2", "4:2:0", "progressive"])
def test_grey_equals_pillow(kind, source):
    encoded = encode(photograph(37, 51), source, **KINDS[kind])
    np.testing.assert_array_equal(read(encoded, "L"), by_pillow(encoded, "L"))


@pytest.mark.parametrize("source", ["RGB", "L"])
@pytest.mark.parametrize("kind", ["4:2:2", "4:2:0", "progressive"])
def test_unchanged_equals_torchvision(kind, source):
    encoded = encode(photograph(37, 51), source, **KINDS[kind])
    np.testing.assert_array_equal(read(encoded, "torchvision UNCHANGED"), by_torchvision(encoded))


def test_unchanged_is_strict():
    encoded = encode(photograph(37, 51))
    with pytest.raises(OSError, match="truncated"):
        read(encoded[:-2], "torchvision UNCHANGED")
    with pytest.raises(OSError, match="4 components"):
        read(encode(photograph(8, 8), "CMYK"), "torchvision UNCHANGED")


def test_rotation_by_exif_is_left_to_others(decode):
    exif = PIL.Image.Exif()
    exif[0x112] = 6
    encoded = encode(photograph(20, 30), exif=exif.tobytes())
    np.testing.assert_array_equal(decode(encoded), by_pillow(encoded))


def test_a_claim_of_enormous_size_is_refused_as_by_pillow(decode):
    encoded = bytearray(encode(photograph(8, 8)))
    size = encoded.index(b"\xff\xc0") + 5
    encoded[size : size + 4] = b"\xea\x60\xea\x60"  # 60000 by 60000
    with pytest.raises(PIL.Image.DecompressionBombError):
        by_pillow(bytes(encoded))
    with pytest.raises(OSError, match=r"3600000000 pixels.*89478485.*decompression bomb"):
        decode(bytes(encoded))


def test_where_pillow_warns_of_the_size_it_is_refused(decode, monkeypatch):
    encoded = encode(photograph(10, 11))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 110)
    assert decode(encoded).shape == (10, 11, 3)
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 109)
    with pytest.warns(PIL.Image.DecompressionBombWarning):
        by_pillow(encoded)
    with pytest.raises(OSError, match=r"110 pixels.*limit of 109 pixels"):
        decode(encoded)


def test_without_a_limit_a_file_must_still_be_able_to_hold_its_pixels(decode, monkeypatch):
    encoded = bytearray(encode(photograph(8, 8)))
    size = encoded.index(b"\xff\xc0") + 5
    encoded[size : size + 4] = b"\xea\x60\xea\x60"  # 60000 by 60000
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", None)
    with pytest.raises(OSError, match=r"claims 3600000000 pixels.*implausible"):
        decode(bytes(encoded))


def test_a_truncated_file_is_refused_where_pillow_would_tolerate_it(decode, monkeypatch):
    encoded = encode(photograph(40, 48))
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert by_pillow(encoded[:-200]).shape == (40, 48, 3)
    with pytest.raises(OSError, match="truncated"):
        decode(encoded[:-200])
