"""Tuning while a loader runs: what it sets, what it obeys, what it tells."""

import logging
import pickle
import time

import pytest
import torch

import fastload
from fastload import AUTO, _lib, tune
from fastload.columns import Rows
from fastload.machine.auto import Auto
from fastload.tune import machine, online
from tests.shared.compare import MANY_WORKERS

pytestmark = [MANY_WORKERS, pytest.mark.own_sizes]


@pytest.fixture
def quick(monkeypatch):
    """Windows of a few batches, in place of two seconds."""
    monkeypatch.setattr(online, "WINDOW_S", 0.002)
    monkeypatch.setattr(online, "WINDOW_BATCHES", 3)


def loader(count=3000, **options):
    options = {"batch_size": 8, "num_workers": Auto(4)} | options
    made = fastload.Loader(Rows(torch.arange(count)), **options)
    made.num_workers = options["num_workers"]  # whatever the machine has
    return made


def test_it_settles_and_says_so(quick):
    ours = loader()
    for _ in range(3):
        for _ in ours:
            time.sleep(0.001)
    reasons = [change.reason for change in ours.tuner.history]
    assert reasons[0].startswith("a batch takes ")
    assert any(reason.startswith("settled; the bottleneck is ") for reason in reasons)
    assert ours.tuner.bottleneck
    for change in ours.tuner.history:
        assert 1 <= change.new.workers <= 4
        assert 1 <= change.new.depth <= 4 * 8
        assert change.rate > 0
        assert change.step_s >= 0.001


def test_a_training_that_never_waits_gets_fewer_threads(quick):
    ours = loader(600)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (ours.tuner is None or ours.tuner.workers > 1):
        for _ in ours:
            time.sleep(0.002)
    assert ours.tuner.workers == 1


def test_batches_do_not_depend_on_it(quick):
    data = torch.rand(2000, 5)
    batches = []
    for tuned in (True, False):
        torch.manual_seed(0)
        ours = fastload.Loader(Rows(data), batch_size=8, shuffle=True, tune=tuned)
        batches.append([batch for _ in range(2) for batch in ours])
        assert (ours.tuner is not None) == tuned
    assert all(map(torch.equal, *batches))


@pytest.mark.parametrize("options", [{"num_workers": 3}, {"num_workers": 3, "prefetch_factor": 4}])
def test_numbers_that_the_user_set_are_kept(quick, options):
    ours = loader(**options)
    for _ in ours:
        time.sleep(0.0005)
    assert ours.tuner.history
    depth = 3 * options.get("prefetch_factor", 4 * 2)  # batches are cheap
    assert {c.new for c in ours.tuner.history} == {(3, depth)}


def test_advice_on_numbers_that_the_user_set_is_logged_once(quick, caplog):
    with caplog.at_level(logging.INFO, "fastload"):
        ours = loader(num_workers=3)
        for _ in range(2):
            for _ in ours:
                time.sleep(0.0005)
    (only,) = ours.tuner.history
    assert only.reason.startswith("num_workers=3 is obeyed; AUTO would begin with ")
    assert (only.knob, only.old) == ("", only.new)
    assert sum("num_workers=3" in record.getMessage() for record in caplog.records) == 1


def test_changes_say_what_was_turned_and_what_came_of_it(quick):
    ours = loader()
    for _ in range(4):
        for _ in ours:
            time.sleep(0.001)
    before = ours.tuner.history[0].old
    assert before == (4, 4 * 8)  # batches are cheap
    for change in ours.tuner.history:
        assert change.old == before
        assert ("workers" in change.knob) == (change.old.workers != change.new.workers)
        assert ("depth" in change.knob) == (change.old.depth != change.new.depth)
        judged = "kept" in change.reason or "taken back" in change.reason
        assert bool(change.effect) == judged
        before = change.new


@pytest.mark.parametrize(
    ("generator", "further"), [(None, True), (torch.Generator(), False)], ids=["private", "shared"]
)
def test_a_generator_that_others_draw_from_is_not_drawn_ahead(generator, further):
    """When it is drawn from could be seen from outside, and must not depend on a timing."""
    costly = torch.zeros(1).expand(600, 1 << 14)
    ours = fastload.Loader(Rows(costly), 8, shuffle=True, generator=generator)
    iterator = iter(ours)
    bound = ours.tuner._tuner.next(window(tail_s=10.0), ours.tuner.workers, ours.tuner.depth)[1]
    assert (bound > ours.tuner.depth) == further
    del iterator


def window(**figures):
    usual = {"elapsed_s": 2.0, "batches": 100.0, "samples": 800.0, "step_s": 0.001}
    return _lib.Window(**usual | {"wait_s": 0.01, "work_s": 0.02} | figures)


def test_a_stream_that_is_made_deeper_pulls_further():
    ours = fastload.Loader(Rows(torch.arange(600)), 8, num_workers=1, prefetch_factor=1)
    batches = iter(ours)
    batches._stream.set_depth(9)
    assert [batch[0].item() for batch in batches] == list(range(0, 600, 8))


def test_a_depth_that_the_user_set_is_kept(quick):
    ours = loader(prefetch_factor=3)
    for _ in ours:
        time.sleep(0.0005)
    assert {change.new.depth for change in ours.tuner.history} == {12}


def test_it_goes_on_from_epoch_to_epoch(quick):
    """Epochs that are shorter than a window are measured together."""
    ours = loader(16)
    for _ in range(400):
        assert len(list(ours)) == 2
    assert ours.tuner.history


def test_one_iterator_at_a_time_is_tuned(quick):
    ours = loader(400)
    first, second = iter(ours), iter(ours)
    for each in (first, second):
        for _ in range(50):
            next(each)
            time.sleep(0.0005)
    assert ours.tuner.history


def test_persistent_workers_are_tuned(quick):
    ours = loader(400, persistent_workers=True)
    for _ in range(3):
        assert sum(1 for _ in ours if time.sleep(0.0005) is None) == 50
    assert ours.tuner.history


def test_changes_are_logged(quick, caplog):
    with caplog.at_level(logging.INFO, "fastload"):
        ours = loader()
        for _ in ours:
            time.sleep(0.001)
    told = [record.getMessage() for record in caplog.records]
    assert f"{ours.tuner.history[-1].reason}" in told[-1]
    assert told[0].endswith(ours.tuner.history[0].reason)


def test_a_loader_is_pickled_without_it(quick):
    ours = loader()
    list(ours)
    assert ours.tuner is not None
    assert pickle.loads(pickle.dumps(ours)).tuner is None


def test_lanes_of_python_are_not_tuned():
    ours = fastload.Loader(list(range(4)), num_workers=0)
    list(ours)
    assert ours.tuner is None


def test_a_window_is_what_was_measured():
    ours = loader(400)
    iterator = iter(ours)
    next(iterator)
    iterator._stream.window(0.0, 0.5)
    for _ in range(5):
        time.sleep(0.1)
        next(iterator)
    window = iterator._stream.window(0.0, 0.5)
    assert window.batches == 5
    assert 0.1 <= window.step_s < 1
    assert window.elapsed_s >= 0.5
    assert window.bottleneck == "the training itself"
    assert iterator._stream.window(0.0, 0.5).batches == 0


def test_windows_join():
    one = _lib.Window(elapsed_s=1, batches=10, samples=100, step_s=0.1, wait_s=0, work_s=0.1)
    two = _lib.Window(elapsed_s=2, batches=30, samples=300, step_s=0.05, wait_s=0.01, work_s=0.1)
    both = one.joined(two)
    assert (both.elapsed_s, both.batches) == (3, 40)
    assert both.rate == pytest.approx(400 / 3)
    assert both.step_s == pytest.approx((10 * 0.1 + 30 * 0.05) / 40)
    assert both.wait_s == pytest.approx(0.0075)


def test_the_clock_of_the_pool_runs_while_it_works():
    clock = machine.PoolClock()
    clock.passed()
    images = Rows(torch.rand(64, 3, 256, 256))
    for _ in fastload.Loader(images, batch_size=8, num_workers=2):
        pass
    assert clock.passed().cpu_s >= 0
    assert clock.passed().cpu_s < 1


def test_auto_is_tuned_by_default():
    ours = fastload.Loader(Rows(torch.arange(10)))
    list(ours)
    assert isinstance(ours.tuner, tune.Online)
    assert ours.num_workers == AUTO or ours.num_workers >= 1
