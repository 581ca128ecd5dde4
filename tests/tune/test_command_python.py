"""`python -m fastload.tune` on datasets in Python: lanes, what they cost the step, and errors."""

import sys

import pytest

from fastload.tune.target import resolve
from tests.shared.photographs import write_photographs

from .command import TAKES_TIME, found, tune, write_targets

pytestmark = TAKES_TIME


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    write_targets(folder)
    (folder / "photographs").mkdir()
    write_photographs(folder / "photographs", 40)
    return folder


def chosen(account):
    [each] = [cost for cost in account["lanes"]["costs"] if cost["chosen"]]
    return each["run"]


def test_lanes_are_compared(folder):
    account = found(folder, "targets:python", seconds=4)
    assert account["lane"] == "process"
    lanes = account["lanes"]
    measured = {cost["run"]["lane"] for cost in lanes["costs"] if cost["run"]["batches"]}
    assert measured == {"inline", "process", "threads"}
    assert all(cost["cost"] is not None for cost in lanes["costs"] if cost["run"]["batches"])
    assert lanes["step"].startswith("a stand-in")
    assert 0 <= lanes["held_share"] <= 1
    assert lanes["pickled_bytes"] > 0
    assert lanes["why_not_pickled"] == ""
    assert "sample" in [row["name"] for row in account["stages"]]
    assert "describe them by fastload.columns" in account["advice"]


def test_samples_that_wait_get_workers_enough_for_the_step(folder):
    account = found(folder, "targets:slow", "--step-ms", "40", seconds=8)
    run, plan = chosen(account), account["plan"]
    assert run["lane"] != "inline"  # 80 ms of waiting before each step of 40
    assert plan["workers"] >= 2
    assert plan["lane"] == run["lane"]
    assert plan["rate"] > max(
        cost["run"]["rate"] for cost in account["lanes"]["costs"] if cost["run"]["lane"] == "inline"
    )


def test_pictures_beside_a_real_step(folder):
    account = found(folder, "targets:pictures", "--step", "targets:step", seconds=5)
    assert account["demand"]["step"] == "targets:step"
    costs = account["lanes"]["costs"]
    assert {cost["run"]["lane"] for cost in costs} == {"inline", "process", "threads"}
    assert all(cost["run"]["step_ms"] >= 10 for cost in costs if cost["run"]["batches"])
    best = max(cost["run"]["steady_rate"] for cost in costs)
    assert chosen(account)["steady_rate"] >= 0.97 * best
    assert account["storage"]["files"] > 0


def test_errors_are_counted_and_told(folder):
    done = tune(folder, "targets:bad", seconds=3)
    assert done.returncode == 0, done.stderr
    assert "batches were errors, the first ValueError: sample 0 is bad" in done.stdout


def test_the_dataset_is_left_as_it_was(folder):
    (folder / "watched.py").write_text(
        "import atexit, pathlib, targets\n"
        "def loader():\n"
        "    atexit.register(lambda: pathlib.Path('seen').write_text(str(targets.DATASET.seen)))\n"
        "    return targets.python()\n"
    )
    found(folder, "watched:loader", seconds=2)
    assert (folder / "seen").read_text() == "0"


def test_inline_loading_runs_a_copy(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    target = resolve("targets:python")
    for changes in ({}, {"batch_size": 4}, {"batch_sampler": [[0, 1]]}):
        loader = target.variant("inline", 0, **changes)
        next(iter(loader))
        assert loader.dataset is not target.loader.dataset
    assert target.loader.dataset.seen == 0
    del sys.modules["targets"]


def test_a_dataset_that_cannot_be_pickled_is_told(folder):
    (folder / "odd.py").write_text(
        "import threading, torch, targets\n"
        "class Odd(targets.Counted):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.lock = threading.Lock()\n"
        "def loader():\n"
        "    return torch.utils.data.DataLoader(Odd(), 8)\n"
    )
    account = found(folder, "odd:loader", seconds=2)
    assert "cannot pickle '_thread.lock' object" in account["lanes"]["why_not_pickled"]
