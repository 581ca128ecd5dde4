"""Scaling as torch scales uint8 tensors; torchvision's v2 is the oracle, run in the test."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional

from fastload import _lib
from fastload.images import kernels
from fastload.memory import layout

MODES = {
    ("torch", "nearest"): (InterpolationMode.NEAREST, True),
    ("torch", "nearest-exact"): (InterpolationMode.NEAREST_EXACT, True),
    ("torch", "bilinear"): (InterpolationMode.BILINEAR, True),
    ("torch", "bicubic"): (InterpolationMode.BICUBIC, True),
    ("torch", "lanczos"): (InterpolationMode.LANCZOS, True),
    ("torch_aliased", "bilinear"): (InterpolationMode.BILINEAR, False),
    ("torch_aliased", "bicubic"): (InterpolationMode.BICUBIC, False),
}
KERNELS = [
    kernel
    for kernel, (mode, antialias) in MODES.items()
    if kernels.torch_kernel(mode.value, antialias=antialias)
]
SMOOTH = [kernel for kernel in KERNELS if kernel[1] in ("bilinear", "bicubic")]
MOST_PIXELS = 20_000


def noise(height, width, channels=3, seed=0):
    """Noise with many extremes: sums are clipped at both ends."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.tensor([0, 255, 90, 170, 3, 254], dtype=torch.uint8)
    drawn = torch.randint(0, len(values), (height, width, channels), generator=draw)
    return values[drawn].permute(2, 0, 1)


def native(image, *ops):
    """Runs operations on a `(C, H, W)` tensor."""
    pixels = image.permute(1, 2, 0).contiguous()[None]
    rows = _lib.Rows(*layout.of_tensor(pixels))
    column = _lib.Image(rows, "RGB", list(ops), ("bytes", "chw"))
    return _lib.Program([column], 0).sample(0)


def oracle(image, size, kernel):
    mode, antialias = MODES[kernel]
    return functional.resize(image, list(size), interpolation=mode, antialias=antialias)


def check(image, size, kernel):
    made = native(image, ("resize", size, None, kernel))
    # For a single pixel of a contiguous image, torch fails with an assertion of its own.
    assert torch.equal(made, oracle(image, size, kernel))


@st.composite
def sizes(draw, low=1, high=5000):
    height = draw(st.integers(low, high))
    return height, draw(st.integers(low, max(low, min(high, MOST_PIXELS // height))))


CHANNELS = st.sampled_from([1, 3])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@given(before=sizes(), after=sizes(), channels=CHANNELS, seed=SEEDS)
def test_any_size_equals_torch(kernel, before, after, channels, seed):
    check(noise(*before, channels, seed), after, kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@given(before=sizes(high=90), after=sizes(high=90), channels=CHANNELS, seed=SEEDS)
def test_small_sizes_equal_torch(kernel, before, after, channels, seed):
    check(noise(*before, channels, seed), after, kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@pytest.mark.parametrize("size", [(64, 90), (64, 31), (200, 90), (128, 180), (32, 45)], ids=str)
def test_one_dimension_and_whole_ratios(kernel, size):
    check(noise(64, 90), size, kernel)


@pytest.mark.parametrize("kernel", SMOOTH, ids="-".join)
@pytest.mark.parametrize("image", [(375, 500), (500, 333), (1203, 1501)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_photographs_equal_torch(kernel, image, channels):
    picture = noise(*image, channels)
    mode, antialias = MODES[kernel]
    chain = v2.Compose([v2.Resize(256, mode, antialias=antialias), v2.CenterCrop(224)])
    made = native(picture, ("resize", 256, None, kernel), ("center_crop", 224, 224))
    assert torch.equal(made, chain(picture))


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@given(
    before=sizes(high=200),
    after=sizes(high=200),
    part=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=SEEDS,
)
def test_a_window_is_the_middle_of_the_whole(kernel, before, after, part, seed):
    image = noise(*before, seed=seed)
    window = [max(1, round(share * side)) for share, side in zip(part, after, strict=True)]
    made = native(image, ("resize", after, None, kernel), ("center_crop", *window))
    whole = oracle(image, after, kernel)
    assert torch.equal(made, functional.center_crop(whole, window))


@pytest.mark.parametrize("kernel", KERNELS, ids="-".join)
@given(before=sizes(high=120), after=sizes(2, 120), seed=SEEDS)
def test_memory_layout_does_not_matter(kernel, before, after, seed):
    image = noise(*before, seed=seed)
    inner = functional.crop(noise(before[0] + 3, before[1] + 5, seed=seed), 1, 2, *before)
    for picture in (image, image.contiguous(), inner, inner.contiguous()):
        check(picture, after, kernel)


@pytest.mark.parametrize("kernel", SMOOTH, ids="-".join)
def test_random_resized_crop_scales_as_torch(kernel):
    image = noise(80, 120)
    op = ("random_resized_crop", (40, 56), (1.0, 1.0), (1.5, 1.5), kernel)
    assert torch.equal(native(image, op), oracle(image, (40, 56), kernel))


@pytest.mark.parametrize("kernel", [("torch", "hamming"), ("torch_aliased", "lanczos")], ids=str)
def test_unknown_interpolations_are_refused(kernel):
    with pytest.raises(ValueError, match="unknown operation"):
        native(noise(4, 4), ("resize", 2, None, kernel))
    assert kernels.torch_kernel(kernel[1], antialias=kernel[0] == "torch") is None


def test_without_vectors_only_nearest_is_torchs():
    program = (
        "from fastload.images.kernels import torch_kernel, torch_luma\n"
        "names = 'nearest', 'nearest-exact', 'bilinear', 'bicubic', 'lanczos'\n"
        "assert [n for n in names if torch_kernel(n)] == ['nearest']\n"
        "assert torch_luma(2) is None\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=60,
        env={"ATEN_CPU_CAPABILITY": "default", "PYTHONPATH": ":".join(sys.path)},
    )
