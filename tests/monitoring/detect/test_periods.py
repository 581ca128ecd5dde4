"""Periods: those planted are found, on the right axis; chances are as they are stated."""

import numpy as np
import pytest

from fastload.monitoring.detect.pauses import dense_period, stall_periods

from .rates import assert_rate
from .recorded import ar1

STEPS = 4096
NUMBER = np.arange(10_000.0, 10_000.0 + STEPS)
USABLE = np.ones(STEPS, bool)


def on_steps(random, count, period, spread=0.05):
    """Returns number, end and excess of stalls at each `period` steps of half a second."""
    number = 500.0 + period * np.arange(count)
    return number, number / 2 + spread * random.standard_normal(count), np.ones(count)


@pytest.mark.parametrize("period", [2, 4, 30, 500])
def test_stalls_on_steps(period):
    random = np.random.default_rng(period)
    (found,) = stall_periods(*on_steps(random, 30, period), 0.5)
    assert (found.steps, found.seconds, found.count) == (period, 0.0, 30)
    assert found.phase == 500 % period
    assert found.is_hit.all()
    assert found.trend == "steady"


@pytest.mark.parametrize("period_s", [30.0, 120.0, 97.0])
def test_stalls_on_the_clock(period_s):
    """The step in which a time comes varies, as the steps do."""
    random = np.random.default_rng(1)
    due = period_s * np.arange(1, 25)
    number = np.round(2 * due + 4 * ar1(random, 24, 0.9))
    (found,) = stall_periods(number, due + 0.5 * random.random(24), np.ones(24), 0.5)
    assert found.steps == 0
    assert found.seconds == pytest.approx(period_s, rel=0.01)


def test_two_periods():
    at = np.unique(np.concatenate([np.arange(0, 2000, 30), np.arange(11, 2000, 70)])).astype(float)
    found = stall_periods(at, at / 2, np.ones(len(at)), 0.5)
    assert {period.steps for period in found} == {30, 70}


def test_some_are_missing_and_some_are_others():
    random = np.random.default_rng(2)
    at = np.arange(0, 1500, 30)
    at = at[random.random(50) < 0.9]
    at = np.unique(np.concatenate([at, random.choice(1500, 6)])).astype(float)
    (found,) = stall_periods(at, at / 2, np.ones(len(at)), 0.5)
    assert found.steps == 30


def test_slow_steps_in_a_row_are_one_stall():
    at = np.concatenate([np.arange(0, 900, 30), np.arange(1, 900, 30)])
    at = np.sort(at).astype(float)
    (found,) = stall_periods(at, at / 2, np.ones(60), 0.5)
    assert (found.steps, found.count) == (30, 30)
    assert found.is_hit.all()


@pytest.mark.parametrize(
    ("excess", "trend"),
    [
        (np.linspace(1, 4, 32), "growing"),
        (np.linspace(4, 1, 32), "fading"),
        (np.ones(32), "steady"),
    ],
)
def test_trend(excess, trend):
    at = 32.0 * np.arange(32)
    (found,) = stall_periods(at, at / 2, excess, 0.5)
    assert found.trend == trend


@pytest.mark.parametrize("most_p", [1e-2, 1e-6])
def test_stalls_without_a_period(most_p):
    """The stated chance is no lower than the rate at which random stalls show a period."""
    random = np.random.default_rng(4)
    false, runs = 0, 600
    for _ in range(runs):
        count = random.integers(5, 64)
        at = np.sort(random.choice(30_000, count, replace=False)).astype(float)
        end_s = at / 2 + np.sort(random.random(count))
        false += bool(stall_periods(at, end_s, np.ones(count), 0.5, (4, 8, 2000), most_p))
    assert_rate(false, runs, most=most_p)


def test_too_few_stalls():
    assert stall_periods(*(np.arange(4.0) for _ in range(3)), 0.5) == []
    assert stall_periods(*(np.empty(0) for _ in range(3)), 0.5) == []


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_five_percent_each_thirty_steps(rho):
    """Claimed: found in 90 % of 4,096 steps whose noise is 5 %."""
    random = np.random.default_rng(5)
    missed, runs = 0, 30
    for _ in range(runs):
        step_s = 0.5 * np.exp(0.05 * ar1(random, STEPS, rho))
        step_s[29::30] *= 1.05
        found = dense_period(NUMBER, step_s, USABLE)
        missed += found is None or found.steps != 30 or found.phase != NUMBER[29] % 30
    assert_rate(missed, runs, most=0.1)


def test_dense_excess():
    random = np.random.default_rng(6)
    step_s = 0.5 + 0.01 * random.standard_normal(STEPS)
    step_s[5::8] += 0.1
    found = dense_period(NUMBER, step_s, USABLE)
    assert found is not None
    assert (found.steps, found.count) == (8, STEPS // 8)
    assert found.excess_s == pytest.approx(0.1, rel=0.05)
    assert np.flatnonzero(found.is_hit)[0] == 5


def test_a_candidate_may_be_longer():
    random = np.random.default_rng(7)
    short = NUMBER[:2000], np.exp(0.05 * random.standard_normal(2000)), USABLE[:2000]
    short[1][100::125] *= 1.4
    assert dense_period(*short).steps == 125
    few = tuple(each[:1900] for each in short)
    assert dense_period(*few) is None  # too long for 1,900 steps
    assert dense_period(*short, (125,)).steps == 125


def noise(random, kind):
    if kind == "bursts":
        slow = np.convolve(random.random(STEPS) < 0.01, np.ones(5))[:STEPS] > 0
        return np.exp(0.1 * random.standard_normal(STEPS)) * np.where(slow, 1.8, 1.0)
    if kind == "moving average":
        return np.exp(0.02 * np.convolve(random.standard_normal(STEPS + 19), np.ones(20), "valid"))
    if kind == "buckets":
        return np.exp(0.5 * np.repeat(random.standard_normal(STEPS // 8), 8))
    if kind == "heavy tails":
        return np.exp(random.standard_t(2, STEPS).clip(-20, 20))
    return np.exp(0.1 * ar1(random, STEPS, float(kind)))


@pytest.mark.parametrize(
    "kind", ["0", "0.5", "0.9", "bursts", "moving average", "buckets", "heavy tails"]
)
def test_dense_without_a_period(kind):
    """The stated chance is no lower than the rate; at the chance that is used, there are none."""
    random = np.random.default_rng(8)
    chances = [
        one.p if (one := dense_period(NUMBER, noise(random, kind), USABLE, most_p=0.1)) else 1.0
        for _ in range(60)
    ]
    assert_rate(sum(p <= 0.1 for p in chances), len(chances), most=0.1)
    assert min(chances) > 1e-5


@pytest.mark.parametrize("step_s", [np.full(STEPS, 0.5), np.full(STEPS, 0.0)])
def test_no_noise(step_s):
    assert dense_period(NUMBER, step_s, USABLE) is None
    assert dense_period(NUMBER[:20], step_s[:20], USABLE[:20]) is None
    assert dense_period(NUMBER, step_s + np.random.default_rng(0).random(STEPS), ~USABLE) is None
