"""Troubles that are planted in real runs, and what the monitor says of them; a healthy run, of which it says nothing.

Time is scaled: steps take milliseconds, and windows a twentieth of a second.
"""

import ctypes
import gc
import time

import pytest
import torch

import fastload
from fastload.columns import Rows

from ._monitor_lanes import Kept
from ._processes import LINUX

pytestmark = pytest.mark.timeout(120)  # three attempts on a busy machine

STEP_S = 0.003
STEPS = 560  # the first 200 of them are warm-up
LONG = 800  # for what comes seldom: six times, before the detectors look for the last time
EVERY = 30


def healthy_step():
    time.sleep(STEP_S)


def optimal_sequence_search():
    time.sleep(20 * STEP_S)


def run(trouble, steps=STEPS, dataset=None, **arguments):
    """Trains with a trouble; returns what was found by the end, the monitor and what it wrote."""
    kept = Kept()
    loader = fastload.Loader(dataset or Rows(torch.arange(steps)), num_workers=1, **arguments)
    with fastload.monitor(loader, kept, every_s=0.05, stall_s=5 * STEP_S) as monitor:
        for step, _ in enumerate(loader):
            healthy_step()
            trouble(step, monitor)
    return kept.findings, monitor, kept


def without_load(findings):
    """Returns the findings that other programs of this machine have not caused."""
    return [each for each in findings if each.owner != "machine"]


def sometimes(found, attempts=3):
    """Returns the first result that is true of some attempts: the machine disturbs runs this short."""
    for _ in range(attempts):
        result = found()
        if result:
            return result
    return result


def test_a_function_that_is_slow_each_30th_step_is_named(caplog):
    def search(step, _):
        if step % EVERY == EVERY - 1:
            optimal_sequence_search()

    def found():
        findings, *_ = run(search)
        return [each for each in findings if "every 30 steps" in each.what]

    (finding,) = sometimes(found)
    assert finding.kind == "period"
    assert finding.owner == "own code"
    assert "optimal_sequence_search (test_monitor_troubles.py:" in finding.what
    assert "every 30 steps the training pauses" in caplog.text
    assert 0.5 * 20 * STEP_S / EVERY < finding.cost_s < 5 * 20 * STEP_S / EVERY


def test_garbage_collections_are_blamed_where_they_pause_the_training():
    gc.freeze()  # what earlier tests have left is not collected
    lists = [[[]] for _ in range(400_000)]

    def collect(step, _):
        if step % 50 == 49:
            gc.collect()

    gc.disable()
    try:
        findings = sometimes(lambda: run(collect, LONG)[0])
    finally:
        gc.enable()
        gc.unfreeze()
    assert findings[0].owner == "garbage collection"
    assert findings[0].kind == "period"
    assert "every 50 steps" in findings[0].what
    del lists


def test_a_checkpoint_is_told_as_one_and_blames_no_function():
    def save(step, monitor):
        if step % 100 == 0:
            with monitor.region("checkpoint"):
                optimal_sequence_search()

    findings = without_load(run(save, LONG)[0])
    assert {each.owner for each in findings} == {"checkpoint"}
    assert "every 100 steps the region 'checkpoint'" in findings[0].what
    assert "optimal_sequence_search" not in " ".join(each.what for each in findings)


class Uneven(torch.utils.data.Dataset):
    """Samples of which each 30th is slow."""

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if index % EVERY == EVERY - 1:
            time.sleep(20 * STEP_S)
        return index


def test_late_batches_are_the_datas_fault():
    def found():
        findings, *_ = run(lambda *_: None, dataset=Uneven(), lane="threads")
        return [each for each in findings if "every 30 steps" in each.what]

    (finding,) = sometimes(found)
    assert finding.owner == "data"


def test_a_training_that_waits_is_starved():
    class Slow(Uneven):
        def __getitem__(self, index):
            time.sleep(2 * STEP_S)
            return index

    findings, *_ = run(lambda *_: None, dataset=Slow(), lane="threads")
    (starved,) = [each for each in findings if each.kind == "starvation"]
    assert starved.owner == "data"


@pytest.mark.parametrize("lane", ["native", "threads", "inline"])
def test_a_healthy_run_is_silent(lane):
    settings = {
        "native": {},
        "threads": {"dataset": list(range(STEPS)), "lane": "threads"},
        "inline": {"dataset": list(range(STEPS))},
    }[lane]
    attempts = []

    def is_silent():
        findings, monitor, kept = run(lambda *_: None, **settings)
        attempts.append(findings)
        assert len(kept.column("number")) == STEPS
        assert findings or "nothing conspicuous" in monitor.summary()
        return not without_load(findings)

    assert sometimes(is_silent), attempts


@LINUX
def test_a_process_that_is_stopped_is_not_blamed_on_a_function():
    """Native code that waits and holds the interpreter looks the same from inside, and needs no other process."""
    hold = ctypes.PyDLL(None).usleep  # called without giving up the interpreter

    def stop(step, _):
        if step % 60 == 59:
            hold(400_000)

    findings, _, kept = run(stop, LONG)
    assert findings[0].owner == "unknown"
    assert "the process was stopped" in findings[0].what
    assert sum(window.scalars["stopped_s"] for window in kept.windows) > 1


def test_native_code_that_holds_the_interpreter_is_named_by_its_caller():
    begun = time.perf_counter()
    sum(range(1_000_000))
    count = int(1_000_000 * 50 * STEP_S / (time.perf_counter() - begun))

    def hold_and_compute():
        return sum(range(count))  # one call of C

    def compute(step, _):
        if step % 60 == 59:
            hold_and_compute()

    def found():
        told = [each.what for each in run(compute, LONG)[0] if each.owner == "own code"]
        return [what for what in told if "hold_and_compute (test_monitor_troubles.py:" in what]

    assert sometimes(found)
