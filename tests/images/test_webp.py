"""WebP files, sound and damaged; Pillow is the oracle, run in the test."""

import io
import random
from collections import Counter

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .encoded import by_pillow, by_torchvision, centre, outcome, read
from .test_jpeg import photograph

KINDS = {
    "lossy": {"quality": 60},
    "lossless": {"lossless": True},
    "fast": {"quality": 90, "method": 0},
    "small": {"quality": 5, "method": 6},
    "with profile": {"icc_profile": bytes(200), "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"},
}


def encode(pixels, *, alpha=False, **options):
    if alpha:
        pixels = np.concatenate([pixels, pixels[:, ::-1, :1]], axis=2)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "WEBP", **options)
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_pillow(kind, alpha, mode):
    for size in [(1, 1), (2, 9), (37, 51), (120, 90)]:
        encoded = encode(photograph(*size), alpha=alpha, **KINDS[kind])
        np.testing.assert_array_equal(read(encoded, mode), by_pillow(encoded, mode))


@given(
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    kind=st.sampled_from(sorted(KINDS)),
    alpha=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_windows_equal_pillows_crop(size, kind, alpha, seed):
    encoded = encode(photograph(*size, seed), alpha=alpha, **KINDS[kind])
    window = (1 + seed % size[0], 1 + seed * 7 % size[1])
    made = read(encoded, ops=[("center_crop", *window)])
    np.testing.assert_array_equal(made, centre(by_pillow(encoded), *window))


@pytest.mark.parametrize("kind", ["lossy", "lossless"])
def test_unchanged_equals_torchvision(kind):
    encoded = encode(photograph(37, 51), **KINDS[kind])
    np.testing.assert_array_equal(read(encoded, "torchvision UNCHANGED"), by_torchvision(encoded))
    with pytest.raises(OSError, match="does not keep the alpha of a WebP"):
        read(encode(photograph(37, 51), alpha=True, **KINDS[kind]), "torchvision UNCHANGED")


def test_animations_are_left_to_pillow():
    buffer = io.BytesIO()
    first, *others = [PIL.Image.fromarray(photograph(20, 30, seed)) for seed in range(3)]
    first.save(buffer, "WEBP", save_all=True, append_images=others)
    with pytest.raises(OSError, match="animated WebP"):
        read(buffer.getvalue())


NEVER = {"different", "read alone"}


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("kind", ["lossy", "lossless", "with profile"])
def test_cut_anywhere_it_is_refused_or_pillows(kind, alpha):
    encoded = encode(photograph(20, 24), alpha=alpha, **KINDS[kind])
    found = Counter(outcome(encoded[:end]) for end in range(len(encoded) + 1))
    assert not NEVER & found.keys(), found
    assert found["equal"] >= 1, found


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("kind", ["lossy", "lossless", "with profile"])
def test_damaged_anywhere_it_is_refused_or_pillows(kind, alpha):
    encoded = encode(photograph(20, 24), alpha=alpha, **KINDS[kind])
    draw = random.Random(kind)
    found = Counter()
    for _ in range(700):
        damaged = bytearray(encoded)
        at = draw.choice([draw.randrange(len(damaged)), draw.randrange(min(len(damaged), 60))])
        damaged[at] ^= 1 << draw.randrange(8)
        found[outcome(bytes(damaged))] += 1
    assert not NEVER & found.keys(), found
    assert found["equal"] > 50, found


def test_claims_of_enormous_size_are_refused(monkeypatch):
    encoded = encode(photograph(20, 24))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 479)
    with pytest.raises(OSError, match=r"480 pixels.*limit of 479"):
        read(encoded)
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", None)
    vast = bytearray(encoded)
    vast[26:30] = b"\xff\x3f\xff\x3f"
    with pytest.raises(OSError, match=r"claims 268402689 pixels.*implausible"):
        read(bytes(vast))
