"""Troubles that are planted in real runs, and what the monitor says of them; healthy runs, of which it says nothing.

`_real_troubles.py` has the troubles and `_real_healthy.py` the healthy runs; `python -m tools.monitor_proof --real` prints
what is said of each.
"""

import pytest

from ._planted import LONG_S, SEARCH_EVERY
from ._planted_own_code import SAVED
from ._processes import OUR_PROCESSES
from ._real_healthy import HEALTHY
from ._real_runs import ATTEMPTS, play
from ._real_troubles import PAIRS, TROUBLES

pytestmark = [*OUR_PROCESSES, pytest.mark.timeout(240)]


def parameters(troubles):
    marks = {
        "slow": lambda name, trouble: trouble.is_slow,
        "own_sizes": lambda name, trouble: "to decode" in name,  # eight threads are not slow
    }
    return [
        pytest.param(
            trouble,
            id=name,
            marks=[
                getattr(pytest.mark, mark)
                for mark, is_meant in marks.items()
                if is_meant(name, trouble)
            ],
        )
        for name, trouble in troubles.items()
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


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] if "memory" in name else [])
        for name, make in HEALTHY.items()
    ],
)
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
    assert run.besides or "nothing conspicuous" in run.summary
