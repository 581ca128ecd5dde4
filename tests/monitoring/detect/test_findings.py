"""The whole decision: each planted trouble is found under its name, and healthy runs are silent."""

import numpy as np
import pytest

from fastload.monitoring.detect import History, drift_of, findings

from .recorded import healthy, with_pauses
from .troubles import HEALTHY, TROUBLES, every, known


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble(name):
    trouble = TROUBLES[name]
    _, now, ever = trouble.make(1).replay()
    found = ever.get((trouble.kind, trouble.owner))
    assert found is not None, ever
    assert trouble.says in found.what
    assert found.evidence
    assert found.advice.endswith(".")
    assert found.cost_s >= 0.0
    assert found.since_step >= 0
    assert found.since_s >= 5000.0
    costs = [finding.cost_s for finding in now]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name):
    _, _, ever = HEALTHY[name](2).replay()
    assert not ever


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_a_million_steps(rho):
    """14 hours of steps of 50 ms: nothing is found, and the run has no drift."""
    run = healthy(
        int(10 * rho), 1_000_000, step_s=0.05, rho=rho, lengths=0.4 if rho == 0.5 else 0.0
    )
    history, _, ever = run.replay()
    assert not ever
    found = drift_of(history)
    assert found is not None
    assert found.statement().startswith("No drift")
    assert found.steps > 990_000


def test_cost_and_since_of_a_period():
    _, now, _ = TROUBLES["a function of the user's, each 30 steps"].make(0).replay()
    (found,) = now
    assert found.cost_s == pytest.approx(1.2 / 30, rel=0.05)
    assert found.since_step % 30 == 29
    assert found.what.endswith("in optimal_sequence_search (search.py:41)")


def test_regions_of_one_step_are_charged_their_own_time():
    at = every(100)
    seconds = {"logging": 0.001, "evaluation": 60.0, "checkpoint": 3.0}
    ran = {name: [(step, each_s) for step in at.tolist()] for name, each_s in seconds.items()}
    run = with_pauses(healthy(1), at, sum(seconds.values()), of="region_s")
    _, now, _ = known(run, regions=ran).replay()
    (found,) = now
    assert found.what == "every 100 steps the region 'checkpoint' takes 3 s"
    assert found.cost_s == pytest.approx(3.0 / 100, rel=0.05)


@pytest.mark.parametrize("is_native", [False, True])
def test_late_epochs_are_not_blamed_on_workers_where_there_are_none(is_native):
    run = with_pauses(healthy(1, epoch_steps=40), np.arange(0, 7200, 40), 10.0, of="wait_s")
    _, now, _ = known(run, is_native=is_native).replay()
    (found,) = [each for each in now if "epoch" in each.what]
    assert found.what == "at each start of an epoch the first batches are late by 15 s"
    assert ("persistent_workers" in found.advice) != is_native


def test_since_of_a_jump():
    _, now, _ = TROUBLES["own code, +15 % from a step on"].make(0).replay()
    (found,) = now
    assert found.since_step == pytest.approx(3600, abs=40)  # two windows
    assert found.cost_s == pytest.approx(0.15 * 0.5, rel=0.2)


def test_when_memory_ends():
    _, now, _ = TROUBLES["reference counts in workers"].make(0).replay()
    (found,) = now
    # 30 GB at 3 kB per batch are 10^7 batches of 51 ms
    assert "; at this rate the limit of memory is reached in 6 days" in found.what


def test_a_period_that_ended_is_no_finding():
    run = TROUBLES["collation, each 30 batches"].make(0)
    run.wait_s[3600:] = np.minimum(run.wait_s[3600:], 0.01)
    _, now, ever = run.replay()
    assert ("period", "data") in ever
    assert not now


def test_an_empty_history():
    assert findings(History()) == []
