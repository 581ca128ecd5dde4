"""The advice: what is needed, what there is, and what would help."""

import pytest

from fastload.tune.findings import Demand, Findings, advice
from fastload.tune.machine import Host, Machine
from fastload.tune.plan import Plan
from fastload.tune.stages import Stage

GB = 10**9


def findings(*, rate, waiting=0.0, wanted=None, cores=4, lane="native", **changes):
    """Returns findings of batches of 60 whose samples take 5.17 ms, four fifths of it to be decoded."""
    machine = Machine(cores, cores, 32 * GB, "a processor", "3.11", "2.15", "0.1")
    demand = None if wanted is None else Demand("a step", 60e3 / wanted, wanted)
    at = wanted or rate
    values = {
        "target": "mine:loader",
        "what": "a dataset",
        "lane": lane,
        "why": "",
        "change": "",
        "host": Host(1, cores, 16 * GB, 0, machine),
        "batch_size": 60,
        "samples": 1000,
        "demand": demand,
        "stages": (
            Stage("read", 0.67, at * 0.67e-3, 1.0, ""),
            Stage("decode", 4.0, at * 4e-3, 0.8, ""),
            Stage("transform", 0.5, at * 0.5e-3, 1.0, ""),
            Stage("all of loading", 5.17, at * 5.17e-3, 0.5, ""),
        ),
        "plan": Plan(lane, 4, 8, 4, {"cores": 774.0}, "cores", rate, waiting, ()),
    }
    return Findings(**{**values, **changes})


def test_the_training_needs_more_cpus_than_there_are():
    assert advice(findings(rate=760.0, waiting=0.35, wanted=1200.0)) == (
        "The training can consume 1,200 samples/s. That takes 6.2 cores; this machine has 4. Best setting "
        "found: num_workers=4 (threads), 8 batches ahead, 760 samples/s; the training waits 35% of the time. "
        "Largest lever: decoding, 77% of the work. Store the images at the size you train on."
    )


def test_a_training_that_never_waits():
    assert advice(findings(rate=500.0, wanted=500.0)) == (
        "The training can consume 500 samples/s. That takes 2.6 cores; this machine has 4. With "
        "num_workers=4 (threads), 8 batches ahead the training never waits."
    )


@pytest.mark.parametrize(("waiting", "has_lever"), [(0.0, False), (0.05, False), (0.06, True)])
def test_a_training_that_hardly_waits_has_no_lever(waiting, has_lever):
    words = advice(findings(rate=500.0 * (1 - waiting), waiting=waiting, wanted=500.0))
    assert ("lever" in words) == has_lever


def test_a_step_that_gets_longer():
    words = advice(findings(rate=400.0, wanted=500.0, lane="process"))
    assert "num_workers=4 (processes)" in words
    assert "never waits. Its step gets 25% longer beside the loader: " in words
    assert words.endswith("native threads do not hold the interpreter lock (see explain()).")


def test_without_a_step():
    words = advice(findings(rate=774.0))
    assert words.startswith("Up to 774 samples/s with num_workers=4 (threads), 8 batches ahead, ")
    assert "4.0 cores busy of 4" in words


def test_another_lane_is_named():
    words = advice(findings(rate=774.0, lane="process", plan=plan_of("threads")))
    assert "lane='threads', num_workers=4 (threads)" in words


def plan_of(lane):
    return Plan(lane, 4, 8, 4, {}, "", 774.0, 0.0, ())


def test_the_dataset_in_python_is_the_lever():
    stages = (Stage("sample", 5.0, 4.0, 1.0, ""), Stage("all of loading", 5.0, 4.0, 1.0, ""))
    words = advice(
        findings(rate=774.0, lane="process", stages=stages, change="describe them by columns")
    )
    assert words.endswith(
        "Largest lever: the dataset's Python code. To make it native, describe them by columns."
    )


def test_broken_off_nothing_is_known():
    words = advice(findings(rate=774.0, plan=None))
    assert words == "Too little was measured for advice: give it more --seconds."
