"""Batch sizes: the best one, the one that collapses, and why."""

import pytest
from torch.utils.data import DataLoader, DistributedSampler

from fastload.tune.measure import Run
from fastload.tune.sweep import Try, judged

from .command import TAKES_TIME, found, tune, write_targets

pytestmark = TAKES_TIME


def test_a_step_that_collapses_is_named(tmp_path):
    write_targets(tmp_path)
    arguments = ["targets:tensors", "--batch-sizes", "16,64,128", "--step", "targets:collapsing"]
    account = found(tmp_path, *arguments, "--accumulate", "2", "--ranks", "2", seconds=5)
    sweep = account["sweep"]
    assert sweep["sizes"] == [16, 64, 128]
    assert sweep["best"] in (16, 64)
    assert sweep["collapse"] == 128
    assert sweep["cause"].startswith("the step: ")
    assert sweep["effective"] == sweep["best"] * 2 * 2
    assert sweep["steps_per_epoch"] == -(-4000 // (sweep["best"] * 2))
    assert sweep["updates_per_epoch"] == -(-sweep["steps_per_epoch"] // 2)


def test_the_collapse_is_said(tmp_path):
    write_targets(tmp_path)
    arguments = ["targets:tensors", "--batch-sizes", "64,128", "--step", "targets:collapsing"]
    done = tune(tmp_path, *arguments, seconds=3)
    assert done.returncode == 0, done.stderr
    assert "collapses at 128: the step: " in done.stdout


def test_a_step_for_which_memory_ends_is_named(tmp_path):
    write_targets(tmp_path)
    arguments = ["targets:tensors", "--batch-sizes", "64,128", "--step", "targets:ending"]
    sweep = found(tmp_path, *arguments, seconds=2)["sweep"]
    assert sweep["collapse"] == 128
    assert sweep["cause"] == "memory: MemoryError: no more than 64"


def test_a_step_that_fails_with_a_size_is_told(tmp_path):
    write_targets(tmp_path)
    arguments = ["targets:tensors", "--batch-sizes", "32,50", "--step", "targets:odd"]
    sweep = found(tmp_path, *arguments, seconds=2)["sweep"]
    assert sweep["best"] == 32
    assert "batches have 32 samples" in sweep["notes"][1]


def a_try(size, step_ms, wait_ms=0.0, **more):
    batches = 10
    seconds = batches * (step_ms + wait_ms) / 1e3
    run = Run("native", 1, 2, seconds, batches, batches * size, wait_ms=wait_ms, step_ms=step_ms)
    return Try(size, run, **more)


def test_a_loader_that_falls_behind_is_the_cause():
    sweep = judged([a_try(8, 8), a_try(16, 16, 1), a_try(32, 32, 200)], 1, 1, 100)
    assert (sweep.best, sweep.collapse) == (8, 32)
    assert sweep.cause == "the loader: the training waits 86% of its time, 0% with batches of 8"


def test_memory_is_the_cause_where_it_is_full():
    sweep = judged([a_try(8, 8), a_try(16, 160, memory_share=0.93)], 1, 1, None)
    assert (sweep.best, sweep.collapse) == (8, 16)
    assert sweep.cause == "memory pressure: 93% of the memory is in use"
    assert sweep.steps_per_epoch is None


def test_the_size_at_which_memory_ends_collapses():
    refused = Try(64, None, "OutOfMemoryError: no more", 1.0, out_of_memory=True)
    sweep = judged([a_try(8, 8), a_try(16, 15), refused], 1, 1, 100)
    assert (sweep.best, sweep.collapse) == (16, 64)
    assert sweep.cause == "memory: OutOfMemoryError: no more"


def test_nothing_collapses_where_larger_is_better():
    sweep = judged([a_try(8, 8), a_try(16, 15), a_try(32, 31)], 4, 8, 1000)
    assert sweep.collapse is None
    assert sweep.cause == ""
    assert sweep.best == 16
    assert sweep.effective == 16 * 4 * 8
    assert (sweep.steps_per_epoch, sweep.updates_per_epoch) == (16, 2)  # 1000 / 64, then / 8


@pytest.mark.parametrize(("drop_last", "steps"), [(False, 16), (True, 15)])
def test_the_steps_of_an_epoch_are_those_of_torch(drop_last, steps):
    sweep = judged([a_try(16, 15)], 4, 1, 1000, drop_last=drop_last)
    assert sweep.steps_per_epoch == steps
    of_rank = DistributedSampler(range(1000), 4, 0)
    assert len(DataLoader(range(1000), 16, sampler=of_rank, drop_last=drop_last)) == steps


def test_no_size_is_best_where_none_was_measured():
    sweep = judged([Try(8, None, "the dataset has fewer samples than one batch")], 1, 1, 4)
    assert (sweep.best, sweep.cause) == (0, "no size could be measured")


def test_a_batch_sampler_of_its_own_has_no_sizes(tmp_path):
    write_targets(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import targets, torch.utils.data\n"
        "def loader():\n"
        "    data = targets.tensors()\n"
        "    return torch.utils.data.DataLoader(data, batch_sampler=[[0, 1], [2, 3]] * 50)\n"
    )
    done = tune(tmp_path, "mine:loader", "--batch-sizes", "4,8", seconds=1)
    assert done.returncode == 2
    assert "needs a batch_size" in done.stderr.splitlines()[-1]
