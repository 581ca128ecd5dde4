"""The history: bounded, free of the windows, right about warm-up and the borders of epochs."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastload.monitoring.detect.history import History, Ring, Trail
from fastload.monitoring.record import Steps, Window

from .recorded import fast, healthy


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 8))
def test_ring_keeps_the_newest(sizes, capacity):
    ring, expected = Ring(2, capacity), np.empty((2, 0))
    for size in sizes:
        values = np.arange(2.0 * size).reshape(2, size)
        ring.extend(values)
        expected = np.concatenate([expected, values], axis=1)[:, -capacity:]
        assert np.array_equal(ring.view(), expected)
        assert len(ring) == expected.shape[1]


@given(st.integers(0, 200))
def test_trail_covers_the_run(count):
    trail = Trail(1, 8, np.mean)
    for number in range(count):
        trail.append(np.array([float(number)]))
    points = trail.view()[0]
    assert len(points) == len(trail) < 8
    assert count < 8 or len(points) >= 4
    stride = 1 if len(points) < 2 else int(points[1] - points[0])
    assert np.allclose(points, stride * np.arange(len(points)) + (stride - 1) / 2)
    assert count - stride < stride * len(points) <= count


def arrays(history):
    return [
        each
        for each in gc.get_referents(*gc.get_referents(history.__dict__))
        if isinstance(each, np.ndarray)
    ]


def test_bounded_and_free_of_windows():
    history, kept = History(), []
    for window in fast(0, 0.5).windows():
        history.add(window)
        kept.append(weakref.ref(window.steps.own_s.base))
    half = sum(each.nbytes for each in arrays(history))
    assert half < 3_000_000
    del window
    assert all(ref() is None for ref in kept)
    for window in fast(1, 0.5).windows():
        history.add(window)
    assert sum(each.nbytes for each in arrays(history)) == half
    assert len(history.steps()["number"]) == 4096
    assert len(history.levels(is_whole=False)["step"]) <= 512


def test_warm_up_and_borders():
    history = History()
    for window in healthy(0, 600, step_s=0.1, epoch_steps=250).windows(1.0):
        history.add(window)
    steps = history.steps()
    assert steps["number"][0] == 200
    assert np.array_equal(np.diff(steps["number"]), np.ones(len(steps["number"]) - 1))
    assert 580 < steps["number"][-1] <= 598  # the newest step is held back
    border = steps["number"][steps["border"] == 1]
    assert border.tolist() == [249, 250, 251, 499, 500, 501]
    assert np.array_equal(steps["epoch"], steps["number"] // 250)


def test_slow_steps_have_a_shorter_warm_up():
    history = History()
    for window in healthy(0, 60, step_s=8.0).windows():
        history.add(window)
    assert 3 < history.steps()["number"][0] < 20


@pytest.mark.parametrize("every_s", [0.6, 10.0, 500.0])
def test_the_length_of_windows_changes_no_step(every_s):
    run, history = healthy(3, 3000, epoch_steps=97), History()
    for window in run.windows(every_s):
        history.add(window)
    steps = history.steps()
    number = steps["number"].astype(int)
    assert np.array_equal(steps["own_s"], run.own_s[number])
    position, last = number % 97, 96
    assert np.array_equal(steps["border"] == 1, (position < 2) | (position == last))


def test_windows_without_steps():
    history = History()
    none = Steps(*(np.empty(0) for _ in range(9)))
    for number in range(5):
        history.add(Window(-1, 1.7e9, 10.0 * number, 0, {"rss_bytes": 1e9}, none))
    assert history.windows == 5
    assert history.scalar("rss_bytes").tolist() == [1e9] * 5
    assert np.isnan(history.scalar("absent")).all()
    assert not len(history.levels(is_whole=True)["step"])


def test_minima_of_minutes():
    history = History()
    for number, window in enumerate(healthy(0, 4000).windows()):
        scalars = {
            "rss_bytes": 1e9 + number % 6,
            "cuda_reserved_bytes": 5e9,
            "cuda_allocated_bytes": 4e9,
        }
        history.add(Window(window.step, 0.0, window.monotonic_s, 0, scalars, window.steps))
    (step, time_s, _), figures = history.minima()
    assert np.allclose(np.diff(time_s), 60.0)
    assert (np.diff(step) > 0).all()
    assert set(figures["rss_bytes"]) == {1e9}
    assert set(figures["cuda_unused_bytes"]) == {1e9}
    assert np.isnan(figures["fds"]).all()
