"""Jumps: where they are, how often they are missed, and none in noise."""

import numpy as np
import pytest

from fastload.monitoring.detect.jumps import jump

from .rates import assert_rate
from .recorded import ar1


def levels(random, count=150, *, at=80, by=0.0, noise=0.03, rho=0.0):
    values = 0.5 * np.exp(noise * ar1(random, count, rho))
    values[at:] *= 1 + by
    return values


@pytest.mark.parametrize(("by", "rho"), [(0.1, 0.0), (0.2, 0.0), (0.2, 0.5)])
def test_planted(by, rho):
    """Claimed: 19 of 20 are found if they are three times the noise, at the right window but one."""
    random = np.random.default_rng(1)
    found = [jump(levels(random, by=by, rho=rho)) for _ in range(60)]
    assert_rate(sum(one is None for one in found), len(found), most=0.05)
    known = [one for one in found if one is not None]
    assert_rate(sum(abs(one.index - 80) > 1 for one in known), len(known), most=0.05)
    assert np.median([one.change for one in known]) == pytest.approx(by, rel=0.1)


@pytest.mark.parametrize("least_z", [3.0, 6.0])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.97])
def test_none_in_noise(least_z, rho):
    """Claimed: at three deviations 4 % of 512 windows of noise show a jump; at six, less than 1 in 1,000."""
    random = np.random.default_rng(2)
    found = sum(
        jump(levels(random, 512, noise=0.3, rho=rho), least_z) is not None for _ in range(200)
    )
    assert_rate(found, 200, most=0.04 if least_z == 3.0 else 0.001)


def test_without_noise():
    values = np.full(100, 0.5)
    values[50:] = 0.6
    found = jump(values)
    assert found is not None
    assert (found.index, found.z) == (50, np.inf)
    assert found.change == pytest.approx(0.2)
    assert jump(np.full(100, 0.5)) is None


def test_the_newest_that_lasts():
    random = np.random.default_rng(3)
    twice = levels(random, 300, at=100, by=0.3)
    twice[200:] *= 1.3
    assert abs(jump(twice).index - 200) <= 1
    over = levels(random, 300, at=100, by=0.3)
    over[200:] /= 1.3
    assert jump(over) is None


def test_lower_or_a_little_higher_is_none():
    random = np.random.default_rng(4)
    assert jump(levels(random, by=-0.3)) is None
    assert jump(levels(random, by=0.04, noise=0.001)) is None  # less than 5 %


@pytest.mark.parametrize("count", [0, 1, 11])
def test_too_few(count):
    assert jump(np.linspace(1, 2, count)) is None
