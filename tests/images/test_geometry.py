"""Turned, moved and padded images; torchvision on Pillow's image is the oracle, run in the test."""

import math

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torchvision import transforms as theirs
from torchvision.transforms import InterpolationMode, functional
from torchvision.transforms.v2.functional import pad as pad_tensor

from fastload import _lib

FILTERS = ["nearest", "bilinear", "bicubic"]
MODES = ["constant", "edge", "reflect", "symmetric"]


def noise(shape):
    """Bytes in which black and white are frequent: bicubic sums are clipped at both ends."""
    draw = np.random.default_rng(sum(shape))
    shades = np.r_[0, 255, 0, 255, np.arange(256)].astype(np.uint8)
    return draw.choice(shades, shape)


def column(pixels, *ops):
    rows = _lib.Rows(pixels.ctypes.data, pixels.shape, pixels.strides, "uint8", pixels)
    return _lib.Program([_lib.Image(rows, "RGB", list(ops), ("bytes", "hwc"))], 0)


def native(pixels, *ops):
    """Returns the image that operations make of `pixels`, of shape `(H, W)` or `(H, W, 3)`."""
    sample = column(pixels[None], *ops).sample(0)
    return sample.squeeze(-1) if pixels.ndim == 2 else sample


def same(pixels, op, expected):
    assert torch.equal(native(pixels, op), torch.from_numpy(np.array(expected)))


def fill_of(pixels, fill):
    """Returns `fill` as torchvision takes it for an image like `pixels`."""
    return None if fill is None else list(fill[: pixels.shape[2]]) if pixels.ndim == 3 else fill[0]


SIDES = st.integers(1, 40) | st.integers(1, 150)
IMAGES = st.tuples(SIDES, SIDES) | st.tuples(SIDES, SIDES, st.just(3))
FILLS = st.none() | st.tuples(*[st.integers(0, 255)] * 3)
QUARTERS = st.sampled_from([-90, 0, 90, 180, 270, 360, 450])
ANGLES = QUARTERS | st.integers(-360, 360) | st.floats(-720, 720)
CENTERS = st.none() | st.tuples(*[st.floats(-20, 170) | st.integers(0, 150)] * 2)


@given(
    image=IMAGES,
    angle=ANGLES,
    interpolation=st.sampled_from(FILTERS),
    expand=st.booleans(),
    center=CENTERS,
    fill=FILLS,
)
@example((7, 7), 90, "nearest", False, None, None)
@example((7, 9, 3), 90, "bilinear", False, None, None)
@example((7, 9, 3), 270, "bicubic", True, None, (1, 2, 3))
@example((7, 9), 180, "nearest", True, (0, 0), None)
@example((7, 9), -1e-300, "nearest", False, None, None)
def test_rotations_equal_torchvision(image, angle, interpolation, expand, center, fill):
    pixels = noise(image)
    source = PIL.Image.fromarray(pixels)
    mode = InterpolationMode(interpolation)
    expected = functional.rotate(source, angle, mode, expand, center, fill_of(pixels, fill))
    same(pixels, ("rotate_fixed", angle, interpolation, expand, center, fill), expected)


@given(
    image=IMAGES,
    angle=st.just(0) | ANGLES,
    translate=st.tuples(*[st.integers(-50, 50)] * 2),
    scale=st.sampled_from([1, 0.5, 2]) | st.floats(0.05, 20),
    shear=st.just((0, 0)) | st.tuples(*[st.just(0) | st.floats(-89, 89)] * 2),
    interpolation=st.sampled_from(FILTERS),
    center=CENTERS,
    fill=FILLS,
)
@example((9, 9), 0, (0, 0), 2.5, (0, 0), "nearest", None, (9, 8, 7))
@example((9, 9, 3), 0, (1, -2), 1, (0, 0), "bilinear", (0, 0), None)
def test_movements_equal_torchvision(
    image, angle, translate, scale, shear, interpolation, center, fill
):
    pixels = noise(image)
    source, mode = PIL.Image.fromarray(pixels), InterpolationMode(interpolation)
    expected = functional.affine(
        source, angle, translate, scale, shear, mode, fill_of(pixels, fill), center
    )
    op = ("affine_fixed", angle, translate, scale, shear, center, interpolation, fill)
    same(pixels, op, expected)


@given(
    exponent=st.floats(-6, 1),
    angle=st.sampled_from([0, 1e-3, 30, 45]),
    translate=st.tuples(*[st.integers(-40000, 40000)] * 2),
    shear=st.sampled_from([0, 80, 89.99, 89.9999]),
)
@example(-4.0, 30, (0, 0), 0)
def test_far_positions_equal_torchvision(exponent, angle, translate, shear):
    """Beyond 16.16 fixed point, Pillow adds doubles."""
    pixels, scale = noise((13, 17)), 10**exponent
    source = PIL.Image.fromarray(pixels)
    expected = functional.affine(source, angle, translate, scale, [shear, 0.0], fill=7)
    op = ("affine_fixed", angle, translate, scale, (shear, 0), None, "nearest", (7, 7, 7))
    same(pixels, op, expected)


@pytest.mark.parametrize("scale", [1e-200, 0.0])
@pytest.mark.parametrize("interpolation", FILTERS)
def test_positions_that_are_no_numbers_are_refused(interpolation, scale):
    op = ("affine_fixed", 30, (0, 0), scale, (0, 0), None, interpolation, None)
    with pytest.raises(ValueError, match=r"cannot map an image by the affine matrix"):
        native(noise((5, 6)), op)


def test_every_angle_has_the_c_librarys_sine():
    """One matrix per angle: a sine of another last bit would move some pixel of a large result."""
    pixels = noise((64, 64, 3))
    source = PIL.Image.fromarray(pixels)
    for angle in np.random.default_rng(0).uniform(-180, 180, 300).tolist():
        mode = InterpolationMode.BILINEAR
        same(
            pixels,
            ("affine_fixed", angle, (0, 0), 1, (angle / 3, 0), None, "bilinear", None),
            functional.affine(source, angle, [0, 0], 1, [angle / 3, 0.0], mode),
        )


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("slope", [-0.3, 0.0, 0.99])
@pytest.mark.parametrize("name", ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"])
def test_auto_augments_parameters_are_those_of_affine(name, slope, interpolation):
    pixels = noise((30, 41, 3))
    magnitude = slope if name.startswith("Shear") else 40 * slope
    degrees, mode = math.degrees(math.atan(slope)), InterpolationMode(interpolation)
    moved = (0, (int(magnitude), 0)[:: 1 if name[-1] == "X" else -1], 1)
    op = {
        "ShearX": ("affine_fixed", 0, (0, 0), 1, (degrees, 0), (0, 0), interpolation, None),
        "ShearY": ("affine_fixed", 0, (0, 0), 1, (0, degrees), (0, 0), interpolation, None),
        "TranslateX": ("affine_fixed", *moved, (0, 0), None, interpolation, None),
        "TranslateY": ("affine_fixed", *moved, (0, 0), None, interpolation, None),
        "Rotate": ("rotate_fixed", magnitude, interpolation, False, None, None),
    }[name]
    apply = theirs.autoaugment._apply_op
    same(pixels, op, apply(PIL.Image.fromarray(pixels), name, magnitude, mode, None))


@given(image=IMAGES, mode=st.sampled_from(MODES), fill=FILLS, data=st.data())
def test_pads_equal_torchvision(image, mode, fill, data):
    pixels = noise(image)
    most = min(image[:2]) - (mode == "reflect")
    padding = data.draw(st.tuples(*[st.integers(0, min(most, 20))] * 4))
    op = ("pad", padding, fill or (0, 0, 0), mode)
    expected = functional.pad(
        PIL.Image.fromarray(pixels), list(padding), fill_of(pixels, fill) or 0, mode
    )
    same(pixels, op, expected)
    planes = torch.from_numpy(pixels).reshape(*image[:2], -1).permute(2, 0, 1)
    constant = (fill or (0, 0, 0))[: len(planes)] if mode == "constant" else 0
    tensor = pad_tensor(planes, list(padding), constant, mode).permute(1, 2, 0)
    assert torch.equal(native(pixels, op), tensor.reshape_as(native(pixels, op)))


def test_more_than_an_image_pads_with_its_edge():
    pixels = noise((3, 1, 3))
    expected = functional.pad(PIL.Image.fromarray(pixels), [9, 8, 7, 6], padding_mode="edge")
    same(pixels, ("pad", (9, 8, 7, 6), (0, 0, 0), "edge"), expected)


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(*[st.integers(0, 40)] * 4),
    st.sampled_from(["reflect", "symmetric"]),
)
def test_images_are_mirrored_as_often_as_it_takes(size, padding, mode):
    pixels = noise((*size, 3))
    expected = functional.pad(PIL.Image.fromarray(pixels), list(padding), padding_mode=mode)
    same(pixels, ("pad", padding, (0, 0, 0), mode), expected)


@pytest.mark.parametrize(
    "op",
    [
        ("pad", (-1, 0, 0, 0), (0, 0, 0), "constant"),
        ("pad", (1, 0, 0, 0), (0, 0, 0), "wrap"),
        ("rotate_fixed", 1, "lanczos", False, None, None),
        ("affine_fixed", 0, (0, 0), 1, (0, 0), None, "box", None),
    ],
    ids=str,
)
def test_what_is_not_understood_is_refused(op):
    with pytest.raises((ValueError, OverflowError)):
        native(noise((4, 5)), op)


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (("pad", (1, 2, 3, 4), (0, 0, 0), "edge"), (16, 24, 3)),
        (("affine_fixed", 10, (0, 0), 1, (0, 0), None, "nearest", None), (10, 20, 3)),
        (("rotate_fixed", 10, "nearest", False, None, None), (10, 20, 3)),
        (("rotate_fixed", 90, "nearest", True, None, None), (20, 10, 3)),
        (("rotate_fixed", 45, "nearest", True, None, None), (22, 22, 3)),
    ],
    ids=str,
)
def test_the_shape_of_samples_is_known_beforehand(op, shape):
    program = column(noise((2, 10, 20, 3)), op)
    assert program.layout() == [(shape, "uint8")]
    assert program.sample(1).shape == shape


@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("kernel", "shape", "down_first"),
    [
        ("pillow", (909, 9, 3), False),
        ("pillow12.2", (900, 9, 3), False),
        ("pillow12.2", (909, 9, 3), True),
        ("pillow13", (900, 9, 3), True),
    ],
)
def test_tall_images_are_resized_in_the_order_of_the_version(kernel, shape, down_first, name):
    pixels = noise(shape)
    filter_ = PIL.Image.Resampling[name.upper()]
    between = (9, 31) if down_first else (7, shape[0])
    expected = PIL.Image.fromarray(pixels).resize(between, filter_).resize((7, 31), filter_)
    made = native(pixels, ("resize", (31, 7), None, (kernel, name)))
    assert torch.equal(made, torch.from_numpy(np.array(expected)))


def test_shapes_depend_on_files_where_the_result_is_expanded(tmp_path):
    path = tmp_path / "image.png"
    ops = [("resize", (10, 20), None, ("pillow", "bilinear"))]
    turned = ("rotate_fixed", 45, "nearest", True, None, None)
    known = _lib.Image([str(path)], "RGB", [*ops, turned], ("bytes", "hwc"))
    unknown = _lib.Image([str(path)], "RGB", [turned], ("bytes", "hwc"))
    shapes = [shape for shape, _ in _lib.Program([known, unknown], (0, 1)).layout()]
    assert shapes == [(22, 22, 3), None]


def test_chains_see_one_anothers_pixels():
    pixels = noise((30, 40, 3))
    sample = native(
        pixels,
        ("center_crop", 25, 31),
        ("pad", (4, 4, 4, 4), (9, 8, 7), "reflect"),
        ("rotate_fixed", 33, "bilinear", True, None, (1, 2, 3)),
        ("resize", (24, 36), None, ("pillow13", "bilinear")),
        ("affine_fixed", 5, (1, 2), 1.2, (3, 4), None, "bicubic", None),
        ("center_crop", 20, 20),
    )
    image = functional.pad(
        functional.center_crop(PIL.Image.fromarray(pixels), [25, 31]), 4, 0, "reflect"
    )
    image = functional.rotate(image, 33, InterpolationMode.BILINEAR, expand=True, fill=[1, 2, 3])
    image = functional.resize(image, [24, 36])
    image = functional.affine(image, 5, [1, 2], 1.2, [3, 4], InterpolationMode.BICUBIC)
    expected = np.array(functional.center_crop(image, [20, 20]))
    assert torch.equal(sample, torch.from_numpy(expected))
