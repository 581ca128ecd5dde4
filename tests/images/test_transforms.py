"""Transforms of images; torchvision on Pillow's image is the oracle, run in the test."""

import copy
import io
import pickle

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision import transforms as theirs
from torchvision.transforms import InterpolationMode

from fastload import transforms as ours
from fastload.columns import Image

FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photograph(height, width, seed=0):
    """Noise between black and white: sums are clipped at both ends."""
    draw = np.random.default_rng(seed)
    return draw.choice(np.array([0, 255, 90, 170], np.uint8), (height, width, 3))


@pytest.fixture
def same(tmp_path):
    path = tmp_path / "image.jpg"

    def same(pixels, pairs):
        """Compares the chain of our transforms with torchvision's, given as pairs."""
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
        path.write_bytes(buffer.getvalue())
        sample = Image([path], transform=[mine for mine, _ in pairs])[0]
        with PIL.Image.open(path) as image:
            expected = theirs.Compose([other for _, other in pairs])(image.convert("RGB"))
        if isinstance(expected, PIL.Image.Image):
            expected = torch.from_numpy(np.array(expected))
        assert sample.dtype == expected.dtype
        assert sample.shape == expected.shape
        assert sample.is_contiguous()
        assert torch.equal(sample, expected)

    return same


def resize(size, interpolation="bilinear"):
    mode = InterpolationMode(interpolation)
    return ours.Resize(size, interpolation), theirs.Resize(size, mode)


def crop(size):
    return ours.CenterCrop(size), theirs.CenterCrop(size)


TO_TENSOR = (ours.ToTensor(), theirs.ToTensor())
NORMALIZE = (ours.Normalize(MEAN, STD), theirs.Normalize(MEAN, STD))


@pytest.mark.parametrize("size", [1, 31, 64, 100, (1, 1), (40, 100), (64, 90), (200, 5)], ids=str)
@pytest.mark.parametrize("image", [(64, 100), (101, 67), (1, 1), (1, 50), (33, 2)], ids=str)
@pytest.mark.parametrize("interpolation", FILTERS)
def test_resize_equals_pillow(same, interpolation, image, size):
    same(photograph(*image), [resize(size, interpolation)])


@pytest.mark.parametrize("size", [(3, 9), (300, 20), (20, 300), (4000, 2)], ids=str)
@pytest.mark.parametrize("image", [(5000, 3), (2, 5000), (1203, 1501)], ids=str)
@pytest.mark.parametrize("interpolation", FILTERS)
def test_extreme_proportions_equal_pillow(same, interpolation, image, size):
    same(photograph(*image), [resize(size, interpolation)])


SIDES = st.integers(1, 120)
SIZES = st.tuples(SIDES, SIDES)


@given(
    image=SIZES,
    size=SIZES | st.integers(1, 60),
    cut=st.none() | SIZES,
    interpolation=st.sampled_from(FILTERS),
    floats=st.booleans(),
)
def test_any_chain_equals_torchvision(same, image, size, cut, interpolation, floats):
    chain = [resize(size, interpolation)]
    chain += [] if cut is None else [crop(cut)]
    chain += [TO_TENSOR, NORMALIZE] if floats else []
    same(photograph(*image, seed=sum(image)), chain)


@given(height=st.integers(1, 100), to=st.integers(1, 100), width=st.integers(1, 30), data=st.data())
def test_the_order_of_passes_is_that_of_the_pillow_installed(same, height, to, width, data):
    """Widths around the one where Pillow 13 changes the order."""
    turn = width - (height - to) // 2
    other = data.draw(st.integers(max(1, turn - 2), max(1, turn + 2)))
    same(photograph(height, width), [resize((to, other))])


@given(image=SIZES, cut=SIZES | SIDES)
def test_center_crop_equals_torchvision(same, image, cut):
    same(photograph(*image), [crop(cut), TO_TENSOR])


@pytest.mark.parametrize(
    "chain",
    [
        [],
        [TO_TENSOR],
        [TO_TENSOR, NORMALIZE],
        [TO_TENSOR, NORMALIZE, NORMALIZE],
        [crop(40), resize(60), crop((30, 61)), crop(70), resize((9, 5)), TO_TENSOR],
        [resize((50, 70)), resize(20), resize((50, 70), "lanczos"), TO_TENSOR],
        [TO_TENSOR, (ours.Normalize([0.5], [0.25]), theirs.Normalize([0.5], [0.25]))],
    ],
    ids=str,
)
def test_chains_equal_torchvision(same, chain):
    same(photograph(61, 83), chain)


def test_every_byte_normalizes_as_torchvision(same):
    shades = np.arange(256, dtype=np.uint8).reshape(16, 16)
    blocks = np.kron(shades, np.ones((8, 8), np.uint8))  # flat blocks survive compression
    same(np.stack([blocks] * 3, -1), [TO_TENSOR, NORMALIZE])


def test_normalize_takes_the_tensors_dtype_as_torchvision():
    values = torch.rand(3, 4, 5)
    torch.set_default_dtype(torch.float64)
    try:
        mine, other = NORMALIZE[0]._apply(values.flatten(1)), NORMALIZE[1](values)
        assert mine.dtype == other.dtype
        assert torch.equal(mine, other.flatten(1))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("mode", [mode for mode in InterpolationMode if mode.value in FILTERS])
def test_torchvisions_interpolation_modes_are_understood(mode):
    assert ours.Resize(8, mode) == ours.Resize(8, interpolation=mode.value)


EACH = [
    (ours.Resize(8), "Resize(8, interpolation='bilinear')"),
    (ours.Resize([4, 6], "box"), "Resize((4, 6), interpolation='box')"),
    (ours.CenterCrop(5), "CenterCrop((5, 5))"),
    (ours.CenterCrop((5, 7)), "CenterCrop((5, 7))"),
    (ours.ToTensor(), "ToTensor()"),
    (ours.Normalize([0.5], [1, 2, 3]), "Normalize((0.5, 0.5, 0.5), (1.0, 2.0, 3.0))"),
]


@pytest.mark.parametrize(("transform", "text"), EACH, ids=lambda value: str(value))
def test_a_transform_is_a_value(transform, text):
    assert repr(transform) == text
    assert eval(text, vars(ours)) == transform
    for other in (pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)):
        assert other == transform
        assert hash(other) == hash(transform)
    with pytest.raises((AttributeError, TypeError)):
        transform.size = 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ours.Resize(0), ValueError, "Resize: size should be between 1 and"),
        (lambda: ours.Resize((3, -1)), ValueError, r"but got \(3, -1\)"),
        (lambda: ours.Resize((3, 4, 5)), ValueError, "one or two values, but got 3"),
        (lambda: ours.Resize(()), ValueError, "one or two values, but got 0"),
        (lambda: ours.Resize(2.5), TypeError, r"an int or \(height, width\), but got 2.5"),
        (lambda: ours.Resize("12"), TypeError, "but got '12'"),
        (lambda: ours.Resize(8, "linear"), ValueError, "bilinear', .* but got 'linear'"),
        (lambda: ours.Resize(8, []), ValueError, "interpolation should be one of"),
        (
            lambda: ours.Resize(8, InterpolationMode.NEAREST_EXACT),
            ValueError,
            "but got 'nearest-exact'",
        ),
        (lambda: ours.CenterCrop(None), TypeError, "CenterCrop: size should be an int"),
        (lambda: ours.CenterCrop(2**31), ValueError, "CenterCrop: size should be between"),
        (
            lambda: ours.Normalize(0.5, [1.0]),
            TypeError,
            "mean should be a sequence of numbers, but got 0.5",
        ),
        (
            lambda: ours.Normalize([0.5, 0.5], [1.0]),
            ValueError,
            "mean should have one value or one per",
        ),
        (lambda: ours.Normalize([0.5], [1.0, 0.0, 1.0]), ValueError, "would divide by zero"),
        (lambda: ours.Normalize([0.5], [float("nan")]), ValueError, "std should be finite"),
    ],
)
def test_arguments_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        ([ours.Normalize(MEAN, STD)], r"cannot normalize bytes: put ToTensor\(\) before"),
        ([ours.ToTensor(), ours.Resize(8)], r"put Resize before ToTensor\(\)"),
        ([ours.ToTensor(), ours.CenterCrop(8)], r"put CenterCrop before ToTensor\(\)"),
        ([ours.ToTensor(), ours.ToTensor()], "leave the second one out"),
        ([ours.ToTensor(), ours.Normalize([0.5], [1e-60])], "std that is 0 in single precision"),
    ],
)
def test_an_order_that_means_nothing_is_refused(chain, message):
    with pytest.raises(ValueError, match=message):
        Image(["any.jpg"], transform=chain)


@pytest.mark.parametrize("size", [(2**31 - 1, 2**31 - 1), (2**31 - 1, 1), (1, 2**31 - 1)], ids=str)
def test_a_size_beyond_memory_is_an_error(tmp_path, size):
    path = tmp_path / "image.jpg"
    PIL.Image.fromarray(photograph(8, 8)).save(path)
    column = Image([path], transform=ours.Resize(size))
    with pytest.raises((ValueError, MemoryError), match=r"memory|allocate"):
        column[0]
