"""The soak: its statistics on series whose slope is known, its digests, and rounds of it."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("tools.soak")

from tests.shared.repository import ROOT
from tools.soak import oracle, planted, verdict

LIMIT = 16.0


def walk(rng, points, correlated, deviation):
    """Returns noise each of whose values resembles the one before it."""
    noise = rng.standard_normal(points) * deviation
    noise[0] /= math.sqrt(1 - correlated**2)
    for at in range(1, points):
        noise[at] += correlated * noise[at - 1]
    return noise


def batches(points):
    return np.arange(points) * 10_000.0


@pytest.mark.parametrize("slope", [0.0, 100.0, -50.0])
def test_a_slope_is_found_beneath_noise_and_outliers(slope):
    rng = np.random.default_rng(1)
    x = batches(120)
    y = slope * x + walk(rng, 120, 0.5, 1e5)
    y[::11] += 1e8
    found = verdict.of_series(x, y)
    assert found.low < slope < found.high
    assert found.high - found.low < 10
    assert found.judge(LIMIT) == ("FAIL" if slope == 100 else "pass")


@pytest.mark.parametrize(("step", "answer"), [(2e6, "pass"), (5e7, "not enough data yet")])
def test_a_step_is_no_growth(step, answer):
    x = batches(200)
    y = np.where(x > x[30], step, 0) + walk(np.random.default_rng(2), 200, 0.2, 1e5)
    assert verdict.of_series(x, y).judge(LIMIT) == answer
    assert verdict.of_stretches([0.0] * 9 + [4000.0]).judge(LIMIT) == "pass"


def test_what_never_changes_passes_and_what_is_short_is_undecided():
    assert verdict.of_series(batches(30), np.full(30, 7.0)).judge(LIMIT) == "pass"
    assert verdict.of_series(batches(5), batches(5) * 100).judge(LIMIT) == "not enough data yet"
    assert verdict.of_stretches([100.0] * 9).judge(LIMIT) == "not enough data yet"
    assert verdict.of_stretches([100.0] * 10).judge(LIMIT) == "FAIL"
    noise = walk(np.random.default_rng(3), 30, 0.9, 1e8)
    assert verdict.of_series(batches(30), noise).judge(LIMIT) == "not enough data yet"


@pytest.mark.parametrize("correlated", [0.0, 0.5, 0.8])
def test_the_bounds_of_a_series_hold(correlated):
    rng = np.random.default_rng(4)
    x, trials = batches(100), 300
    found = [
        verdict.of_series(x, LIMIT * x + walk(rng, 100, correlated, 1e5)) for _ in range(trials)
    ]
    wrong = sum(not slope.low <= LIMIT <= slope.high for slope in found)
    assert wrong <= 0.09 * trials  # 5 %, and what chance and an estimated autocorrelation add
    assert np.median([slope.high - slope.low for slope in found]) < 8


@pytest.mark.parametrize("points", [6, 12, 100])
def test_the_bounds_of_stretches_hold_whatever_they_are_distributed_like(points):
    rng = np.random.default_rng(5)
    drawn = LIMIT + 100 * rng.standard_cauchy((2000, points))
    found = [verdict.of_stretches(list(slopes)) for slopes in drawn]
    assert sum(not slope.low <= LIMIT <= slope.high for slope in found) <= 0.06 * len(found)


def test_minima_are_of_windows():
    x, y = verdict.minima(range(6), [5, 1, 7, 4, 9, 8], 3)
    assert (x, y) == ([1, 3, 5], [1, 4, 8])


def test_a_digest_tells_types_shapes_and_order():
    ones = torch.ones(2, 3)
    same = oracle.of_batch({"a": ones, "b": [1, "x"]})
    assert same == oracle.of_batch({"a": ones.clone(), "b": [1, "x"]})
    others = [
        {"a": ones.double(), "b": [1, "x"]},
        {"a": ones.reshape(3, 2), "b": [1, "x"]},
        {"a": ones, "b": (1, "x")},
        {"a": ones, "b": ["x", 1]},
        {"c": ones, "b": [1, "x"]},
        {"a": -ones, "b": [1, "x"]},
    ]
    assert len({same, *map(oracle.of_batch, others)}) == 7


def test_what_is_drawn_is_left_out_of_the_second_digest():
    first, second = ({"index": 3, "noise": torch.rand(2)} for _ in range(2))
    assert oracle.of_batch(first).exact != oracle.of_batch(second).exact
    assert oracle.of_batch(first).steady == oracle.of_batch(second).steady


def test_a_difference_is_named():
    got, want = [torch.zeros(3), 1], [torch.zeros(3), 1]
    got[0][2] = 5
    assert "batch[0]" in oracle.difference(got, want)
    assert "element 2 of (3,) is 5.0 in place of 0.0" in oracle.difference(got, want)
    assert "is 2 in place of 1" in oracle.difference([want[0], 2], want)


def soaked(bug, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tools.soak", "--seed", "1", *arguments],
        cwd=ROOT,
        env=os.environ
        | {planted.VARIABLE: bug, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


NATIVE = "3"
"""A round of the native lane."""


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("bug", "named"), [("", ""), ("descriptor_per_epoch", "left behind: descriptors")]
)
def test_a_round_is_repeated_and_finds_what_is_planted(bug, named):
    ended = soaked(bug, "--round", NATIVE)
    assert ended.returncode == (1 if named else 0), ended.stdout + ended.stderr
    assert named in ended.stdout
    assert ("--seed 1 --round " + NATIVE in ended.stdout) == bool(named)


def test_each_bug_in_python_has_its_place():
    program = "from tools.soak import planted\nfor put_in in planted.IN_PYTHON.values(): put_in()"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ended.returncode == 0
