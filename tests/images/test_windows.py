"""Windows of images: a part is decoded, and has the pixels of the whole; Pillow is the oracle."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .encoded import by_pillow, centre, outcome, read
from .test_jpeg import KINDS, encode, photograph, with_sampling

CODINGS = {
    **KINDS,
    "progressive 4:4:4": {"progressive": True, "subsampling": "4:4:4"},
    "progressive 4:2:2": {"progressive": True, "subsampling": "4:2:2"},
}


@given(
    size=st.tuples(st.integers(1, 130), st.integers(1, 130)),
    part=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    kind=st.sampled_from(sorted(CODINGS)),
    source=st.sampled_from(["RGB", "L", "CMYK"]),
    mode=st.sampled_from(["RGB", "L"]),
)
def test_a_window_equals_pillows_crop(size, part, kind, source, mode):
    window = tuple(1 + int(share * (side - 1)) for share, side in zip(part, size, strict=True))
    options = CODINGS[kind]
    if source != "RGB":
        options = {key: value for key, value in options.items() if key != "keep_rgb"}
    encoded = encode(photograph(*size), source, **options)
    made = read(encoded, mode, [("center_crop", *window)])
    np.testing.assert_array_equal(made, centre(by_pillow(encoded, mode), *window))


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("factors", [(4, 1), (1, 4), (1, 2), (2, 4), (4, 2), (4, 4)], ids=str)
@pytest.mark.parametrize("window", [(1, 1), (9, 20), (33, 47)], ids=str)
def test_windows_of_unusual_sampling_equal_pillow(factors, progressive, window):
    encoded = with_sampling(
        encode(photograph(90, 110), subsampling=0, progressive=progressive), factors
    )
    found = outcome(encoded, window=window)
    assert found in {"equal", "refused by both"}


@pytest.mark.parametrize("kind", ["4:2:0", "4:4:4", "progressive", "restart markers"])
def test_a_window_of_a_file_cut_anywhere_is_read_or_refused_as_pillow_does(kind):
    encoded = encode(photograph(40, 48), **KINDS[kind])
    for window in [(5, 7), (30, 10)]:
        found = Counter(outcome(encoded[:end], window=window) for end in range(len(encoded) + 1))
        assert found.keys() == {"equal", "refused by both"}, found


@pytest.mark.parametrize("kind", ["4:2:0", "4:4:4", "progressive", "restart markers"])
def test_a_window_of_a_damaged_file_has_pillows_pixels(kind):
    encoded = encode(photograph(60, 70), **KINDS[kind])
    draw = random.Random(kind)
    found = Counter()
    for _ in range(600):
        damaged = bytearray(encoded)
        for _ in range(draw.choice([1, 1, 3])):
            damaged[draw.randrange(len(damaged))] = draw.choice(
                [0, 0xD9, 0xFF, 0xD0, draw.randrange(256)]
            )
        found[outcome(bytes(damaged), window=(draw.randint(1, 40), draw.randint(1, 50)))] += 1
    assert found.keys() <= {"equal", "refused by both", "padded"}, found
    assert found["equal"] > 100, found


def test_progressive_files_that_lack_scans_are_smoothed_as_by_pillow():
    encoded = encode(photograph(64, 80), progressive=True)
    scans = [at for at in range(len(encoded)) if encoded[at : at + 2] == b"\xff\xda"]
    for end in scans[1:]:
        part = encoded[:end] + b"\xff\xd9"
        assert outcome(part) == "equal"
        assert outcome(part, window=(20, 30)) == "equal"
