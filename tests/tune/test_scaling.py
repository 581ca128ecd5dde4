"""The Universal Scalability Law: fits of what it made itself, against SciPy's, and at the edges."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import nnls

from fastload.tune.measure import Run
from fastload.tune.stages import Law, Point, curves, fit

LAWS = st.builds(
    Law,
    rate=st.floats(1, 1e6),
    contention=st.floats(0, 1),
    coherence=st.floats(0, 0.2),
)


@given(LAWS)
def test_a_law_is_found_in_its_own_points(law):
    curve = fit("all", [Point(n, law.at(n)) for n in (1, 2, 3, 4, 8)], 16)
    assert curve.law is not None
    for workers in (1, 2, 5, 16):
        assert curve.law.at(workers) == pytest.approx(law.at(workers), rel=1e-4)


@given(st.lists(st.floats(10, 1000), min_size=3, max_size=6))
def test_the_fit_is_the_best_of_no_negative_coefficient(rates):
    workers = np.arange(1, len(rates) + 1, dtype=float)
    curve = fit("all", [Point(int(n), x) for n, x in zip(workers, rates, strict=True)], 8)
    rows = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    rows *= (np.array(rates) / workers)[:, None]
    solution, error = nnls(rows, np.ones(len(rates)))
    if solution[0] <= 0 or curve.law is None:
        return
    law = curve.law
    ours = np.array([1, law.contention, law.coherence]) / law.rate
    assert np.linalg.norm(rows @ ours - 1) <= error + 1e-6


def test_the_knee_comes_before_the_peak():
    law = Law(100, 0.05, 0.02)
    assert law.knee(64) <= law.peak(64)
    assert law.at(law.peak(64)) >= max(law.at(n) for n in range(1, 65)) - 1e-9


def test_a_line_has_its_knee_at_the_end():
    assert Law(100, 0, 0).knee(8) == 8
    assert Law(100, 1, 0).knee(8) == 1


def test_one_point_has_no_law():
    curve = fit("all", [Point(2, 50.0)], 8)
    assert curve.law is None
    assert curve.knee == 2
    assert fit("all", [], 8).points == ()


def test_a_stage_that_takes_nothing_has_no_rate():
    work_ms = {"read": 0.0, "transform": 2e-8, "collate": 2e-3}
    runs = [Run("native", n, 2 * n, 1.0, 10, 100 * n, work_ms=work_ms) for n in (1, 2)]
    assert [curve.name for curve in curves(runs, 4)] == ["all of loading", "collate"]
    quick = [Run("native", 1, 2, 1.0, 10, 100, work_ms={"transform": 2e-8})]
    assert [curve.name for curve in curves(quick, 4)] == ["all of loading"]
