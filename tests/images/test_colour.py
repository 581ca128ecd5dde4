"""Operations on colours; torchvision's functional on Pillow's image is the oracle, run in the test."""

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms import functional

from fastload import _lib

ORACLES = {
    "brightness": functional.adjust_brightness,
    "contrast": functional.adjust_contrast,
    "saturation": functional.adjust_saturation,
    "hue": functional.adjust_hue,
    "sharpness": functional.adjust_sharpness,
    "invert": functional.invert,
    "posterize": functional.posterize,
    "solarize": functional.solarize,
    "autocontrast": functional.autocontrast,
    "equalize": functional.equalize,
}


def program(pixels, *ops):
    """Returns what applies `ops` to one image, an array `(H, W)` or `(H, W, 3)`."""
    pixels = np.ascontiguousarray(pixels)[None]
    address = pixels.__array_interface__["data"][0]
    rows = _lib.Rows(address, pixels.shape, pixels.strides, "uint8", pixels)
    image = _lib.Image(rows, "RGB", list(ops), ("bytes", "hwc"))
    return _lib.Program([image], 0)


def ours(pixels, *ops):
    """Returns the image that native code makes of an array."""
    return program(pixels, *ops).sample(0).numpy()


def assert_same(pixels, name, *arguments):
    expected = np.array(ORACLES[name](PIL.Image.fromarray(pixels), *arguments))
    made = ours(pixels, (name, *arguments))
    assert np.array_equal(made, expected.reshape(made.shape))


@st.composite
def images(draw, longest=200):
    """Noise of any range, grey or RGB: also images of few values, or of one."""
    height, width = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    grey = draw(st.booleans())
    low, high = sorted(draw(st.tuples(st.integers(0, 255), st.integers(0, 255))))
    noise = np.random.default_rng(draw(st.integers(0, 99)))
    shape = (height, width) if grey else (height, width, 3)
    pixels = noise.integers(low, high, shape, np.uint8, endpoint=True)
    if draw(st.booleans()):  # most of one value, so that the histogram is steep
        pixels[noise.random(shape) < 0.9] = draw(st.sampled_from([0, low, high, 255]))
    return pixels


FACTORS = st.one_of(
    st.sampled_from([0, 1, 0.5, 2, -1, 1e-9, 1 - 1e-9, 1 + 1e-7, 1e6, -1e6, 1e30]),
    st.floats(0, 1),
    st.floats(-3, 4),
)
BLENDS = ["brightness", "contrast", "saturation", "sharpness"]


@pytest.mark.parametrize("name", BLENDS)
@given(pixels=images(), factor=FACTORS)
def test_enhancements_equal_pillow(name, pixels, factor):
    assert_same(pixels, name, factor)


@given(pixels=images(), factor=st.sampled_from([-0.5, 0.5, 0, 1e-9, -0.1]) | st.floats(-0.5, 0.5))
def test_hue_equals_torchvision(pixels, factor):
    assert_same(pixels, "hue", factor)


@pytest.mark.parametrize("name", ["invert", "autocontrast", "equalize"])
@given(pixels=images())
def test_operations_without_arguments_equal_pillow(name, pixels):
    assert_same(pixels, name)


@pytest.mark.parametrize("bits", range(1, 9))
@given(pixels=images(20))
def test_posterize_equals_pillow(bits, pixels):
    assert_same(pixels, "posterize", bits)


@given(pixels=images(20), threshold=st.integers(-1, 257) | st.floats(0, 256))
def test_solarize_equals_pillow(pixels, threshold):
    assert_same(pixels, "solarize", threshold)


@given(pixels=images(), channels=st.sampled_from([1, 3]))
def test_grayscale_equals_torchvision(pixels, channels):
    image = PIL.Image.fromarray(pixels)
    expected = np.array(functional.to_grayscale(image, channels))
    made = ours(pixels, ("grayscale", channels, "pillow"))
    assert made.shape == (*pixels.shape[:2], channels)
    assert np.array_equal(made, expected.reshape(made.shape))


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale_decides_the_shape_of_all_samples(channels):
    made = program(NOISE[:4, :5], ("grayscale", channels, "pillow"), ("invert",))
    assert made.layout() == [((4, 5, channels), "uint8")]


@st.composite
def blurs(draw):
    """An image, and the kernel's sizes and sigmas that fit it."""
    height, width = draw(st.integers(1, 100)), draw(st.integers(1, 100))
    noise = np.random.default_rng(draw(st.integers(0, 99)))
    pixels = noise.integers(0, 255, (height, width, 3), np.uint8, endpoint=True)
    sizes = [2 * draw(st.integers(0, min(11, side - 1))) + 1 for side in (width, height)]
    return pixels, sizes, [draw(st.floats(0.1, 3)) for _ in sizes]


def weights(size, sigma):
    """One dimension of torchvision's kernel, by the same operations of torch."""
    half = (size - 1) * 0.5
    places = torch.linspace(-half, half, steps=size)
    bell = torch.exp(-0.5 * (places / sigma).pow(2))
    return (bell / bell.sum()).tolist()


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="torch adds in an order of its own",
)
@given(blur=blurs())
def test_gaussian_blur_equals_torchvision(blur):
    pixels, sizes, sigmas = blur
    expected = np.array(functional.gaussian_blur(PIL.Image.fromarray(pixels), sizes, sigmas))
    made = ours(pixels, ("gaussian_blur", *map(weights, sizes, sigmas)))
    assert np.array_equal(made, expected)


COLOURS = np.arange(0, 256, 3, dtype=np.uint8)
GRID = np.stack(np.meshgrid(COLOURS, COLOURS, COLOURS), -1).reshape(-1, len(COLOURS), 3)
NOISE = np.random.default_rng(0).integers(0, 255, (700, 1000, 3), np.uint8, endpoint=True)


@pytest.mark.parametrize("pixels", [GRID, NOISE], ids=["grid", "noise"])
@pytest.mark.parametrize("factor", [-0.5, -0.21, -0.004, 0, 0.1, 0.34, 0.5])
def test_every_kind_of_colour_is_turned_as_by_torchvision(pixels, factor):
    assert_same(pixels, "hue", factor)


@pytest.mark.parametrize("pixels", [GRID, NOISE], ids=["grid", "noise"])
def test_every_kind_of_colour_is_as_grey_as_with_pillow(pixels):
    made = ours(pixels, ("grayscale", 1, "pillow"))
    assert np.array_equal(made[..., 0], np.array(PIL.Image.fromarray(pixels).convert("L")))


EACH = [
    *((name, 1.7) for name in BLENDS),
    ("hue", 0.2),
    ("invert",),
    ("posterize", 3),
    ("solarize", 100.5),
    ("autocontrast",),
    ("equalize",),
]


@pytest.mark.parametrize("op", EACH, ids=lambda op: op[0])
def test_a_part_of_an_image_is_changed_as_if_it_were_the_image(op):
    pixels = NOISE[:50, :70]
    middle = np.ascontiguousarray(pixels[10:40, 20:50])
    assert np.array_equal(ours(pixels, ("center_crop", 30, 30), op), ours(middle, op))


def test_a_chain_is_as_torchvisions():
    pixels = NOISE[:64, :64]
    image = PIL.Image.fromarray(pixels)
    for name, *arguments in EACH:
        image = ORACLES[name](image, *arguments)
    expected = np.array(functional.to_grayscale(image, 3))
    assert np.array_equal(ours(pixels, *EACH, ("grayscale", 3, "pillow")), expected)


@pytest.mark.parametrize(
    "op",
    [
        *((name, factor) for name in BLENDS for factor in (1e39, -np.inf, np.nan)),
        ("hue", 0.5001),
        ("hue", np.nan),
        ("posterize", 0),
        ("posterize", 9),
        ("gaussian_blur", [0.5, 0.5], [1.0]),
        ("grayscale", 2, "pillow"),
        ("grayscale", 1, "opencv"),
        ("vignette", 1),
    ],
    ids=str,
)
def test_what_has_no_defined_result_is_refused(op):
    with pytest.raises(ValueError, match=r"^cannot |^unknown operation: "):
        ours(NOISE[:16, :16], op)


def test_gaussian_blur_refuses_a_border_that_is_wider_than_the_image():
    op = ("gaussian_blur", [0.0] * 17 + [1.0] + [0.0] * 17, [1.0])
    with pytest.raises(RuntimeError, match="Padding size should be less than"):
        ours(NOISE[:16, :16], op)


def test_gaussian_blur_refuses_what_torch_adds_in_another_order():
    with pytest.raises(ValueError, match="an order of its own"):
        ours(np.zeros((9, 9), np.uint8), ("gaussian_blur", weights(3, 1), weights(3, 1)))
