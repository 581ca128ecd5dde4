"""Settings in closed form, and which of several runs is the best."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fastload.tune.findings import binding
from fastload.tune.lanes import best_of
from fastload.tune.measure import Run
from fastload.tune.plan import Costs, limits, settled, workers_for

SECONDS = st.floats(1e-7, 1.0)


@given(SECONDS, SECONDS, SECONDS, st.integers(1, 64), st.integers(1, 8))
def test_the_least_limit_is_first(cpu_s, serial_s, held_s, cores, ranks):
    costs = Costs(cpu_s, cpu_s, serial_s, held_s, file_bytes=1e5, bytes_per_s=1e9)
    found = limits(costs, cores / ranks, ranks)
    assert found == {
        "cores": pytest.approx(cores / ranks / cpu_s),
        "handing batches over": pytest.approx(1 / serial_s),
        "storage": pytest.approx(1e4 / ranks),
        "the interpreter": pytest.approx(1 / held_s),
    }
    assert list(found.values()) == sorted(found.values())


def test_what_is_unknown_is_no_limit():
    assert limits(Costs(0.0, 0.0), 4, 1) == {}
    assert limits(Costs(1e-9, 1e-9, 1e-9, 1e-9), 4, 1) == {}  # too small to be measured
    assert list(limits(Costs(0.01, 0.01, bytes_per_s=1e9), 4, 1)) == ["cores"]


@pytest.mark.parametrize(
    ("allowed", "limit"),
    [
        ({"cores": 1_100.0, "handing batches over": 40_000.0}, "cores"),
        ({"cores": 500.0, "handing batches over": 40_000.0}, ""),  # passed, and far away
        ({"handing batches over": 1_500.0}, "handing batches over"),
        ({}, ""),
    ],
)
def test_what_holds_a_rate_up_is_near(allowed, limit):
    run = Run("inline", 0, 0, seconds=1.0, batches=100, samples=1_000)
    assert binding(settled(run, 0, allowed, (run,))) == limit


@given(SECONDS, st.floats(1, 50), st.floats(1, 1e5), st.integers(1, 64))
def test_workers_make_what_is_wanted(cpu_s, blocked, wanted, cores):
    costs = Costs(cpu_s, cpu_s * blocked)
    allowed = limits(costs, cores, 1)
    workers = workers_for(costs, allowed, wanted)
    made = workers / costs.work_s
    assert made >= 0.9 * min(wanted, allowed["cores"])
    assert workers <= max(1, math.ceil(1.1 * wanted * costs.work_s))
    assert workers <= max(1, math.ceil(cores * blocked))


def a_run(workers, rate, cpu_cores, lane="native"):
    return Run(lane, workers, 2 * workers, 1.0, 10, rate, cpu_cores=cpu_cores)


def test_the_fewest_cpus_win_among_equals():
    cheap, dear = a_run(2, 980, 1.0), a_run(4, 1000, 1.9)
    assert best_of([dear, cheap]) is cheap
    assert best_of([dear, a_run(2, 900, 1.0)]) is dear
    assert best_of([a_run(2, 1000, 1.0), cheap]).workers == 2
    assert best_of([]) is None
    assert best_of([a_run(1, 0, 0.0)]) is None
