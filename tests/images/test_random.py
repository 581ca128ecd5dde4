"""Random operations draw from torchvision's distributions; its transforms are run in the test."""

import struct
from collections import defaultdict

import pytest
from torchvision import transforms
from torchvision.transforms import InterpolationMode, v2

from tests.shared.distributions import assert_same_counts, assert_same_numbers
from tests.shared.plans import BYTES, FLOATS, KERNEL, column, plans_of, their_plans

OURS, FEW, THEIRS = 100_000, 20_000, 3_000
BLACK = (0, 0, 0)
RATIO = (3 / 4, 4 / 3)


def names(plan):
    return tuple(action[0] for action in plan)


def numbers(plans):
    """Returns all numbers by the place where they stand in a plan; of regions also the proportion."""
    found = defaultdict(list)
    for plan in plans:
        for name, *values in plan:
            for at, value in enumerate(values):
                if isinstance(value, tuple):
                    for inner, number in enumerate(value):
                        found[name, at, inner].append(number)
                elif not isinstance(value, str | bytes):
                    found[name, at].append(value)
            if name in ("crop", "erase"):
                (_, _, height, width) = values[0]
                found[name, "proportion"].append(height / max(width, 1))
                found[name, "area"].append(height * width)
    return found


def compare(monkeypatch, op, transform, size, output=BYTES, ours=OURS, theirs=THEIRS):
    """Compares which actions there are, in which order, and every number of each."""
    mine = plans_of(column(op, output=output), ours, *size)
    others = their_plans(monkeypatch, transform, size, theirs)
    assert_same_counts([names(plan) for plan in mine], [names(plan) for plan in others])
    mine, others = numbers(mine), numbers(others)
    assert mine.keys() == others.keys()
    for place, values in mine.items():
        assert_same_numbers(values, others[place], f"{place}")
        if len({*values[:1000], *others[place]}) < 50:
            assert_same_counts(values, others[place])


@pytest.mark.parametrize(
    ("op", "transform", "size"),
    [
        (
            ("random_crop", (5, 7), None, False, BLACK, "constant", "v1"),
            transforms.RandomCrop((5, 7)),
            (9, 8),
        ),
        (
            ("random_crop", (9, 8), None, True, BLACK, "constant", "v1"),
            transforms.RandomCrop((9, 8)),
            (9, 8),
        ),
        (
            ("random_crop", (32, 32), (4, 4, 4, 4), False, BLACK, "constant", "v1"),
            transforms.RandomCrop(32, padding=4),
            (32, 32),
        ),
        (
            ("random_crop", (12, 20), (1, 2, 3, 4), True, (7, 7, 7), "constant", "v1"),
            transforms.RandomCrop((12, 20), (1, 2, 3, 4), pad_if_needed=True, fill=7),
            (11, 5),
        ),
        (
            ("random_crop", (12, 20), None, True, (7, 7, 7), "constant", "v1"),
            transforms.RandomCrop((12, 20), pad_if_needed=True, fill=7),
            (4, 25),
        ),
        (
            ("color_jitter", (0.6, 1.4), (0.5, 2.0), (0.0, 1.2), (-0.1, 0.2)),
            transforms.ColorJitter(0.4, (0.5, 2.0), (0.0, 1.2), (-0.1, 0.2)),
            (4, 4),
        ),
        (
            ("color_jitter", (0.6, 1.4), None, None, (0.1, 0.1)),
            transforms.ColorJitter(0.4, 0, 0, (0.1, 0.1)),
            (4, 4),
        ),
        (
            ("random_rotation", (-30.0, 45.0), "nearest", False, None, None),
            transforms.RandomRotation((-30, 45)),
            (20, 30),
        ),
        (
            ("random_rotation", (0.0, 90.0), "bilinear", True, (3.0, 4.0), (1, 2, 3)),
            transforms.RandomRotation(
                (0, 90), InterpolationMode.BILINEAR, True, (3.0, 4.0), (1, 2, 3)
            ),
            (20, 30),
        ),
        (
            (
                *("random_affine", (-10.0, 10.0), (0.1, 0.3), (0.5, 1.5)),
                *((-5.0, 5.0, -9.0, 9.0), "bilinear", (9, 9, 9), None, "v1"),
            ),
            transforms.RandomAffine(
                *(10, (0.1, 0.3), (0.5, 1.5), (-5, 5, -9, 9), InterpolationMode.BILINEAR, 9)
            ),
            (20, 30),
        ),
        (
            ("random_affine", (0.0, 0.0), (0.2, 0.0), None, None, "nearest", None, None, "v2"),
            transforms.RandomAffine(0, (0.2, 0.0)),
            (33, 47),
        ),
    ],
    ids=str,
)
def test_parameters_are_distributed_as_torchvisions(monkeypatch, op, transform, size):
    compare(monkeypatch, op, transform, size)


@pytest.mark.parametrize(
    ("op", "transform"),
    [
        (("flip", 0.3, False), transforms.RandomHorizontalFlip(0.3)),
        (("flip", 0.5, True), transforms.RandomVerticalFlip()),
        (("random_grayscale", 0.2, "pillow"), transforms.RandomGrayscale(0.2)),
        (("apply", 0.5, [("invert",)]), transforms.RandomInvert()),
        (("apply", 0.2, [("posterize", 3)]), transforms.RandomPosterize(3, 0.2)),
        (("apply", 0.5, [("solarize", 100.5)]), transforms.RandomSolarize(100.5)),
        (("apply", 0.7, [("sharpness", 1.5)]), transforms.RandomAdjustSharpness(1.5, 0.7)),
        (("apply", 0.5, [("autocontrast",)]), transforms.RandomAutocontrast()),
        (("apply", 0.5, [("equalize",)]), transforms.RandomEqualize()),
        (
            ("apply", 0.8, [("color_jitter", (0.6, 1.4), None, None, None), ("flip", 0.5, False)]),
            transforms.RandomApply(
                [transforms.ColorJitter(0.4), transforms.RandomHorizontalFlip()], 0.8
            ),
        ),
        (
            ("order", [("flip", 0.5, False), ("random_grayscale", 0.5, "pillow"), ("invert",)]),
            transforms.RandomOrder(
                [
                    transforms.RandomHorizontalFlip(),
                    transforms.RandomGrayscale(0.5),
                    transforms.RandomInvert(1.0),
                ]
            ),
        ),
        (
            ("choice", [0.5, 1.5, 0.0], [[("flip", 1.0, False)], [("invert",)], [("equalize",)]]),
            transforms.RandomChoice(
                [
                    transforms.RandomHorizontalFlip(1.0),
                    transforms.RandomInvert(1.0),
                    transforms.RandomEqualize(1.0),
                ],
                [0.5, 1.5, 0.0],
            ),
        ),
    ],
    ids=str,
)
def test_choices_are_distributed_as_torchvisions(monkeypatch, op, transform):
    compare(monkeypatch, op, transform, (4, 4), ours=FEW)


@pytest.mark.parametrize(
    ("size", "scale", "ratio"),
    [
        ((600, 800), (0.08, 1.0), RATIO),
        ((20, 400), (0.5, 1.0), RATIO),  # most tries fail: the middle is taken
        ((7, 5), (0.01, 0.3), (0.1, 9.0)),
        ((33, 33), (1.0, 1.0), (1.0, 1.0)),
    ],
    ids=str,
)
def test_resized_crops_are_distributed_as_torchvisions(monkeypatch, size, scale, ratio):
    op = ("random_resized_crop", (9, 8), scale, ratio, KERNEL)
    transform = transforms.RandomResizedCrop((9, 8), scale, ratio)
    compare(monkeypatch, op, transform, size, theirs=FEW if size == (600, 800) else THEIRS)


@pytest.mark.parametrize(
    ("size", "scale", "ratio"),
    [
        ((600, 800), (0.02, 0.33), (0.3, 3.3)),
        ((20, 400), (0.2, 0.9), (0.3, 3.3)),  # most tries fail: nothing is erased
        ((3, 5), (0.0, 0.3), (0.3, 3.3)),
    ],
    ids=str,
)
def test_erased_parts_are_distributed_as_torchvisions(monkeypatch, size, scale, ratio):
    op = ("random_erasing", 0.6, scale, ratio, struct.pack("f", 7.0))
    transform = transforms.RandomErasing(0.6, scale, ratio, 7)
    compare(monkeypatch, op, transform, size, FLOATS, theirs=FEW if size == (600, 800) else THEIRS)


def test_kernels_are_equally_likely():
    other = ("pillow13", "bicubic")
    both = column(("random_resized_crop", (9, 8), (0.08, 1.0), RATIO, [KERNEL, other]))
    one = column(("random_resized_crop", (9, 8), (0.08, 1.0), RATIO, KERNEL))
    plans = plans_of(both, OURS, 60, 80)
    assert_same_counts([plan[1][2] for plan in plans], [KERNEL, other] * (OURS // 2))
    assert [plan[0] for plan in plans[:100]] == [plan[0] for plan in plans_of(one, 100, 60, 80)]


AUGMENTATIONS = [
    ("rand_augment", transforms.RandAugment, v2.RandAugment, (1, 9, 31)),
    ("rand_augment", transforms.RandAugment, v2.RandAugment, (2, 4, 10)),
    ("rand_augment", transforms.RandAugment, v2.RandAugment, (1, 1, 2)),
    ("trivial_augment_wide", transforms.TrivialAugmentWide, v2.TrivialAugmentWide, (31,)),
    ("trivial_augment_wide", transforms.TrivialAugmentWide, v2.TrivialAugmentWide, (7,)),
    *(
        ("auto_augment", transforms.AutoAugment, v2.AutoAugment, (policy,))
        for policy in transforms.AutoAugmentPolicy
    ),
]


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(("name", "first", "second", "values"), AUGMENTATIONS, ids=str)
def test_augmentations_are_torchvisions_to_the_bit(
    monkeypatch, name, first, second, values, version
):
    transform = (first if version == "v1" else second)(
        *values, interpolation=InterpolationMode.NEAREST
    )
    size = (331, 224)  # the translations of 331 are integers, but for rounding
    values = [getattr(value, "value", value) for value in values]
    mine = plans_of(column((name, *values, "nearest", None, version)), FEW, *size)
    others = their_plans(monkeypatch, transform, size, 2_000)
    mine, others = (list(map(tuple, plans)) for plans in (mine, others))
    assert set(others) <= set(mine)
    assert_same_counts(mine, others)
