"""The formulas beside SciPy's, and the rates at which their bounds hold."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fastload.monitoring.detect.estimates import (
    autocorrelation,
    binomial_tail,
    median_and_mad,
    normal_tail,
    slope,
    student_z,
    thinned,
    trimmed_mean,
)

from .rates import assert_rate
from .recorded import ar1

floats = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50).map(np.array)


@given(floats)
def test_median_and_mad(values):
    center, mad = median_and_mad(values)
    assert center == pytest.approx(np.median(values))
    assert mad == pytest.approx(scipy.stats.median_abs_deviation(values), rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 1e6), min_size=10, max_size=200).map(np.array))
def test_trimmed_mean(values):
    assert trimmed_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.1))


def test_thinned_keeps_the_newest():
    values = np.arange(1000.0)
    kept = thinned(values, 64)
    assert len(kept) <= 64
    assert kept[-1] == values[-16:].mean()
    assert np.array_equal(thinned(values[:64], 64), values[:64])


@pytest.mark.parametrize("n", [8, 33, 64])
def test_slope_is_theil_and_sens(n):
    random = np.random.default_rng(n)
    x = np.cumsum(random.random(n) + 0.1)
    y = 0.3 * x + random.standard_normal(n)
    y[::2] += 1.5  # neighbours differ: no autocorrelation widens the bounds
    found, oracle = slope(x, y, 3.0), scipy.stats.theilslopes(y, x, 0.95)
    assert found.value == pytest.approx(oracle.slope)
    # SciPy rounds the ranks, here they are taken outwards
    assert oracle.low_slope - 0.1 < found.low <= oracle.low_slope
    assert oracle.high_slope <= found.high < oracle.high_slope + 0.1
    assert found.least <= found.low


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_bounds_hold(rho):
    """95 % bounds leave out the slope, which is 0, in 5 % of series; in 8 % at most with autocorrelation."""
    random = np.random.default_rng(int(10 * rho))
    x = np.arange(360.0)
    slopes = [slope(x, ar1(random, 360, rho), 3.0) for _ in range(400)]
    outside = sum(not one.low <= 0.0 <= one.high for one in slopes)
    assert_rate(outside, len(slopes), most=0.08 if rho else 0.05)
    assert sum(one.low > -np.inf for one in slopes) > 300  # the bounds say something


def test_slope_within_groups():
    """Steps between groups are no slope; the slope within them is."""
    random = np.random.default_rng(0)
    x = np.arange(60.0)
    groups = np.repeat(np.arange(6), 10)
    noise = random.standard_normal(60)
    flat = slope(x, noise + 100.0 * groups, 3.0, groups)
    assert flat.low <= 0.0 <= flat.high
    rising = slope(x, noise + 2.0 * x - 100.0 * groups, 3.0, groups)
    assert rising.least > 0.0
    assert rising.value == pytest.approx(2.0, abs=0.5)


def test_too_little_for_bounds():
    few = slope(np.arange(7.0), np.arange(7.0), 3.0)
    assert np.isnan(few.value)
    assert few.low == -np.inf
    walk = slope(np.arange(20.0), np.cumsum(np.ones(20)) ** 3, 3.0)
    assert walk.low == -np.inf  # 20 values of such a series count as one


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_autocorrelation(rho):
    random = np.random.default_rng(3)
    found = [autocorrelation(ar1(random, 500, rho)) for _ in range(50)]
    assert np.mean(found) == pytest.approx(rho, abs=0.05)
    assert autocorrelation(np.zeros(10)) == 0.0


@given(st.floats(0.0, 30.0), st.floats(2.0, 200.0))
def test_student(t, freedom):
    """The tail is exact to some per cent of the deviate."""
    exact = -scipy.stats.norm.ppf(scipy.stats.t.sf(t, freedom))
    assert student_z(t, freedom) == pytest.approx(exact, rel=0.05, abs=0.02)
    assert student_z(-t, freedom) == -student_z(t, freedom)


@given(st.integers(0, 64), st.integers(0, 64), st.floats(0.001, 0.999))
def test_binomial(successes, trials, p):
    exact = scipy.stats.binom.sf(successes - 1, trials, p)
    assert binomial_tail(successes, trials, p) == pytest.approx(exact, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.96, 6.0])
def test_normal(z):
    assert normal_tail(z) == pytest.approx(scipy.stats.norm.sf(z))
