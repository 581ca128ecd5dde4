"""Troubles that are planted in real runs, and what the monitor says of them; healthy runs, of which it says nothing.

`real_troubles.py` has the troubles and `real_healthy.py` the healthy runs; `python -m tools.monitor_proof --real` prints
what is said of each. All of them take minutes, of a machine with little else to do, so only some are run unless
FASTLOAD_TEST_REAL_RUNS is set.
"""

import os

import pytest

from tests.shared.processes import OUR_PROCESSES

from .planted import LONG_S, SEARCH_EVERY
from .planted_own_code import SAVED
from .real_healthy import HEALTHY
from .real_runs import ATTEMPTS, play
from .real_troubles import PAIRS, TROUBLES

pytestmark = [*OUR_PROCESSES, pytest.mark.timeout(240)]

USUAL = {
    "a function that sleeps, each 30 steps",
    "each 30th sample is slow, without workers",
    "samples that are slow to make, in workers",
    "gc.collect() in each step",
    "native lane",
    "inline",
}
SELDOM = pytest.mark.skipif(
    not os.environ.get("FASTLOAD_TEST_REAL_RUNS"), reason="minutes: set FASTLOAD_TEST_REAL_RUNS=1"
)


def parameters(runs):
    """Returns the runs, marked."""
    return [
        pytest.param(
            run,
            id=name,
            marks=[
                *([] if name in USUAL else [SELDOM]),
                *([pytest.mark.slow] if getattr(run, "is_slow", "memory" in name) else []),
            ],
        )
        for name, run in runs.items()
    ]


@pytest.mark.parametrize("trouble", parameters(TROUBLES | PAIRS))
def test_a_trouble_is_found(trouble):
    run = trouble.played()
    assert run.found.keys() == set(trouble.expected), (run.besides, run.summary)


def test_a_finding_has_its_cost_and_is_logged(caplog):
    trouble = TROUBLES["a function that sleeps, each 30 steps"]
    ((_, _, finding),) = trouble.played().found.values()
    assert 0.5 * LONG_S / SEARCH_EVERY < finding.cost_s < 5 * LONG_S / SEARCH_EVERY
    assert trouble.expected[0].says[0] in caplog.text


def test_a_region_is_blamed_on_no_function():
    run = TROUBLES["torch.save in a region, each 100 steps"].played()
    assert SAVED in run.found
    assert "save_checkpoint" not in " ".join(run.not_by_load())


@pytest.mark.parametrize("make", parameters(HEALTHY))
def test_a_healthy_run_is_silent(make):
    said = []
    for _ in range(ATTEMPTS):
        training = make()
        run = play(training)
        assert run.steps == training.steps
        if not run.not_by_load():
            break
        said.append(run.not_by_load())
    assert len(said) < ATTEMPTS, said
    assert run.besides or "No findings." in run.summary
