"""PNG files of every kind, sound and damaged; Pillow is the oracle, run in the test."""

import io
import random
import struct
import zlib
from collections import Counter

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .encoded import by_pillow, by_torchvision, centre, outcome, read

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel, by colour type."""

KINDS = [
    *[(0, depth) for depth in (1, 2, 4, 8, 16)],
    *[(3, depth) for depth in (1, 2, 4, 8)],
    *[(colour, depth) for colour in (2, 4, 6) for depth in (8, 16)],
]
"""Colour type and depth."""

PASSES = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
]
"""Adam7: first column, first row, step of columns, step of rows."""


def chunk(name, data=b""):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def filtered(rows, bytes_per_pixel, draw):
    """Applies a filter of every kind to `rows`."""
    before = bytes(len(rows[0])) if rows else b""
    for row in rows:
        kind = draw.randrange(5)
        out = bytearray([kind])
        for at, value in enumerate(row):
            left = row[at - bytes_per_pixel] if at >= bytes_per_pixel else 0
            corner = before[at - bytes_per_pixel] if at >= bytes_per_pixel else 0
            up = before[at]
            paeth = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
            guess = (0, left, up, (left + up) // 2, paeth)[kind]
            out.append((value - guess) & 255)
        yield bytes(out)
        before = row


def packed(samples, depth):
    """Packs rows of samples, `(H, W * samples)`, to bytes."""
    if depth == 16:
        return [row.astype(">u2").tobytes() for row in samples]
    if depth == 8:
        return [row.astype(np.uint8).tobytes() for row in samples]
    bits = (samples[:, :, None] >> np.arange(depth)[::-1]) & 1
    return [np.packbits(row).tobytes() for row in bits.reshape(len(samples), -1)]


def encode(
    height, width, colour, depth, *, before=(), after=(), interlaced=False, seed=0, top=None
):
    """Encodes noise; `top` is the highest sample."""
    draw = random.Random(seed)
    shape = (height, width, SAMPLES[colour])
    high = (1 << depth) if top is None else top + 1
    samples = np.random.default_rng(seed).integers(0, high, shape, dtype=np.uint32)
    parts = [samples]
    if interlaced:
        parts = [samples[y::down, x::across] for x, y, across, down in PASSES]
    rows = b"".join(
        b"".join(
            filtered(
                packed(part.reshape(part.shape[0], -1), depth), max(1, shape[2] * depth // 8), draw
            )
        )
        for part in parts
        if part.size
    )
    if colour == 3 and not any(name == b"PLTE" for name, _ in before):
        before = [(b"PLTE", draw.randbytes(3 * high)), *before]
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)),
            *[chunk(*each) for each in before],
            chunk(b"IDAT", zlib.compress(rows)),
            *[chunk(*each) for each in after],
            chunk(b"IEND"),
        ]
    )


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_equals_pillow(colour, depth, interlaced, mode):
    for size in [(1, 1), (1, 9), (13, 5), (20, 31)]:
        encoded = encode(*size, colour, depth, interlaced=interlaced)
        np.testing.assert_array_equal(read(encoded, mode), by_pillow(encoded, mode))


@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    kind=st.sampled_from(KINDS),
    interlaced=st.booleans(),
    mode=st.sampled_from(["RGB", "L"]),
    seed=st.integers(0, 1000),
)
def test_windows_equal_pillows_crop(size, kind, interlaced, mode, seed):
    encoded = encode(*size, *kind, interlaced=interlaced, seed=seed)
    window = (1 + seed % size[0], 1 + seed * 7 % size[1])
    made = read(encoded, mode, [("center_crop", *window)])
    np.testing.assert_array_equal(made, centre(by_pillow(encoded, mode), *window))


def test_the_numbers_of_16_bits_of_grey_are_clipped_as_by_pillow():
    encoded = encode(20, 20, 0, 16, top=300)
    made = read(encoded)
    assert 255 in made
    assert len(np.unique(made)) > 100
    np.testing.assert_array_equal(made, by_pillow(encoded))


TRANSPARENT = {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: bytes(range(0, 200, 7))}


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(("colour", "depth"), [kind for kind in KINDS if kind[0] in TRANSPARENT])
def test_transparent_colours_are_dropped_as_by_pillow(colour, depth, mode):
    for transparent in [TRANSPARENT[colour], *([b"\xff\0"] if colour == 3 else [])]:
        encoded = encode(9, 14, colour, depth, before=[(b"tRNS", transparent)])
        np.testing.assert_array_equal(read(encoded, mode), by_pillow(encoded, mode))


def test_files_of_pillow_equal_pillow():
    image = PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8))
    for made in [image, image.quantize(40), image.convert("1"), image.convert("LA")]:
        for options in [{}, {"optimize": True}, {"compress_level": 0}]:
            buffer = io.BytesIO()
            made.save(buffer, "PNG", **options)
            assert outcome(buffer.getvalue()) == "equal"


def test_an_index_beyond_the_palette_is_left_to_pillow():
    encoded = encode(9, 14, 3, 8, before=[(b"PLTE", bytes(range(30)))])
    with pytest.raises(OSError, match="palette is too short"):
        read(encoded)
    assert outcome(encode(9, 14, 3, 8, before=[(b"PLTE", bytes(range(30)))], top=9)) == "equal"


PROFILE = b"profile\0\0" + zlib.compress(bytes(range(256)) * 20)
TEXTS = [
    (b"gAMA", struct.pack(">I", 45455)),
    (b"cHRM", struct.pack(">8I", *range(8))),
    (b"sRGB", b"\0"),
    (b"pHYs", struct.pack(">IIB", 2835, 2835, 1)),
    (b"iCCP", PROFILE),
    (b"tEXt", b"Title\0photograph"),
    (b"zTXt", b"Comment\0\0" + zlib.compress(b"long" * 1000)),
    (b"zTXt", b"Noise\0\0" + zlib.compress(random.Random(0).randbytes(5000))),
    (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x/>"),
    (b"iTXt", b"Packed\0\1\0en\0word\0" + zlib.compress(b"text")),
    (b"eXIf", b"MM\0*\0\0\0\x08\0\0\0\0\0\0"),
    (b"tIME", bytes(7)),
    (b"prIv", b"whatever"),
]


@pytest.mark.parametrize("extra", TEXTS, ids=lambda extra: extra[0].decode())
def test_what_does_not_concern_pixels_is_skipped(extra):
    assert outcome(encode(9, 14, 2, 8, before=[extra])) == "equal"
    assert outcome(encode(9, 14, 2, 8, after=[extra])) == "equal"


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ((b"acTL", struct.pack(">II", 1, 0)), "animated"),
        ((b"fdAT", bytes(9)), "animated"),
        ((b"gAMA", b"\0"), "gAMA is too short"),
        ((b"tRNS", b"\0"), "tRNS is too short"),
        ((b"iCCP", b"profile\0\1x"), "unknown method"),
        ((b"zTXt", b"Bomb\0\0" + zlib.compress(bytes(2 << 20))), "too large when unpacked"),
        ((b"tEXt", b"interlace\0yes"), "keyword that Pillow uses for itself"),
        ((b"tEXt", b"transparency\0yes"), "keyword that Pillow uses for itself"),
        ((b"CRIT", b""), "CRIT is unknown"),
        ((b"IHDR", bytes(13)), "no other, must be IHDR"),
        ((b"PLTE", b"\0" * 4), "palette does not have 1 to 256 colours"),
        ((b"p!Vt", b""), "broken PNG file"),
    ],
    ids=lambda value: value[0].decode() if isinstance(value, tuple) else "",
)
def test_what_is_left_to_pillow_is_named(extra, reason):
    with pytest.raises(OSError, match=reason):
        read(encode(9, 14, 2, 8, before=[extra]))


@pytest.mark.parametrize("colour", [0, 2])
def test_unchanged_equals_torchvision(colour):
    encoded = encode(9, 14, colour, 8)
    np.testing.assert_array_equal(read(encoded, "torchvision UNCHANGED"), by_torchvision(encoded))


@pytest.mark.parametrize(
    ("colour", "depth"), [kind for kind in KINDS if kind not in [(0, 8), (2, 8)]]
)
def test_other_kinds_are_not_decoded_unchanged(colour, depth):
    with pytest.raises(OSError, match="8 bits, grey or RGB"):
        read(encode(9, 14, colour, depth), "torchvision UNCHANGED")


NEVER = {"different", "read alone"}


@pytest.mark.parametrize(
    ("colour", "depth", "interlaced"), [(2, 8, False), (3, 4, True), (0, 16, False)]
)
def test_cut_anywhere_it_is_refused_or_pillows(colour, depth, interlaced):
    encoded = encode(
        11, 13, colour, depth, interlaced=interlaced, before=TEXTS[:6], after=TEXTS[5:7]
    )
    found = Counter(outcome(encoded[:end]) for end in range(len(encoded) + 1))
    assert not NEVER & found.keys(), found
    assert found["equal"] == 1, found


@pytest.mark.parametrize(
    ("colour", "depth", "interlaced"), [(2, 8, False), (3, 4, True), (0, 16, False)]
)
def test_damaged_anywhere_it_is_refused_or_pillows(colour, depth, interlaced):
    encoded = encode(11, 13, colour, depth, interlaced=interlaced, before=TEXTS)
    draw = random.Random(colour)
    found = Counter()
    for _ in range(700):
        damaged = bytearray(encoded)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        found[outcome(bytes(damaged))] += 1
    assert not NEVER & found.keys(), found


@pytest.mark.parametrize(
    ("colour", "depth", "interlaced"), [(2, 8, False), (3, 4, True), (6, 16, True)]
)
def test_damaged_under_right_checksums_it_is_refused_or_pillows(colour, depth, interlaced):
    """Chunks are changed and given the checksum of what they hold by then."""
    encoded = encode(11, 13, colour, depth, interlaced=interlaced, before=TEXTS)
    draw = random.Random(colour)
    found = Counter()
    for _ in range(700):
        parts, at = [encoded[:8]], 8
        chosen = draw.randrange(3)
        while at < len(encoded):
            length = int.from_bytes(encoded[at : at + 4])
            name, data = encoded[at + 4 : at + 8], bytearray(encoded[at + 8 : at + 8 + length])
            if data and (name == b"IDAT" or (chosen == 0 and draw.random() < 0.2)):
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            parts.append(chunk(name, bytes(data)))
            at += length + 12
        found[outcome(b"".join(parts))] += 1
    assert not NEVER & found.keys(), found


def test_claims_of_enormous_size_are_refused():
    for size, reason in [(60000, "3600000000 pixels.*decompression bomb"), (9000, "implausible")]:
        encoded = bytearray(encode(9, 14, 2, 8))
        encoded[16:24] = struct.pack(">II", size, size)
        encoded[29:33] = struct.pack(">I", zlib.crc32(encoded[12:29]))
        with pytest.raises(OSError, match=reason):
            read(bytes(encoded))
