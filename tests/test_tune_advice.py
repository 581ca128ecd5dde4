"""The one sentence: what is needed, what there is, and what would help."""

from fastload.tune.advice import advice
from fastload.tune.findings import Demand, Findings, Plan, Stage
from fastload.tune.fingerprint import Machine
from fastload.tune.host import Host

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
        "plan": Plan(lane, 4, 8, 4, {"processors": 774.0}, "processors", rate, waiting, ()),
    }
    return Findings(**{**values, **changes})


def test_more_is_wanted_than_there_are_processors_for():
    assert advice(findings(rate=760.0, waiting=0.35, wanted=1200.0)) == (
        "needs 6.2 cores for 1,200 samples/s; 4 here: at most 760, with num_workers=4 (threads), 8 batches "
        "ahead, and the training waits 35% of its time; the largest lever: decoding: store the images "
        "at the size that is used (77% of the work)"
    )


def test_a_training_that_never_waits():
    assert advice(findings(rate=500.0, wanted=500.0)) == (
        "needs 2.6 cores for 500 samples/s, 4 here: with num_workers=4 (threads), 8 batches ahead the "
        "training never waits; the largest lever: the training itself"
    )


def test_a_step_that_gets_longer():
    words = advice(findings(rate=400.0, wanted=500.0, lane="process"))
    assert "num_workers=4 (processes)" in words
    assert "never waits, whose step gets 25% longer beside it" in words
    assert words.endswith("samples that are made natively, which hold no interpreter")


def test_without_a_step():
    words = advice(findings(rate=774.0))
    assert words.startswith("up to 774 samples/s with num_workers=4 (threads), 8 batches ahead, ")
    assert "4.0 cores busy of 4" in words


def test_another_lane_is_named():
    words = advice(findings(rate=774.0, lane="process", plan=plan_of("threads")))
    assert "workers='threads', num_workers=4 (threads)" in words


def plan_of(lane):
    return Plan(lane, 4, 8, 4, {}, "", 774.0, 0.0, ())


def test_the_dataset_in_python_is_the_lever():
    stages = (Stage("sample", 5.0, 4.0, 1.0, ""), Stage("all of loading", 5.0, 4.0, 1.0, ""))
    words = advice(
        findings(rate=774.0, lane="process", stages=stages, change="describe them by columns")
    )
    assert words.endswith("the dataset's Python code: to make it native, describe them by columns")


def test_broken_off_nothing_is_known():
    words = advice(findings(rate=774.0, plan=None))
    assert words == "too little is known for advice: give it more --seconds"
