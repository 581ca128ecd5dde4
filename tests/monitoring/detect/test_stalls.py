"""Stalls: planted ones are found, log-normal steps have none."""

import numpy as np
import pytest

from fastload.monitoring.detect.pauses import stalls

from .rates import assert_rate


def test_planted():
    random = np.random.default_rng(0)
    step_s = 0.5 * np.exp(0.1 * random.standard_normal(256))
    at = [3, 77, 255]
    step_s[at] = 1.5
    found = stalls(step_s, step_s)
    assert found.index.tolist() == at
    assert found.usual_s == pytest.approx(0.5, rel=0.05)
    assert found.excess_s == pytest.approx(1.5 - found.usual_s)
    assert found.usual_s < found.threshold_s < 1.5


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.5, 1.0])
def test_log_normal_steps_have_none(sigma):
    """Claimed: one false stall in 10^6 steps, the uncertain MAD of 256 steps included."""
    random = np.random.default_rng(1)
    steps = np.exp(sigma * random.standard_normal((4000, 250)))
    assert_rate(sum(len(stalls(part, part).index) for part in steps), steps.size, most=1e-6)


def test_no_variation():
    """Equal steps have a MAD of 0: half as long again is a stall, a little longer is none."""
    step_s = np.full(100, 0.1)
    step_s[[10, 20]] = 0.14, 0.16
    assert stalls(step_s, step_s).index.tolist() == [20]


@pytest.mark.parametrize("step_s", [np.zeros(40), np.full(1, 0.5)])
def test_nothing_to_compare(step_s):
    assert not len(stalls(step_s, step_s).index)


def test_extremes_do_not_overflow():
    step_s = np.array([1e-12, 1e12] * 20)
    assert np.isfinite(stalls(step_s, step_s).usual_s)
