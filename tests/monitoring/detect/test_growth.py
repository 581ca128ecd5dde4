"""Growth: 100 bytes per batch are found; warm-up, plateaus, steps and noise are no leak."""

import numpy as np
import pytest

from fastload.monitoring.detect.growth import growth

from .rates import assert_rate
from .recorded import ar1

BATCHES = 3000
"""Of a minute."""


def noise(random, minutes):
    """Returns the minima of six readings in each minute, with 2 MiB of noise."""
    return 2e9 + 2.0**21 * np.abs(random.standard_normal((6, minutes))).min(axis=0)


def measured(values, epoch_minutes=0):
    minutes = np.arange(len(values), dtype=float)
    epoch = minutes // epoch_minutes if epoch_minutes else np.zeros(len(values))
    return growth(BATCHES * minutes, 60 * minutes, epoch, values)


def is_found(values, epoch_minutes=0):
    found = measured(values, epoch_minutes)
    return found is not None and found.is_found


@pytest.mark.parametrize("minutes", [45, 200])
@pytest.mark.parametrize("epoch_minutes", [0, 1, 60])
def test_hundred_bytes_per_batch(minutes, epoch_minutes):
    """Claimed: 19 of 20 are found, and the bounds have the slope."""
    random = np.random.default_rng(minutes)
    leak = 100.0 * BATCHES * np.arange(minutes)
    found = [measured(noise(random, minutes) + leak, epoch_minutes) for _ in range(60)]
    assert_rate(sum(not one.is_found for one in found), 60, most=0.05)
    assert_rate(sum(not one.low <= 100.0 <= one.high for one in found), 60, most=0.08)


def test_allocators_take_large_pieces():
    random = np.random.default_rng(0)
    leak = np.floor(1000.0 * BATCHES * np.arange(60) / 2**23) * 2**23
    assert is_found(noise(random, 60) + leak)


HARMLESS = {
    "noise": lambda random, x: 0.0,
    "warm-up": lambda random, x: 3e8 * (1 - np.exp(-x / 5)),
    "a slow plateau": lambda random, x: 1e9 * (1 - np.exp(-3 * x / len(x))),
    "the logarithm of the batches": lambda random, x: 1e8 * np.log(x + 1),
    "a random walk": lambda random, x: 2**21 * np.cumsum(random.standard_normal(len(x))),
    "slow waves": lambda random, x: 2**23 * ar1(random, len(x), 0.9),
    "one step": lambda random, x: 2e8 * (x > random.integers(len(x))),
    "two steps": lambda random, x: 2e8 * sum(x > random.integers(len(x)) for _ in range(2)),
    "a saw": lambda random, x: 1e7 * (x % 30),
    "the largest batch so far": lambda random, x: (
        1e8 * np.maximum.accumulate(np.exp(0.5 * random.standard_normal((len(x), 50)).max(axis=1)))
    ),
}


@pytest.mark.parametrize("minutes", [40, 120, 480])
@pytest.mark.parametrize("kind", HARMLESS)
def test_harmless(kind, minutes):
    """Claimed: less than 1 false leak in 1,000 series."""
    random = np.random.default_rng(minutes)
    x = np.arange(minutes, dtype=float)
    found = sum(is_found(noise(random, minutes) + HARMLESS[kind](random, x)) for _ in range(60))
    assert_rate(found, 60, most=0.001)


@pytest.mark.parametrize("epoch_minutes", [2, 10, 30])
def test_steps_between_epochs(epoch_minutes):
    """Growth at the borders of epochs is no leak; within them it is, unless the next one begins lower."""
    random = np.random.default_rng(epoch_minutes)
    x = np.arange(120.0)
    steps = 5e7 * (x // epoch_minutes)
    per_batch = (
        20_000.0 if epoch_minutes == 2 else 1000.0
    )  # most of the growth must be within epochs if short
    leak = per_batch * BATCHES * x
    assert not is_found(noise(random, 120) + steps, epoch_minutes)
    assert is_found(noise(random, 120) + steps + leak, epoch_minutes)
    given_back = per_batch * BATCHES * (x % epoch_minutes)
    assert not is_found(noise(random, 120) + given_back, epoch_minutes)


def test_least():
    """Ten bytes per batch are measured and not told."""
    found = measured(2e9 + 10.0 * BATCHES * np.arange(100))
    assert not found.is_found
    assert found.per_batch == pytest.approx(10.0)
    counts = 40 + np.floor(0.002 * BATCHES * np.arange(100))
    minutes = np.arange(100.0)
    assert growth(BATCHES * minutes, 60 * minutes, 0 * minutes, counts, 1e-4, 0.0).is_found


@pytest.mark.parametrize(("grown_bytes", "answer"), [(0.9 * 2**20, False), (1.1 * 2**20, True)])
def test_least_of_the_whole_run(grown_bytes, answer):
    """Of 40 minutes with 100 batches each, the first tenth is left out."""
    minutes = np.arange(40.0)
    values = 2e9 + grown_bytes * minutes / 35
    assert growth(100 * minutes, 60 * minutes, 0 * minutes, values).is_found == answer


def test_when_it_ends():
    found = measured(2e9 + 1000.0 * BATCHES * np.arange(100))
    assert found.batches_to(found.now + 1e9) == pytest.approx(1e6, rel=0.01)
    assert found.batches_to(0.0) == 0.0
    assert measured(np.full(100, 2e9)).batches_to(3e9) == np.inf


def test_too_early():
    leak = 1000.0 * BATCHES * np.arange(100)
    assert measured(leak[:26]) is None  # less than 24 minutes after the warm-up
    assert measured(leak[:30]) is None  # less than half an hour
    assert measured(leak[:40]) is not None
    assert measured(leak[:30], 8) is not None  # three epochs
    assert measured(np.full(100, np.nan)) is None
    minutes = np.arange(100.0)
    assert growth(0 * minutes, 60 * minutes, 0 * minutes, leak) is None  # no batch was taken
