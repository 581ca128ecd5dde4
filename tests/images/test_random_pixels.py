"""Given the parameters that are drawn, pixels are torchvision's; its functions are run in the test."""

import re
import struct

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import transforms
from torchvision.transforms import InterpolationMode, _functional_tensor
from torchvision.transforms.v2.functional import _misc

from fastload import _lib
from fastload.lowering import torchvision_blur as blur
from tests.shared.plans import FLOATS, carry_out, column, photograph, plans_of, sample

KERNELS = [("pillow13", "bilinear"), ("pillow13", "bicubic")]
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
GREY = (128, 128, 128)
JITTER = ("color_jitter", (0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1))
FLIP = ("flip", 0.5, False)


def random_blur(kernel, size=(5, 3), sigma=(0.1, 2.0)):
    def weights(size, sigma):
        return kernel(size, sigma, torch.float32, torch.device("cpu"))

    return blur.random_gaussian_blur(size, sigma, weights)


BLUR = random_blur(_functional_tensor._get_gaussian_kernel1d)

CHAINS = [
    [("random_crop", (20, 30), None, False, (0, 0, 0), "constant", "v1")],
    [("random_crop", (40, 60), (1, 2, 3, 4), True, (1, 2, 3), "constant", "v1")],
    [("random_crop", (40, 60), (1, 2, 3, 4), True, (0, 0, 0), "edge", "v1")],
    [("random_crop", (40, 58), (4, 3, 2, 1), False, (0, 0, 0), "reflect", "v1")],
    [("random_crop", (40, 58), (4, 3, 2, 1), False, (0, 0, 0), "symmetric", "v1")],
    [("random_resized_crop", (24, 20), SCALE, RATIO, KERNELS), FLIP],
    [FLIP, ("flip", 0.5, True)],
    [JITTER],
    [JITTER, ("random_resized_crop", (24, 20), SCALE, RATIO, KERNELS[0]), JITTER],
    [("random_grayscale", 0.5, "pillow"), JITTER],
    [("random_rotation", (-180.0, 180.0), "bilinear", False, None, None)],
    [("random_rotation", (-180.0, 180.0), "nearest", True, None, GREY)],
    [("random_rotation", (90.0, 90.0), "nearest", True, None, GREY)],
    [
        (
            *("random_affine", (-30.0, 30.0), (0.1, 0.2), (0.7, 1.3)),
            *((-9.0, 9.0, -5.0, 5.0), "bilinear", GREY, None, "v1"),
        )
    ],
    [("random_affine", (0.0, 0.0), (0.3, 0.3), None, None, "nearest", None, (3.0, 4.0), "v2")],
    [("rand_augment", 3, 9, 31, "bilinear", GREY, "v1")],
    [("rand_augment", 2, 30, 31, "nearest", None, "v2")],
    [("trivial_augment_wide", 31, "bilinear", None, "v1")],
    [("auto_augment", "imagenet", "nearest", None, "v1")],
    [("auto_augment", "cifar10", "bilinear", GREY, "v2")],
    [("auto_augment", "svhn", "bicubic", None, "v1")],
    [("apply", 0.5, [JITTER, FLIP]), ("order", [FLIP, ("posterize", 3), JITTER])],
    [("choice", [1.0, 2.0], [[("solarize", 100.0)], [FLIP, ("equalize",)]]), FLIP],
    [BLUR, FLIP],
]


def plan_of(image, pixels, index, seed):
    (_, height, width, channels) = pixels.shape
    return image.plan(height, width, channels, seed=seed, index=index)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[0][0])
def test_what_is_planned_is_done(chain):
    pixels = np.stack([photograph(37, 53, seed=seed) for seed in range(8)])
    image = column(*chain, pixels=pixels)
    planned = set()
    for index in range(8):
        for seed in (0, 2**63):
            plan = plan_of(image, pixels, index, seed)
            planned.add(str(plan))
            expected = carry_out(plan, PIL.Image.fromarray(pixels[index]))
            assert torch.equal(sample(image, index, seed), torch.from_numpy(np.array(expected)))
    assert len(planned) > 1 or chain[0][1] == (90.0, 90.0)


GREYS = [
    [("random_grayscale", 0.5, "pillow"), FLIP],
    [("random_crop", (20, 30), (1, 1, 1, 1), True, (7, 7, 7), "constant", "v1")],
    [("rand_augment", 2, 9, 31, "nearest", None, "v1")],
]


@pytest.mark.parametrize("chain", GREYS, ids=lambda chain: chain[0][0])
def test_what_is_planned_is_done_in_one_channel(chain):
    pixels = photograph(37, 53, 1)[None]
    image = column(*chain, pixels=pixels)
    for seed in range(20):
        plan = plan_of(image, pixels, 0, seed)
        expected = np.array(carry_out(plan, PIL.Image.fromarray(pixels[0, :, :, 0])))
        assert torch.equal(sample(image, 0, seed)[:, :, 0], torch.from_numpy(expected))


@pytest.mark.parametrize(
    ("op", "transform"),
    [
        (
            ("random_rotation", (33.3, 33.3), "bilinear", False, None, None),
            transforms.RandomRotation((33.3, 33.3), InterpolationMode.BILINEAR),
        ),
        (
            ("random_rotation", (0.0, 0.0), "nearest", False, None, None),
            transforms.RandomRotation(0),
        ),
        (
            (
                "random_affine",
                (1.1, 1.1),
                None,
                (0.9, 0.9),
                (3.3, 3.3, 0.1, 0.1),
                "nearest",
                None,
                None,
                "v1",
            ),
            transforms.RandomAffine((1.1, 1.1), None, (0.9, 0.9), (3.3, 3.3, 0.1, 0.1)),
        ),
        (("color_jitter", (1.7, 1.7), None, None, None), transforms.ColorJitter((1.7, 1.7))),
        (("color_jitter", None, None, None, (0.3, 0.3)), transforms.ColorJitter(hue=(0.3, 0.3))),
        (
            ("random_resized_crop", (9, 8), (0.3, 0.3), (50.0, 50.0), KERNELS[0]),
            transforms.RandomResizedCrop((9, 8), (0.3, 0.3), (50, 50)),
        ),
        (
            random_blur(_functional_tensor._get_gaussian_kernel1d, (7, 7), (0.7, 0.7)),
            transforms.GaussianBlur(7, 0.7),
        ),
        (
            random_blur(_misc._get_gaussian_kernel1d, (7, 3), (0.7, 0.7)),
            transforms.v2.GaussianBlur((7, 3), 0.7),
        ),
        (("apply", 1.0, [("invert",)]), transforms.RandomInvert(1.0)),
        (("flip", 1.0, True), transforms.RandomVerticalFlip(1.0)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else type(value).__module__,
)
def test_what_has_no_choice_is_torchvisions(op, transform):
    pixels = photograph(37, 53)
    expected = torch.from_numpy(np.array(transform(PIL.Image.fromarray(pixels))))
    assert torch.equal(sample(column(op, pixels=pixels[None])), expected)


def test_a_random_blur_has_the_weights_of_its_strength():
    (_, blurs) = BLUR
    sigmas = [0.1 + 1.9 * (place + 0.5) / blur.STRENGTHS for place in range(blur.STRENGTHS)]
    drawn = [plan[0][1:] for plan in plans_of(column(BLUR), 20_000, 37, 53)]
    places = {tuple(across): place for place, (across, _) in enumerate(blurs)}
    found = np.bincount([places[tuple(across)] for across, _ in drawn], minlength=len(sigmas))
    assert found.min() > 0
    for place in (0, 500, 1023):
        across, down = (
            _functional_tensor._get_gaussian_kernel1d(size, sigmas[place], torch.float32, "cpu")
            for size in (5, 3)
        )
        assert torch.allclose(torch.tensor(blurs[place][0]), across)
        assert torch.allclose(torch.tensor(blurs[place][1]), down)


@pytest.mark.parametrize("value", [(7.0,), (1.5, -2.0, 0.0)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_erased_parts_are_torchvisions(dtype, value):
    torch_dtype = getattr(torch, dtype)
    if dtype == "uint8":
        value = [abs(int(each)) for each in value]
    value = torch.tensor(value).to(torch_dtype)
    table = torch.arange(256).to(torch_dtype).view(torch.uint8).numpy().tobytes()
    output = ("table", "chw", dtype, 1, table)
    bytes_ = value.view(torch.uint8).numpy().tobytes()
    crop = ("random_crop", (20, 30), None, False, (0, 0, 0), "constant", "v1")
    erase = ("random_erasing", 0.8, (0.02, 0.33), (0.3, 3.3), bytes_)
    pixels = photograph(37, 53)
    image = column(crop, erase, erase, pixels=pixels[None], output=output)
    erased = 0
    for seed in range(20):
        (_, region), *parts = image.plan(37, 53, seed=seed)
        expected = torch.from_numpy(pixels).permute(2, 0, 1).to(torch_dtype)
        expected = transforms.functional.crop(expected, *region)
        for name, part, given in parts:
            assert (name, given) == ("erase", bytes_)
            expected = transforms.functional.erase(expected, *part, value[:, None, None])
            erased += 1
        assert torch.equal(sample(image, 0, seed), expected)
    assert erased > 20


def test_noise_fills_the_erased_part_alone():
    erase = ("random_erasing", 1.0, (0.2, 0.4), (0.5, 2.0), "random")
    pixels = photograph(37, 53)
    image = column(erase, pixels=pixels[None], output=FLOATS)
    for seed in range(5):
        [(_, (top, left, height, width), value)] = image.plan(37, 53, seed=seed)
        assert value == "random"
        made, expected = sample(image, 0, seed), torch.from_numpy(pixels).permute(2, 0, 1).float()
        outside = torch.ones(37, 53, dtype=torch.bool)
        outside[top : top + height, left : left + width] = False
        assert torch.equal(made[:, outside], expected[:, outside])
        inside = made[:, ~outside]
        assert len(inside.unique()) > 0.99 * inside.numel()
        assert inside.abs().max() < 7


ERASE = ("random_erasing", 0.5, (0.02, 0.33), (0.3, 3.3))
SEVEN = struct.pack("f", 7)


@pytest.mark.parametrize(
    ("ops", "output", "message"),
    [
        ([(*ERASE, SEVEN), FLIP], FLOATS, "RandomErasing after all other operations"),
        ([("apply", 0.5, [(*ERASE, SEVEN)])], FLOATS, "RandomErasing after all other"),
        ([(*ERASE, b"\0")], ("bytes", "hwc"), r"\(C, H, W\)"),
        ([(*ERASE, b"\0" * 6)], FLOATS, "values of the sample"),
        ([(*ERASE, b"")], FLOATS, "values of the sample"),
        ([(*ERASE, "random")], ("bytes", "chw"), "random values need float32"),
        ([(*ERASE[:2], (0.3, 0.1), (0.3, 3.3), SEVEN)], FLOATS, "unknown operation"),
        (
            [("random_resized_crop", (9, 8), SCALE, (2.0, 1.0), KERNELS[0])],
            FLOATS,
            "unknown operation",
        ),
        ([("random_resized_crop", (9, 8), SCALE, RATIO, [])], FLOATS, "unknown operation"),
        ([("color_jitter", (1.4, 0.6), None, None, None)], FLOATS, "unknown operation"),
        ([("rand_augment", 2, 31, 31, "nearest", None, "v1")], FLOATS, "unknown operation"),
        ([("rand_augment", 2, 0, 1, "nearest", None, "v1")], FLOATS, "unknown operation"),
        ([("auto_augment", "coco", "nearest", None, "v1")], FLOATS, "unknown operation"),
        ([("trivial_augment_wide", 31, "nearest", None, "v3")], FLOATS, "unknown operation"),
        ([("choice", [0.0], [[FLIP]])], FLOATS, "unknown operation"),
        ([("choice", [0.5, 0.5], [[FLIP]])], FLOATS, "unknown operation"),
        ([("random_gaussian_blur", [])], FLOATS, "unknown operation"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused(ops, output, message):
    with pytest.raises(ValueError, match=message):
        column(*ops, output=output)


def test_a_crop_larger_than_its_image_is_refused_in_torchvisions_words():
    op = ("random_crop", (40, 20), (1, 1, 1, 1), False, (0, 0, 0), "constant", "v1")
    image = column(op, pixels=photograph(37, 53)[None])
    transform = transforms.RandomCrop((40, 20), padding=1)
    message = "Required crop size .* is larger than input image size .*"
    with pytest.raises(ValueError, match=message) as raised:
        transform(PIL.Image.fromarray(photograph(37, 53)))
    for make in (lambda: image.plan(37, 53), lambda: sample(image)):
        with pytest.raises(ValueError, match=re.escape(str(raised.value))):
            make()


def test_values_for_other_channels_are_refused():
    image = column(
        (*ERASE[:1], 1.0, *ERASE[2:], SEVEN * 3), pixels=photograph(9, 9, 1)[None], output=FLOATS
    )
    with pytest.raises(ValueError, match="should have either a single value or 1"):
        sample(image)


@pytest.mark.parametrize(
    ("ops", "shape"),
    [
        ([("random_crop", (4, 5), None, True, GREY, "constant", "v1")], (4, 5, 3)),
        ([("random_resized_crop", (4, 5), SCALE, RATIO, KERNELS)], (4, 5, 3)),
        ([FLIP, JITTER, ("random_grayscale", 0.5, "pillow")], (9, 8, 3)),
        ([("random_rotation", (0.0, 9.0), "nearest", False, None, None)], (9, 8, 3)),
        ([("random_rotation", (0.0, 9.0), "nearest", True, None, None)], None),
        ([("rand_augment", 2, 9, 31, "nearest", None, "v1")], (9, 8, 3)),
        ([("apply", 0.5, [("center_crop", 4, 4)])], None),
        ([("apply", 0.5, [("center_crop", 9, 8)])], (9, 8, 3)),
        ([("apply", 1.0, [("center_crop", 4, 4), FLIP])], (4, 4, 3)),
        ([("apply", 0.5, [("grayscale", 1, "pillow")])], None),
        ([("choice", [1.0, 1.0], [[("center_crop", 4, 4)], [FLIP]])], None),
        (
            [("choice", [1.0, 1.0], [[("center_crop", 4, 4)], [("center_crop", 4, 4), FLIP]])],
            (4, 4, 3),
        ),
        ([("order", [("center_crop", 4, 4), FLIP])], (4, 4, 3)),
        ([("order", [("center_crop", 4, 4), ("center_crop", 5, 5)])], None),
        ([("order", [FLIP, JITTER])], (9, 8, 3)),
    ],
    ids=str,
)
def test_a_shape_is_fixed_when_nothing_drawn_changes_it(ops, shape):
    image = column(*ops, pixels=photograph(9, 8)[None])
    [(found, _)] = _lib.Program([image], 0).layout()
    assert found == shape
    assert {tuple(sample(image, 0, seed).shape) for seed in range(20)} >= {shape} - {None}
    if shape:
        assert {tuple(sample(image, 0, seed).shape) for seed in range(20)} == {shape}
