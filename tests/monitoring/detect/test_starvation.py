"""Starvation: by the accelerator if it is known, else by the waits; not by chance."""

import numpy as np
import pytest

from fastload.monitoring.detect.level_findings import starvation

from .rates import assert_rate

UNKNOWN = np.full(40, np.nan)


def test_waits():
    found = starvation(np.full(40, 0.3), UNKNOWN)
    assert found is not None
    assert (found.share, found.windows, found.index, found.is_starved) == (0.3, 30, 0, False)
    assert starvation(np.full(40, 0.05), UNKNOWN) is None


def test_the_accelerator_decides():
    """A wait while work is queued costs nothing; a busy accelerator may starve nevertheless."""
    assert starvation(np.full(40, 0.6), np.full(40, 0.01)) is None
    found = starvation(np.full(40, 0.01), np.full(40, 0.25))
    assert found is not None
    assert found.is_starved


def test_since():
    shares = np.full(60, 0.01)
    shares[40:] = 0.4
    assert starvation(shares, np.full(60, np.nan)) is None  # 20 of 30 windows
    shares[20:] = 0.4
    assert starvation(shares, np.full(60, np.nan)).index == 20


def test_by_chance():
    """Claimed: shares around the limit are told once in 1,000 looks."""
    random = np.random.default_rng(0)
    found = sum(
        starvation(0.1 * np.exp(0.5 * random.standard_normal(30)), UNKNOWN[:30]) is not None
        for _ in range(2000)
    )
    assert_rate(found, 2000, most=1e-3)


@pytest.mark.parametrize("count", [0, 1, 13])
def test_too_few(count):
    assert starvation(np.full(count, 0.9), np.full(count, np.nan)) is None
