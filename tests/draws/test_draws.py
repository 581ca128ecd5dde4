"""Draws depend on seed, epoch, index, repetition and place, and on nothing else."""

import numpy as np
import pytest

from tests.shared.distributions import assert_same_numbers, assert_uniform
from tests.shared.plans import FLOATS, column, plans_of, sample

COUNT = 100_000
JITTER = ("color_jitter", (0.0, 1.0), None, None, None)
HALF = ("flip", 0.5, False)
SIDE = 64


def units(image, count=COUNT, **key):
    """Returns a number of [0, 1) for each index."""
    return np.array([plan[0][1] for plan in plans_of(image, count, SIDE, SIDE, **key)])


def lone(image, **key):
    return image.plan(SIDE, SIDE, **key)[0][1]


def bins(values, kinds=16):
    return np.minimum((values * kinds).astype(int), kinds - 1)


def test_a_key_gives_one_plan():
    ops = (JITTER, HALF, ("random_crop", (3, 3), None, False, (0, 0, 0), "constant", "v1"))
    key = {"seed": 2**64 - 1, "epoch": 2**40, "index": 2**63, "draw": 5}
    plan = column(*ops).plan(SIDE, SIDE, **key)
    assert plan == column(*ops).plan(SIDE, SIDE, **key)
    assert plan[:1] == column(*ops[:1]).plan(SIDE, SIDE, **key)  # whatever follows
    assert plan[0] != column(HALF, JITTER).plan(SIDE, SIDE, **key)[-1]


@pytest.mark.parametrize("part", ["seed", "epoch", "index", "draw"])
def test_every_bit_of_a_key_counts(part):
    image = column(JITTER)
    values = {lone(image, **{part: 1 << bit}) for bit in range(64)} | {lone(image)}
    assert len(values) == 65


def test_draws_are_uniform():
    values = units(column(JITTER))
    assert_uniform(bins(values, 256), 256)
    assert ((values >= 0) & (values <= 1)).all()
    assert (values == values.astype(np.float32)).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seed": 1}, {"seed": 2}),
        ({"seed": 1}, {"seed": 1 + (1 << 32)}),
        ({"epoch": 0}, {"epoch": 1}),
        ({"seed": 0, "epoch": 1}, {"seed": 1, "epoch": 0}),
    ],
    ids=str,
)
def test_epochs_and_seeds_are_independent(one, other):
    first, second = (bins(units(column(JITTER), **key)) for key in (one, other))
    assert_uniform(first * 16 + second, 256)


@pytest.mark.parametrize("distance", [1, 2, 64])
def test_neighbours_are_independent(distance):
    places = bins(units(column(JITTER)))
    assert_uniform(places[:-distance] * 16 + places[distance:], 256)


def test_repetitions_are_independent():
    image = column(JITTER)
    values = np.array([lone(image, draw=draw, index=7) for draw in range(20_000)])
    assert_uniform(bins(values), 16)
    places = bins(values, 8)
    assert_uniform(places[:-1] * 8 + places[1:], 64)


@pytest.mark.parametrize(
    "ops",
    [
        [JITTER, JITTER],
        [("apply", 1.0, [JITTER]), JITTER],
        [("apply", 1.0, [JITTER, ("apply", 1.0, [JITTER])])],
        [("choice", [1.0], [[JITTER]]), JITTER],
        [("order", [JITTER, JITTER])],
    ],
    ids=str,
)
def test_operations_are_independent(ops):
    plans = plans_of(column(*ops), COUNT, SIDE, SIDE)
    first, second = (bins(np.array([plan[at][1] for plan in plans])) for at in (0, 1))
    assert_uniform(first * 16 + second, 256)


def test_what_an_operation_draws_does_not_depend_on_what_others_drew():
    alone = column(("apply", 0.0, [JITTER, JITTER]), JITTER)
    after = column(("apply", 1.0, [JITTER, JITTER]), JITTER)
    plans = zip(*(plans_of(image, 100, SIDE, SIDE) for image in (alone, after)), strict=True)
    assert all(one == other[2:] for one, other in plans)


def test_numbers_within_an_operation_are_independent():
    image = column(("color_jitter", (0.0, 1.0), (0.0, 1.0), None, None))
    plans = plans_of(image, COUNT, SIDE, SIDE)
    drawn = [{action[0]: action[1] for action in plan} for plan in plans]
    first, second = (
        bins(np.array([each[name] for each in drawn])) for name in ("brightness", "contrast")
    )
    assert_uniform(first * 16 + second, 256)


def test_probabilities():
    for p in (0.0, 0.1, 0.5, 1.0):
        done = sum(map(len, plans_of(column(("flip", p, False)), COUNT, SIDE, SIDE)))
        assert abs(done - p * COUNT) <= 4 * (p * (1 - p) * COUNT) ** 0.5


def test_noise_is_normal():
    erase = ("random_erasing", 1.0, (0.5, 0.5), (1.0, 1.0), "random")
    pixels = np.zeros((1, 301, 299, 3), np.uint8)
    values = sample(column(erase, pixels=pixels, output=FLOATS)).numpy()
    [(_, (top, left, height, width), _)] = column(erase, output=FLOATS).plan(301, 299)
    noise = values[:, top : top + height, left : left + width].copy()
    values[:, top : top + height, left : left + width] = 0
    assert (values == 0).all()
    noise = noise.reshape(-1)
    assert_same_numbers(noise, np.random.default_rng(0).normal(size=len(noise)))
    for distance in (1, 2, width, height * width):
        for power in (1, 2):
            one, other = noise[:-distance] ** power, noise[distance:] ** power
            assert abs(np.corrcoef(one, other)[0, 1]) < 4 / len(one) ** 0.5
